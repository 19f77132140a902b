//! The modes of one direction.

use std::time::Duration;

/// What happens to the bytes of one direction, on every connection, from the moment it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkMode {
    /// Bytes pass.
    #[default]
    Pass,
    /// Everything arrives this much later.
    Delay(Duration),
    /// Everything arrives later, each piece by a random time up to this one, in order.
    Jitter(Duration),
    /// Nothing arrives, without an error. What was sent arrives when the mode changes, as TCP retransmits.
    Drop,
    /// The next bytes reset the connection; half of a reply still arrives.
    Reset,
    /// This many bytes arrive per second.
    Trickle(u32),
    /// The connection is closed after this many more bytes.
    CutAfter(u64),
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}
