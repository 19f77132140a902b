//! What the topology needs to know of a server.

use std::sync::Arc;

use crate::client::address::HostPort;

/// A primary that the topology starts, names and retires.
pub(crate) trait ManagedServer: Send + Sync + 'static {
    /// Where it is.
    fn address(&self) -> &HostPort;
    /// In a cluster: which slots it serves.
    fn assign_slots(&self, is_served: &dyn Fn(u16) -> bool);
    /// It is not used any more.
    fn retire(&self);
}

/// Starts to use the primary at an address.
pub(crate) type StartServer<P> = Arc<dyn Fn(HostPort) -> Arc<P> + Send + Sync>;
