//! The topology: one server, the primary that Sentinels name, or the primaries of a cluster.

mod cluster;
mod sentinel;

use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tollgate_resp::RespValue;

use self::cluster::ClusterTopology;
use self::sentinel::SentinelTopology;
use crate::client::address::HostPort;
use crate::client::connection::{RedisConnection, SLOT_MAP_BYTES};
use crate::client::context::RedisContext;
use crate::client::url::{Layout, Login};

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

/// Minimum pause between lookups: more of them do not help a store that is down.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// Waits until a call was redirected or found no server, or until the next regular lookup.
pub(super) async fn until_topology_changed(context: &RedisContext, at_most: Duration) {
    let _ = time::timeout(at_most, context.topology_changed.notified()).await;
    time::sleep(LOOK_PAUSE).await;
}

/// Connects to a server, sends one command and closes the connection.
pub(super) async fn ask_once(
    context: &RedisContext,
    at: &HostPort,
    login: Option<&Login>,
    command: &[&[u8]],
) -> Option<RespValue> {
    let mut connection = RedisConnection::open_bare(context, at, login).await.ok()?;
    time::timeout(context.config.connect_timeout.into(), connection.call_for(command, SLOT_MAP_BYTES)).await.ok()?.ok()
}
