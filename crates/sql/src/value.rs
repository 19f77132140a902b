//! Bound values of a statement, in the native type of each database.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, PgValueRef};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Postgres, Sqlite, Type};

use crate::Instant;

/// A bound value.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    /// NULL of any type.
    Null,
    /// `BIGINT`, `INTEGER`.
    Int(i64),
    /// `TEXT`.
    Text(String),
    /// `BOOLEAN`; in SQLite 0 or 1.
    Bool(bool),
    /// `TIMESTAMPTZ`; in SQLite text that sorts alike.
    Time(Instant),
    /// `JSONB`; in SQLite text.
    Json(serde_json::Value),
    /// `BYTEA`, `BLOB`.
    Bytes(Vec<u8>),
}

impl SqlValue {
    pub(super) fn to_sqlite<'q>(
        &self,
        query: Query<'q, Sqlite, SqliteArguments>,
    ) -> Query<'q, Sqlite, SqliteArguments> {
        match self.clone() {
            SqlValue::Null => query.bind(None::<i64>),
            SqlValue::Int(number) => query.bind(number),
            SqlValue::Text(text) => query.bind(text),
            SqlValue::Bool(flag) => query.bind(flag),
            SqlValue::Time(instant) => query.bind(instant),
            SqlValue::Json(json) => query.bind(Json(json)),
            SqlValue::Bytes(bytes) => query.bind(bytes),
        }
    }

    pub(super) fn to_postgres<'q>(&self, query: Query<'q, Postgres, PgArguments>) -> Query<'q, Postgres, PgArguments> {
        match self.clone() {
            SqlValue::Null => query.bind(Nothing),
            SqlValue::Int(number) => query.bind(number),
            SqlValue::Text(text) => query.bind(text),
            SqlValue::Bool(flag) => query.bind(flag),
            SqlValue::Time(instant) => query.bind(instant),
            SqlValue::Json(json) => query.bind(Json(json)),
            SqlValue::Bytes(bytes) => query.bind(bytes),
        }
    }
}

macro_rules! from {
    ($($from:ty => $make:expr),* $(,)?) => {
        $(impl From<$from> for SqlValue {
            fn from(value: $from) -> SqlValue {
                $make(value)
            }
        })*
    };
}

from! {
    i64 => SqlValue::Int,
    u32 => |number| SqlValue::Int(i64::from(number)),
    bool => SqlValue::Bool,
    Instant => SqlValue::Time,
    String => SqlValue::Text,
    &String => |text: &String| SqlValue::Text(text.clone()),
    &str => |text: &str| SqlValue::Text(text.to_owned()),
    serde_json::Value => SqlValue::Json,
    &[u8] => |bytes: &[u8]| SqlValue::Bytes(bytes.to_vec()),
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> SqlValue {
        value.map_or(SqlValue::Null, Into::into)
    }
}

/// NULL without a type: PostgreSQL takes the type of the column.
struct Nothing;

impl Type<Postgres> for Nothing {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Nothing {
    fn encode_by_ref(&self, _: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }
}

/// JSON in a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Json(pub serde_json::Value);

/// `jsonb` in PostgreSQL's catalogue, and its only version on the wire.
const JSONB: Oid = Oid(3802);
const JSONB_VERSION: u8 = 1;

impl Type<Postgres> for Json {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(JSONB)
    }
}

impl Encode<'_, Postgres> for Json {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.push(JSONB_VERSION);
        buffer.extend_from_slice(self.0.to_string().as_bytes());
        Ok(IsNull::No)
    }
}

impl Decode<'_, Postgres> for Json {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        match value.as_bytes()?.split_first() {
            Some((&JSONB_VERSION, text)) => Ok(Json(serde_json::from_slice(text)?)),
            _ => Err("an unknown version of jsonb".into()),
        }
    }
}

impl Type<Sqlite> for Json {
    fn type_info() -> SqliteTypeInfo {
        <String as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for Json {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <String as Encode<Sqlite>>::encode(self.0.to_string(), buffer)
    }
}

impl<'r> Decode<'r, Sqlite> for Json {
    fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Json(serde_json::from_str(<&str as Decode<Sqlite>>::decode(value)?)?))
    }
}
