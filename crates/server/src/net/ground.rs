//! What stands under every connection of a listener, and whoever talks over it.

use std::sync::Arc;

use tollgate_core::Clock;

use super::{Drain, NetLimits, Peer, Stream, Transit};

/// What all connections of a listener share.
#[derive(Clone)]
pub struct Ground {
    /// Caps and deadlines.
    pub limits: NetLimits,
    /// The end, once it has begun.
    pub drain: Drain,
    /// Tells the date of answers.
    pub clock: Arc<dyn Clock>,
    /// Memory for bytes on their way.
    pub transit: Transit,
}

/// A protocol: whoever talks over connections that were let in.
pub trait Speak: Send + Sync + 'static {
    /// Serves one connection until it ends.
    fn speak(&self, stream: Stream, peer: &Peer, ground: &Ground) -> impl Future<Output = ()> + Send;

    /// What is sent to a caller there is no room for, before a byte of it was read; nothing, where it would not be
    /// understood.
    fn no_room(&self) -> &'static [u8];
}
