//! The primaries of a cluster, and the slots of each.
//!
//! The map is read from any node that answers, every few seconds, and at once after a redirection. A redirected call
//! follows its redirection without waiting for the new map.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{RwLock, RwLockUpgradableReadGuard};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::lookup::{ask_once, until_topology_changed};
use super::server::{ManagedServer, StartServer};
use super::slot_map::SlotMap;
use crate::client::address::HostPort;
use crate::client::context::RedisContext;

const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A working cluster does not redirect to more unknown servers than this.
const NEWCOMERS_MAX: usize = 16;

pub(crate) struct ClusterTopology<P> {
    inner: Arc<Inner<P>>,
    task: JoinHandle<()>,
}

struct Inner<P> {
    context: Arc<RedisContext>,
    start: StartServer<P>,
    known: RwLock<Known<P>>,
}

struct Known<P> {
    map: SlotMap,
    /// The primaries of the map, in its order.
    primaries: Vec<Arc<P>>,
    /// Servers that redirections named and the map does not know yet: they may be about to take their first slot.
    newcomers: Vec<Arc<P>>,
}

impl<P: ManagedServer> ClusterTopology<P> {
    pub(super) fn start(context: Arc<RedisContext>, start: StartServer<P>) -> ClusterTopology<P> {
        let known = Known { map: SlotMap::empty(), primaries: Vec::new(), newcomers: Vec::new() };
        let inner = Arc::new(Inner { context, start, known: RwLock::new(known) });
        let task = tokio::spawn(follow(inner.clone()));
        ClusterTopology { inner, task }
    }

    pub(super) fn primary(&self, slot: u16) -> Option<Arc<P>> {
        let known = self.inner.known.read();
        known.primaries.get(known.map.place(slot)?).cloned()
    }

    /// The primary at an address from a redirection, whether the map knows it or not.
    pub(super) fn at(&self, address: &HostPort) -> Option<Arc<P>> {
        let is_at = |primary: &&Arc<P>| primary.address() == address;
        let known = self.inner.known.upgradable_read();
        if let Some(primary) = known.primaries.iter().chain(&known.newcomers).find(is_at) {
            return Some(primary.clone());
        }
        if known.newcomers.len() >= NEWCOMERS_MAX {
            return None;
        }
        let newcomer = (self.inner.start)(address.clone());
        RwLockUpgradableReadGuard::upgrade(known).newcomers.push(newcomer.clone());
        Some(newcomer)
    }

    pub(super) fn primaries(&self) -> Vec<Arc<P>> {
        self.inner.known.read().primaries.clone()
    }

    pub(super) fn stop(&self) {
        self.task.abort();
    }
}

impl<P> Known<P> {
    fn drain_all(&mut self) -> impl Iterator<Item = Arc<P>> + '_ {
        self.primaries.drain(..).chain(self.newcomers.drain(..))
    }
}

async fn follow<P: ManagedServer>(inner: Arc<Inner<P>>) {
    loop {
        match inner.read().await {
            Some(map) => inner.adopt(map),
            None => warn!("no node of the cluster returns a slot map"),
        }
        until_topology_changed(&inner.context, LOOK_EVERY).await;
    }
}

impl<P: ManagedServer> Inner<P> {
    /// The map of the first node that has one: nodes in use first, then those of the URL.
    async fn read(&self) -> Option<SlotMap> {
        let mut nodes: Vec<HostPort> = self.known.read().map.primaries().to_vec();
        nodes.extend(self.context.config.url.hosts.iter().cloned());
        nodes.dedup();
        for node in nodes {
            let login = self.context.config.url.login.as_ref();
            let reply = ask_once(&self.context, &node, login, &[b"CLUSTER", b"SLOTS"]).await;
            if let Some(map) = reply.and_then(|reply| SlotMap::read(&reply, &node)) {
                return Some(map);
            }
        }
        None
    }

    /// Switches to a new map. Primaries that stay keep their connections.
    fn adopt(&self, map: SlotMap) {
        let mut known = self.known.write();
        if known.map == map {
            return;
        }
        info!(primaries = map.primaries().len(), uncovered = map.uncovered(), "the cluster has a new slot map");
        let mut old: HashMap<HostPort, Arc<P>> =
            known.drain_all().map(|primary| (primary.address().clone(), primary)).collect();
        let start = |address: &HostPort| old.remove(address).unwrap_or_else(|| (self.start)(address.clone()));
        let primaries: Vec<Arc<P>> = map.primaries().iter().map(start).collect();
        for (place, primary) in primaries.iter().enumerate() {
            primary.assign_slots(&|slot| map.place(slot) == Some(place));
        }
        *known = Known { map, primaries, newcomers: Vec::new() };
        drop(known);
        old.values().for_each(|primary| primary.retire());
    }
}
