//! Where the primaries are: one server, the one that Sentinels name, or those of a cluster.

mod cluster;
mod map;
mod sentinel;

use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tollgate_resp::RespValue;

use self::cluster::Cluster;
use self::sentinel::Sentinel;
use crate::client::address::HostPort;
use crate::client::connection::{Connection, SLOT_MAP_BYTES};
use crate::client::context::Shared;
use crate::client::url::{Layout, Login};

/// Time between two looks, however many ask for one: a store that is away is not helped by more of them.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// A primary that the topology starts, names and retires.
pub(crate) trait Server: Send + Sync + 'static {
    /// Where it is.
    fn address(&self) -> &HostPort;
    /// In a cluster: which slots it serves.
    fn assign_slots(&self, is_served: &dyn Fn(u16) -> bool);
    /// It is not used any more.
    fn retire(&self);
}

/// Starts to use the primary at an address.
pub(crate) type StartServer<P> = Arc<dyn Fn(HostPort) -> Arc<P> + Send + Sync>;

/// Which primary serves which slot.
pub(crate) enum Topology<P> {
    Single(Arc<P>),
    Sentinel(Sentinel<P>),
    Cluster(Cluster<P>),
}

impl<P: Server> Topology<P> {
    /// Finds the servers that the URL names. Needs a runtime: what follows the servers around runs on it.
    pub(crate) fn start(shared: &Arc<Shared>, start: StartServer<P>) -> Topology<P> {
        let url = &shared.config.url;
        match (&url.layout, url.hosts.as_slice()) {
            (Layout::Single, [address, ..]) => Topology::Single(start(address.clone())),
            (Layout::Cluster, _) => Topology::Cluster(Cluster::start(shared.clone(), start)),
            _ => Topology::Sentinel(Sentinel::start(shared.clone(), start)),
        }
    }

    /// True if keys are spread over slots that no script can cross.
    pub(crate) fn is_split(&self) -> bool {
        matches!(self, Topology::Cluster(_))
    }

    /// Who serves `slot` at the moment.
    pub(crate) fn primary(&self, slot: u16) -> Option<Arc<P>> {
        match self {
            Topology::Single(primary) => Some(primary.clone()),
            Topology::Sentinel(sentinel) => sentinel.primary(),
            Topology::Cluster(cluster) => cluster.primary(slot),
        }
    }

    /// The primary at an address that a redirect named.
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

    /// Stops following the servers around.
    pub(crate) fn stop(&self) {
        match self {
            Topology::Single(_) => {}
            Topology::Sentinel(sentinel) => sentinel.stop(),
            Topology::Cluster(cluster) => cluster.stop(),
        }
        self.primaries().iter().for_each(|primary| primary.retire());
    }
}

/// Waits until somebody was sent elsewhere or found nobody, or until it is time to look again anyway.
async fn until_unsettled(shared: &Shared, at_most: Duration) {
    let _ = time::timeout(at_most, shared.unsettled.notified()).await;
    time::sleep(LOOK_PAUSE).await;
}

/// Connects to a server, asks one thing and leaves.
async fn ask_once(shared: &Shared, at: &HostPort, login: Option<&Login>, command: &[&[u8]]) -> Option<RespValue> {
    let mut connection = Connection::open_bare(shared, at, login).await.ok()?;
    time::timeout(shared.config.connect_timeout.into(), connection.call_for(command, SLOT_MAP_BYTES)).await.ok()?.ok()
}
