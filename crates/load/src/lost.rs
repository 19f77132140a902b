//! Why a connection cannot be used any more.

use crate::reply::Malformed;

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It never stood.
    Unopened(String),
    /// The server ended it.
    Closed,
    /// A reply took too long.
    Late,
    /// What came was no reply.
    Malformed(&'static str),
}

impl From<Malformed> for Lost {
    fn from(Malformed(why): Malformed) -> Lost {
        Lost::Malformed(why)
    }
}
