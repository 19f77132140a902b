//! Why a run did not take place. What goes wrong during a run is counted instead, in [`Errors`](crate::Errors).

use std::fmt;

/// What is wrong with the order, or with the place it was sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    kind: ErrorKind,
    text: String,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The target, the request or the plan cannot be used as written.
    Invalid,
    /// Nobody answers there.
    Connect,
    /// This machine lacks something: file descriptors, an event queue.
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

    /// Whose fault it is.
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
