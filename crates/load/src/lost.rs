//! Why a connection cannot be used any more.

use crate::reply::MalformedReply;

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionLost {
    /// It never stood.
    Unopened(String),
    /// The server ended it.
    Closed,
    /// A reply took too long.
    Late,
    /// What came was no reply.
    Malformed(&'static str),
}

impl From<MalformedReply> for ConnectionLost {
    fn from(MalformedReply(why): MalformedReply) -> ConnectionLost {
        ConnectionLost::Malformed(why)
    }
}
