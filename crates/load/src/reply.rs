//! What a protocol reads out of the bytes of a reply.

/// Longest reply that is waited for: whoever sends more is not answering a check.
pub const REPLY_MAX: usize = 16 << 20;

/// One whole reply at the front of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its bytes.
    pub length: usize,
    /// What it says.
    pub verdict: Verdict,
    /// The server closes the connection after it.
    pub is_last: bool,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request may pass.
    Allowed,
    /// It may not.
    Denied,
    /// No decision, but this status; 0 where the protocol has no numbers for it.
    Failed(u16),
}

/// Bytes that are no reply, whatever follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Finds the first whole reply; `None` if its end has not come yet.
pub type Find = fn(&[u8]) -> Result<Option<Reply>, Malformed>;
