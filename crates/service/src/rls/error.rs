//! Why a rate limit request has no answer.

use std::fmt;

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RlsError {
    /// The caller's mistake; nothing was charged.
    Invalid(String),
    /// Units could not be refunded: the store is away.
    StoreUnavailable,
}

impl fmt::Display for RlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RlsError::Invalid(why) => f.write_str(why),
            RlsError::StoreUnavailable => f.write_str("the store did not answer; nothing was given back"),
        }
    }
}

impl std::error::Error for RlsError {}
