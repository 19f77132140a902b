//! What a protocol reads out of the bytes of a reply.

/// Longest reply that is waited for: whoever sends more is not answering a check.
pub const REPLY_MAX: usize = 16 << 20;

/// One whole reply at the front of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedReply {
    /// Its bytes.
    pub length: usize,
    /// What it says.
    pub verdict: ReplyVerdict,
    /// The server closes the connection after it.
    pub is_last: bool,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyVerdict {
    /// The request may pass.
    Allowed,
    /// It may not.
    Denied,
    /// No decision, but this status; 0 where the protocol has no numbers for it.
    Failed(u16),
}

/// Bytes that are no reply, whatever follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedReply(pub &'static str);

/// Finds the first whole reply; `None` if its end has not come yet.
pub type FindReply = fn(&[u8]) -> Result<Option<ParsedReply>, MalformedReply>;
