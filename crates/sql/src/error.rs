//! Errors, and their causes.

use std::fmt;

use tollgate_rules::problem::Problem;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed. It had no partial effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The record does not exist: its description.
    NotFound(String),
    /// The record exists already or is in use: the reason.
    Conflict(String),
    /// The record was changed since it was read.
    Stale {
        /// The record.
        what: String,
        /// Its present version; `None` if it was deleted.
        version: Option<i64>,
    },
    /// The input is invalid: every reason, with the path of the field.
    Invalid(Vec<FieldError>),
    /// The idempotency key was used with another body.
    KeyReused,
    /// The database does not answer, or not in time; try again. Contains its message.
    Unavailable(String),
    /// The database has no space left.
    Full(String),
    /// The tables do not have this version: what to do.
    Schema(String),
    /// An unexpected reply of the database.
    Unexpected(String),
}

/// An error in a field of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// Path of the field, such as `limit.window`; empty for the whole input.
    pub field: String,
    /// Stable name of the error, such as `unknown-field`.
    pub code: String,
    /// What was found.
    pub message: String,
    /// What is expected.
    pub help: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound(what) => write!(f, "there is no {what}"),
            Error::Conflict(what) => write!(f, "{what}"),
            Error::Stale { what, version: Some(version) } => {
                write!(f, "{what} was changed; it is at version {version}")
            }
            Error::Stale { what, version: None } => write!(f, "{what} is not there"),
            Error::Invalid(faults) => match faults.first() {
                Some(fault) => write!(f, "{}: {}", fault.field, fault.message),
                None => f.write_str("not valid"),
            },
            Error::KeyReused => f.write_str("this idempotency key was used for another request"),
            Error::Unavailable(reason) => write!(f, "the database does not answer: {reason}"),
            Error::Full(reason) => write!(f, "the database is full: {reason}"),
            Error::Schema(reason) | Error::Unexpected(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Error {}

impl From<Problem> for FieldError {
    fn from(problem: Problem) -> FieldError {
        FieldError { field: problem.field, code: problem.code.to_owned(), message: problem.message, help: problem.help }
    }
}

/// An error with its remedy.
pub fn field_error(field: &str, code: &str, message: &str, help: &str) -> FieldError {
    FieldError {
        field: field.to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
        help: Some(help.to_owned()),
    }
}
