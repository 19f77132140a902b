//! Errors of connections.

use std::fmt;
use std::io;

use tollgate_store::StoreErrorKind;

use crate::client::failure::Refusal;

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The server is unreachable.
    Unreachable(String),
    /// Not finished within the connect timeout.
    Late(String),
    /// The certificate of the server is not trusted.
    Untrusted(String),
    /// The server refused this step.
    Refused(Refusal, &'static str),
    /// The reply is malformed or unexpected.
    Strange(String),
}

impl ConnectError {
    /// The kind of error that callers receive.
    pub(crate) fn kind(&self) -> StoreErrorKind {
        match self {
            ConnectError::Refused(Refusal::Other, _) => StoreErrorKind::Refused,
            ConnectError::Refused(refusal, _) => refusal.treatment().kind().unwrap_or(StoreErrorKind::Unavailable),
            _ => StoreErrorKind::Unavailable,
        }
    }

    /// The error code of the server, if it sent one.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if let ConnectError::Refused(refusal, _) = self { Some(*refusal) } else { None }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Unreachable(why) | ConnectError::Late(why) => write!(f, "cannot connect: {why}"),
            ConnectError::Untrusted(why) => write!(f, "TLS: {why}"),
            ConnectError::Refused(refusal, step) => write!(f, "{} ({step})", refusal.meaning()),
            ConnectError::Strange(what) => f.write_str(what),
        }
    }
}

/// Why a connection cannot be used any longer.
#[derive(Debug)]
pub(crate) enum ConnectionLost {
    /// The server closed it.
    Closed(io::Error),
    /// The server sent something that was not requested.
    OutOfStep(&'static str),
}

impl fmt::Display for ConnectionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionLost::Closed(error) => write!(f, "the connection is gone: {error}"),
            ConnectionLost::OutOfStep(what) => write!(f, "the server is out of step: {what}"),
        }
    }
}

impl From<io::Error> for ConnectionLost {
    fn from(error: io::Error) -> ConnectionLost {
        ConnectionLost::Closed(error)
    }
}
