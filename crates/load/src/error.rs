//! Why a run could not start. Errors during a run are counted in [`Errors`](crate::Errors).

use std::fmt;

/// A run that could not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    kind: ErrorKind,
    text: String,
}

/// The cause of a [`LoadError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The target, the request or the plan is invalid.
    Invalid,
    /// The target does not accept connections.
    Connect,
    /// This machine lacks a resource: file descriptors, an event queue.
    System,
}

impl LoadError {
    pub(crate) fn invalid(text: impl Into<String>) -> LoadError {
        LoadError { kind: ErrorKind::Invalid, text: text.into() }
    }

    pub(crate) fn connect(text: impl Into<String>) -> LoadError {
        LoadError { kind: ErrorKind::Connect, text: text.into() }
    }

    pub(crate) fn system(error: std::io::Error) -> LoadError {
        LoadError { kind: ErrorKind::System, text: error.to_string() }
    }

    /// The cause of a [`LoadError`].
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for LoadError {}
