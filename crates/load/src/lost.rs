//! Why a connection was lost.

use crate::reply::MalformedReply;

/// Why a connection was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEnded {
    /// It could not be established.
    Unopened(String),
    /// The server closed it.
    Closed,
    /// A reply timed out.
    Late,
    /// The server sent something that is not a reply.
    Malformed(&'static str),
}

impl From<MalformedReply> for ConnectionEnded {
    fn from(MalformedReply(why): MalformedReply) -> ConnectionEnded {
        ConnectionEnded::Malformed(why)
    }
}
