//! What a database complains about, in words of this crate.

use sqlx::Error as SqlError;
use sqlx::error::{DatabaseError, ErrorKind};

use crate::Error;

/// What a failure comes to.
pub(super) struct DatabaseFailure {
    /// For the caller.
    pub(super) error: Error,
    /// Another transaction was in the way; the same again may well succeed.
    pub(super) retryable: bool,
}

impl DatabaseFailure {
    /// One that nothing else is to be said about.
    pub(super) fn of(error: Error) -> DatabaseFailure {
        DatabaseFailure { error, retryable: false }
    }
}

impl From<SqlError> for DatabaseFailure {
    fn from(error: SqlError) -> DatabaseFailure {
        let retryable = matches!(&error, SqlError::Database(error) if is_retryable(error.as_ref()));
        DatabaseFailure { error: read(&error), retryable }
    }
}

/// A cell that does not hold what its column should.
pub(crate) fn bad_cell(column: &str, error: &SqlError) -> Error {
    let reason = match error {
        SqlError::ColumnDecode { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    Error::Unexpected(format!("column {column}: {reason}"))
}

fn read(error: &SqlError) -> Error {
    match error {
        SqlError::Database(error) => from_database(error.as_ref()),
        SqlError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => Error::Full(error.to_string()),
        SqlError::Io(_)
        | SqlError::Tls(_)
        | SqlError::PoolTimedOut
        | SqlError::PoolClosed
        | SqlError::WorkerCrashed => Error::Unavailable(error.to_string()),
        // A connection that broke in the middle of a message; the next one is a new one.
        SqlError::Protocol(_) | SqlError::BeginFailed => Error::Unavailable(error.to_string()),
        other => Error::Unexpected(other.to_string()),
    }
}

fn from_database(error: &dyn DatabaseError) -> Error {
    let said = error.message().to_owned();
    match error.kind() {
        ErrorKind::UniqueViolation => return Error::Conflict(format!("there is one like it already: {said}")),
        ErrorKind::ForeignKeyViolation => return Error::Conflict(format!("it refers to what is not there: {said}")),
        _ => {}
    }
    match code(error).as_str() {
        // SQLite: FULL; no room for the index of its log. PostgreSQL: disk_full.
        "sqlite:13" | "sqlite:shm" | "53100" => Error::Full(said),
        // SQLite: IOERR, all of whose kinds are 10 in the lower byte; CANTOPEN; BUSY; LOCKED; READONLY.
        "sqlite:10" | "sqlite:14" | "sqlite:5" | "sqlite:6" | "sqlite:8" => Error::Unavailable(said),
        // PostgreSQL: undefined_table, undefined_column.
        "42P01" | "42703" => no_tables(&said),
        "sqlite:1" if said.starts_with("no such table") || said.starts_with("no such column") => no_tables(&said),
        code if is_away(code) => Error::Unavailable(said),
        code => Error::Unexpected(format!("{said} ({code})")),
    }
}

fn no_tables(said: &str) -> Error {
    Error::Schema(format!("the tables are not those of this version; run `tollgate db migrate` ({said})"))
}

/// Classes and codes of PostgreSQL that pass by themselves: connection exceptions, refused logins, resources, operator
/// intervention (shutdown, statement_timeout), a standby that takes no writes, lost races.
fn is_away(code: &str) -> bool {
    ["08", "28", "40", "53", "57", "58"].iter().any(|class| code.starts_with(class))
        || ["25006", "25P03", "55P03", "3D000"].contains(&code)
}

fn is_retryable(error: &dyn DatabaseError) -> bool {
    // PostgreSQL: serialization_failure, deadlock_detected. SQLite: BUSY and its kinds.
    matches!(code(error).as_str(), "40001" | "40P01" | "sqlite:5")
}

/// The only kind of SQLite's input/output errors that means a full disk.
const IOERR_SHMSIZE: &str = "4874";

/// PostgreSQL's code of five characters, or SQLite's primary code: the lower byte of the extended one.
fn code(error: &dyn DatabaseError) -> String {
    let code = error.code().unwrap_or_default();
    match error.try_downcast_ref::<sqlx::sqlite::SqliteError>() {
        Some(_) if code == IOERR_SHMSIZE => "sqlite:shm".to_owned(),
        Some(_) => format!("sqlite:{}", code.parse::<i32>().unwrap_or(0) & 0xff),
        None => code.into_owned(),
    }
}
