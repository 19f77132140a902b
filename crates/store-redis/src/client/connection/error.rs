//! Why a connection cannot be made, or not be used any longer.

use std::fmt;
use std::io;

use tollgate_store::StoreErrorKind;

use crate::client::failure::Refusal;

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// Nobody accepts, or nobody in time.
    Unreachable(String),
    /// Not done in the time there is for it.
    Late(String),
    /// Whoever accepted is not trusted.
    Untrusted(String),
    /// The server refused us, at this step.
    Refused(Refusal, &'static str),
    /// What came is no reply of Redis, or none to what was asked.
    Strange(String),
}

impl ConnectError {
    /// What it is to those who wait.
    pub(crate) fn kind(&self) -> StoreErrorKind {
        match self {
            ConnectError::Refused(Refusal::Other, _) => StoreErrorKind::Refused,
            ConnectError::Refused(refusal, _) => refusal.treatment().kind().unwrap_or(StoreErrorKind::Unavailable),
            _ => StoreErrorKind::Unavailable,
        }
    }

    /// The word of the server, if it said one.
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
    /// The other side is gone.
    Closed(io::Error),
    /// It said what it could not have been asked for.
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
