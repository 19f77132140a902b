//! What the network does to the bytes of one direction.

use std::time::Duration;

/// How one direction of every connection is treated, from the moment it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkMode {
    /// Bytes pass.
    #[default]
    Pass,
    /// Everything arrives this much later.
    Delay(Duration),
    /// Everything arrives later, each piece by a random time up to this one, in order.
    Jitter(Duration),
    /// Nothing arrives, nobody is told. What was sent arrives when the mode changes, as TCP sends again what was lost.
    Drop,
    /// What comes next ends the connection with a reset; half of a reply still arrives.
    Reset,
    /// So many bytes arrive per second.
    Trickle(u32),
    /// After so many more bytes the connection is closed.
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
