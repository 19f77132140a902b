//! The primary as the topology sees it.

use std::sync::Arc;

use crate::client::address::HostPort;

/// A primary that the topology starts and retires.
pub(crate) trait ManagedServer: Send + Sync + 'static {
    /// Its address.
    fn address(&self) -> &HostPort;
    /// Tells it which slots of a cluster it serves.
    fn assign_slots(&self, is_served: &dyn Fn(u16) -> bool);
    /// Ends its use.
    fn retire(&self);
}

/// Starts to use the primary at an address.
pub(crate) type StartServer<P> = Arc<dyn Fn(HostPort) -> Arc<P> + Send + Sync>;
