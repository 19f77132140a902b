//! The topology: one server, the primary that Sentinels name, or the primaries of a cluster.

mod cluster;
mod lookup;
mod sentinel;
mod server;
mod slot_map;

use std::sync::Arc;

use self::cluster::ClusterTopology;
use self::sentinel::SentinelTopology;
pub(crate) use self::server::{ManagedServer, StartServer};
use crate::client::address::HostPort;
use crate::client::context::RedisContext;
use crate::client::url::Layout;

/// Which primary serves which slot.
pub(crate) enum Topology<P> {
    Single(Arc<P>),
    Sentinel(SentinelTopology<P>),
    Cluster(ClusterTopology<P>),
}

impl<P: ManagedServer> Topology<P> {
    /// Starts with the servers of the URL. Needs a Tokio runtime for the task that follows the topology.
    pub(crate) fn start(context: &Arc<RedisContext>, start: StartServer<P>) -> Topology<P> {
        let url = &context.config.url;
        match (&url.layout, url.hosts.as_slice()) {
            (Layout::Single, [address, ..]) => Topology::Single(start(address.clone())),
            (Layout::Cluster, _) => Topology::Cluster(ClusterTopology::start(context.clone(), start)),
            _ => Topology::Sentinel(SentinelTopology::start(context.clone(), start)),
        }
    }

    /// True if keys are spread over slots that one script cannot span.
    pub(crate) fn is_split(&self) -> bool {
        matches!(self, Topology::Cluster(_))
    }

    /// The primary that serves `slot` now.
    pub(crate) fn primary(&self, slot: u16) -> Option<Arc<P>> {
        match self {
            Topology::Single(primary) => Some(primary.clone()),
            Topology::Sentinel(sentinel) => sentinel.primary(),
            Topology::Cluster(cluster) => cluster.primary(slot),
        }
    }

    /// The primary at an address from a redirection.
    pub(crate) fn at(&self, address: &HostPort) -> Option<Arc<P>> {
        match self {
            Topology::Cluster(cluster) => cluster.at(address),
            _ => None, // only clusters redirect
        }
    }

    /// All primaries.
    pub(crate) fn primaries(&self) -> Vec<Arc<P>> {
        match self {
            Topology::Single(primary) => vec![primary.clone()],
            Topology::Sentinel(sentinel) => sentinel.primary().into_iter().collect(),
            Topology::Cluster(cluster) => cluster.primaries(),
        }
    }

    /// Stops following the topology and retires all primaries.
    pub(crate) fn stop(&self) {
        match self {
            Topology::Single(_) => {}
            Topology::Sentinel(sentinel) => sentinel.stop(),
            Topology::Cluster(cluster) => cluster.stop(),
        }
        self.primaries().iter().for_each(|primary| primary.retire());
    }
}
