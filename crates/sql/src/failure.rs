//! Maps errors of the databases to errors of this crate.

use sqlx::Error as SqlError;
use sqlx::error::{DatabaseError, ErrorKind};

use crate::Error;

/// A failed statement.
pub struct DatabaseFailure {
    /// The error for the caller.
    pub error: Error,
    /// Another transaction was in conflict; a retry may succeed.
    pub retryable: bool,
}

impl DatabaseFailure {
    /// A failure that a retry does not mend.
    pub fn of(error: Error) -> DatabaseFailure {
        DatabaseFailure { error, retryable: false }
    }
}

impl From<SqlError> for DatabaseFailure {
    fn from(error: SqlError) -> DatabaseFailure {
        let retryable = matches!(&error, SqlError::Database(error) if is_retryable(error.as_ref()));
        DatabaseFailure { error: read(&error), retryable }
    }
}

/// The error of a cell that does not have the type of its column.
pub fn bad_cell(column: &str, error: &SqlError) -> Error {
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
        // The connection broke in the middle of a message; the next statement gets a new one.
        SqlError::Protocol(_) | SqlError::BeginFailed => Error::Unavailable(error.to_string()),
        other => Error::Unexpected(other.to_string()),
    }
}

fn from_database(error: &dyn DatabaseError) -> Error {
    let message = error.message().to_owned();
    match error.kind() {
        ErrorKind::UniqueViolation => return Error::Conflict(format!("a record with the same key exists: {message}")),
        ErrorKind::ForeignKeyViolation => return Error::Conflict(format!("it refers to a missing record: {message}")),
        _ => {}
    }
    match code(error).as_str() {
        // SQLite: FULL; no space for the index of the write-ahead log. PostgreSQL: disk_full.
        "sqlite:13" | "sqlite:shm" | "53100" => Error::Full(message),
        // SQLite: IOERR, whose variants all have 10 in the lower byte; CANTOPEN; BUSY; LOCKED; READONLY.
        "sqlite:10" | "sqlite:14" | "sqlite:5" | "sqlite:6" | "sqlite:8" => Error::Unavailable(message),
        // PostgreSQL: undefined_table, undefined_column.
        "42P01" | "42703" => no_tables(&message),
        "sqlite:1" if message.starts_with("no such table") || message.starts_with("no such column") => {
            no_tables(&message)
        }
        code if is_transient(code) => Error::Unavailable(message),
        code => Error::Unexpected(format!("{message} ({code})")),
    }
}

fn no_tables(message: &str) -> Error {
    Error::Schema(format!("the tables do not have the version of this program; run `tollgate db migrate` ({message})"))
}

/// PostgreSQL's transient classes and codes: connection exceptions, refused logins, resources, operator intervention
/// (shutdown, statement_timeout), a read-only standby, conflicts.
fn is_transient(code: &str) -> bool {
    ["08", "28", "40", "53", "57", "58"].iter().any(|class| code.starts_with(class))
        || ["25006", "25P03", "55P03", "3D000"].contains(&code)
}

fn is_retryable(error: &dyn DatabaseError) -> bool {
    // PostgreSQL: serialization_failure, deadlock_detected. SQLite: BUSY and its variants.
    matches!(code(error).as_str(), "40001" | "40P01" | "sqlite:5")
}

/// The only I/O error of SQLite that means a full disk.
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
