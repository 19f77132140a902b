//! Instants in columns: `TIMESTAMPTZ` in PostgreSQL, RFC 3339 text in SQLite.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, PgValueRef};
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Postgres, Sqlite, Type};

use crate::Instant;

/// `timestamptz` in PostgreSQL's catalogue.
const TIMESTAMPTZ: Oid = Oid(1184);

/// Microseconds from 1970 to 2000-01-01, PostgreSQL's epoch.
const EPOCH: i64 = 946_684_800_000_000;

impl Type<Postgres> for Instant {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ)
    }
}

impl Encode<'_, Postgres> for Instant {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.extend_from_slice(&(self.0.saturating_sub(EPOCH)).to_be_bytes());
        Ok(IsNull::No)
    }
}

impl Decode<'_, Postgres> for Instant {
    /// `infinity` and `-infinity` are the largest and the smallest number in PostgreSQL, and here.
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        let micros = i64::from_be_bytes(value.as_bytes()?.try_into()?);
        Ok(Instant(if micros == i64::MIN { i64::MIN } else { micros.saturating_add(EPOCH) }))
    }
}

impl Type<Sqlite> for Instant {
    fn type_info() -> SqliteTypeInfo {
        <String as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for Instant {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <String as Encode<Sqlite>>::encode(self.to_string(), buffer)
    }
}

impl<'r> Decode<'r, Sqlite> for Instant {
    /// Also accepts the format of SQLite's `datetime()`, `2026-12-01 00:00:00`, which is UTC.
    fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        let text = <&str as Decode<Sqlite>>::decode(value)?;
        let own = || Instant::parse(&format!("{}Z", text.replacen(' ', "T", 1)));
        Instant::parse(text).or_else(|fault| own().map_err(|_| fault)).map_err(|fault| fault.message.into())
    }
}
