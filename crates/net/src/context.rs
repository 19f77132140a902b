//! Context shared by a listener's connections, and the protocol trait.

use std::sync::Arc;

use tollgate_core::Clock;

use super::{ByteBudget, Drain, NetLimits, Peer, Stream};

/// Context shared by all connections of a listener.
#[derive(Clone)]
pub struct ListenerContext {
    /// Caps and timeouts.
    pub limits: NetLimits,
    /// Announces and begins the shutdown.
    pub drain: Drain,
    /// Time for `Date` and expiry.
    pub clock: Arc<dyn Clock>,
    /// Memory for bodies and responses in transit.
    pub budget: ByteBudget,
}

/// A protocol on top of an accepted connection. Every transport implements it.
pub trait Protocol: Send + Sync + 'static {
    /// Serves one accepted connection until it closes.
    fn serve(&self, stream: Stream, peer: &Peer, context: &ListenerContext) -> impl Future<Output = ()> + Send;

    /// The bytes sent to a connection that exceeds a cap, before anything was read; empty if the client could not
    /// understand them.
    fn too_many_connections(&self) -> &'static [u8];
}
