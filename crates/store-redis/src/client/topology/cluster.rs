//! The primaries of a cluster, and the slots of each.
//!
//! The map is read from any node that answers, every few seconds, and at once after a redirection. A redirected call
//! follows its redirection without waiting for the new map.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{RwLock, RwLockUpgradableReadGuard};
use tokio::task::JoinHandle;
use tollgate_resp::RespValue;
use tracing::{info, warn};

use super::{ManagedServer, StartServer, ask_once, until_topology_changed};
use crate::client::address::HostPort;
use crate::client::context::RedisContext;
use crate::client::slot::SLOTS;

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
        known.primaries.get(known.map.primary_of(slot)?).cloned()
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
        for (index, primary) in primaries.iter().enumerate() {
            primary.assign_slots(&|slot| map.primary_of(slot) == Some(index));
        }
        *known = Known { map, primaries, newcomers: Vec::new() };
        drop(known);
        old.values().for_each(|primary| primary.retire());
    }
}

/// The primaries and their slots. An index per slot keeps the lookup to one load per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotMap {
    primaries: Vec<HostPort>,
    /// Index into `primaries`; [`UNSERVED`] for a slot without a primary.
    slots: Box<[u16]>,
}

const UNSERVED: u16 = u16::MAX;

impl SlotMap {
    /// A map without servers.
    pub(super) fn empty() -> SlotMap {
        SlotMap { primaries: Vec::new(), slots: vec![UNSERVED; usize::from(SLOTS)].into() }
    }

    /// Reads the reply of the server at `asked` to `CLUSTER SLOTS`; `None` if it is malformed.
    pub(super) fn read(reply: &RespValue, asked: &HostPort) -> Option<SlotMap> {
        let mut map = SlotMap::empty();
        for range in reply.array()? {
            let [first, last, primary, ..] = range.array()? else { return None };
            let (first, last) = (usize::try_from(first.integer()?).ok()?, usize::try_from(last.integer()?).ok()?);
            let primary = map.index_of(address(primary, asked)?)?;
            map.slots.get_mut(first..=last)?.fill(primary);
        }
        (!map.primaries.is_empty()).then_some(map)
    }

    /// The primaries.
    pub(super) fn primaries(&self) -> &[HostPort] {
        &self.primaries
    }

    /// The index of the primary that serves `slot`.
    pub(super) fn primary_of(&self, slot: u16) -> Option<usize> {
        let index = *self.slots.get(usize::from(slot))?;
        (index != UNSERVED).then_some(usize::from(index))
    }

    /// Number of slots without a primary.
    pub(super) fn uncovered(&self) -> usize {
        self.slots.iter().filter(|index| **index == UNSERVED).count()
    }

    fn index_of(&mut self, address: HostPort) -> Option<u16> {
        let index = self.primaries.iter().position(|other| *other == address).unwrap_or(self.primaries.len());
        if index == self.primaries.len() {
            self.primaries.push(address);
        }
        u16::try_from(index).ok()
    }
}

/// A node of the reply. One without a host is the server that replied.
fn address(node: &RespValue, asked: &HostPort) -> Option<HostPort> {
    let [host, port, ..] = node.array()? else { return None };
    let host = match host.text() {
        None | Some(b"" | b"?") => asked.host.clone(),
        Some(host) => std::str::from_utf8(host).ok()?.to_owned(),
    };
    Some(HostPort { host, port: u16::try_from(port.integer()?).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &'static str, port: i64) -> RespValue {
        RespValue::Array(vec![RespValue::Text(host.into()), RespValue::Integer(port), RespValue::Text("id".into())])
    }

    fn range(first: i64, last: i64, nodes: Vec<RespValue>) -> RespValue {
        RespValue::Array([vec![RespValue::Integer(first), RespValue::Integer(last)], nodes].concat())
    }

    fn asked() -> HostPort {
        HostPort { host: "10.0.0.1".to_owned(), port: 7000 }
    }

    #[test]
    fn every_slot_finds_its_primary() {
        let reply = RespValue::Array(vec![
            range(0, 5460, vec![node("", 7000), node("10.0.0.4", 7003)]),
            range(5461, 10_922, vec![node("10.0.0.2", 7001)]),
            range(10_923, 16_000, vec![node("", 7000)]),
        ]);
        let map = SlotMap::read(&reply, &asked()).unwrap();
        let at = |slot| map.primary_of(slot).and_then(|index| map.primaries().get(index)).map(ToString::to_string);
        assert_eq!(at(0).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(at(5461).as_deref(), Some("10.0.0.2:7001"));
        assert_eq!(at(16_000).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!([5460, 5461, 10_922, 10_923].map(|slot| map.primary_of(slot)), [Some(0), Some(1), Some(1), Some(0)]);
        assert_eq!((at(16_001), map.primaries().len(), map.uncovered()), (None, 2, 383));
    }

    #[test]
    fn malformed_maps_are_refused() {
        for reply in
            [RespValue::Nil, RespValue::Array(vec![]), RespValue::Array(vec![range(0, 20_000, vec![node("h", 1)])])]
        {
            assert_eq!(SlotMap::read(&reply, &asked()), None);
        }
    }
}
