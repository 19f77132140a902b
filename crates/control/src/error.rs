//! What can go wrong, and whose fault it is.

use std::fmt;

use tollgate_rules::problem::Problem;

/// Short for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done. Whatever it is, nothing was half done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such thing: what was looked for.
    NotFound(String),
    /// There is one already, or it is in use: which.
    Conflict(String),
    /// Somebody else changed it since it was read.
    Stale {
        /// What was to be changed.
        what: String,
        /// Its version now; `None` if it is gone.
        version: Option<i64>,
    },
    /// What was sent cannot be: every reason, with the path of the field.
    Invalid(Vec<FieldError>),
    /// The same idempotency key came with another body.
    KeyReused,
    /// The database does not answer, or not in time; try again. Says what it said.
    Unavailable(String),
    /// There is no room left in the database.
    Full(String),
    /// The tables are not those of this version: what to do about it.
    Schema(String),
    /// The database said something that nobody expected.
    Unexpected(String),
}

/// One thing wrong with what was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// Path of the field, such as `limit.window`; empty for the whole.
    pub field: String,
    /// Stable name of the mistake, such as `unknown-field`.
    pub code: String,
    /// What was found.
    pub message: String,
    /// What would be right.
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
            Error::KeyReused => f.write_str("this idempotency key came with another request before"),
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

/// A fault with its remedy.
pub(crate) fn field_error(field: &str, code: &str, message: &str, help: &str) -> FieldError {
    FieldError {
        field: field.to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
        help: Some(help.to_owned()),
    }
}
