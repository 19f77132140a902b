//! Rows of a result.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Column, Decode, Postgres, Row as _, Sqlite, Type};

use crate::Result;
use crate::bad_cell;

/// One row of a result.
pub enum SqlRow {
    /// From SQLite.
    Sqlite(SqliteRow),
    /// From PostgreSQL.
    Postgres(PgRow),
}

/// Types that a column can be read as: `i64`, `String`, `bool`, `Vec<u8>`, [`Instant`](crate::Instant),
/// [`Json`](crate::Json), or an `Option` of these.
pub trait FromColumn:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

impl<T> FromColumn for T where
    T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

impl SqlRow {
    /// The column at a position, counted from 0. An error names the column.
    pub fn get<T: FromColumn>(&self, position: usize) -> Result<T> {
        match self {
            SqlRow::Sqlite(row) => row.try_get(position).map_err(|error| (name(row.columns(), position), error)),
            SqlRow::Postgres(row) => row.try_get(position).map_err(|error| (name(row.columns(), position), error)),
        }
        .map_err(|(name, error)| bad_cell(&name, &error))
    }

    /// The bytes of a text, which SQLite does not validate; empty for NULL.
    pub fn bytes(&self, position: usize) -> Result<Vec<u8>> {
        Ok(match self {
            SqlRow::Sqlite(_) => self.get::<Option<Vec<u8>>>(position)?,
            SqlRow::Postgres(_) => self.get::<Option<String>>(position)?.map(String::into_bytes),
        }
        .unwrap_or_default())
    }

    /// A text for display; invalid UTF-8 is replaced.
    pub fn lossy_text(&self, position: usize) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(position)?).into_owned())
    }

    /// A text that can be used as a value in both databases; `None` if it is not UTF-8 or contains NUL.
    pub fn valid_text(&self, position: usize) -> Result<Option<String>> {
        Ok(String::from_utf8(self.bytes(position)?).ok().filter(|text| !text.contains('\0')))
    }
}

fn name(columns: &[impl Column], position: usize) -> String {
    columns.get(position).map_or_else(|| position.to_string(), |column| column.name().to_owned())
}
