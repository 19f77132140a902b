//! A parsed reply: its length, its verdict, and errors of its format.

/// Longest reply accepted: no reply to a check is longer.
pub const REPLY_MAX: usize = 16 << 20;

/// One whole reply at the front of the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedReply {
    /// Length in bytes.
    pub length: usize,
    /// The decision in it.
    pub verdict: ReplyVerdict,
    /// True if the server closes the connection after this reply.
    pub is_last: bool,
}

/// The decision in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyVerdict {
    /// The request is allowed.
    Allowed,
    /// The request is denied.
    Denied,
    /// No decision but this status; 0 for protocols without status numbers.
    Failed(u16),
}

/// Bytes that cannot be the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedReply(pub &'static str);

/// Parses the first reply; `None` if it is incomplete.
pub type FindReply = fn(&[u8]) -> Result<Option<ParsedReply>, MalformedReply>;
