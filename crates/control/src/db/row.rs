//! What comes out of a statement.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Column, Decode, Postgres, Row as _, Sqlite, Type};

use super::bad_cell;
use crate::Result;

/// One row of an answer.
pub(crate) enum Row {
    /// From SQLite.
    Sqlite(SqliteRow),
    /// From PostgreSQL.
    Postgres(PgRow),
}

/// What a column can be read as: `i64`, `String`, `bool`, `Vec<u8>`, [`Instant`](crate::Instant),
/// [`Json`](super::Json), or an `Option` of these.
pub(crate) trait Cell:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

impl<T> Cell for T where T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> {}

impl Row {
    /// The column at a position, counted from 0. An error names the column.
    pub(crate) fn get<T: Cell>(&self, position: usize) -> Result<T> {
        match self {
            Row::Sqlite(row) => row.try_get(position).map_err(|error| (name(row.columns(), position), error)),
            Row::Postgres(row) => row.try_get(position).map_err(|error| (name(row.columns(), position), error)),
        }
        .map_err(|(name, error)| bad_cell(&name, &error))
    }
}

fn name(columns: &[impl Column], position: usize) -> String {
    columns.get(position).map_or_else(|| position.to_string(), |column| column.name().to_owned())
}
