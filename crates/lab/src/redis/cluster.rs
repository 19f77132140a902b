//! A Redis Cluster of three primaries, each with a replica.

use std::time::Duration;

use tollgate_resp::RespValue;

use super::{RedisClient, RedisOptions, RedisServer};
use crate::patience;

const PRIMARIES: usize = 3;
const NODES: usize = 2 * PRIMARIES;
const SLOTS: u16 = 16_384;
const PATIENCE: Duration = Duration::from_secs(30);

/// Six processes. Nodes 0 to 2 are primaries at first, node 3 is the replica of node 0 and so on. The node timeout is one
/// second.
#[derive(Debug)]
pub struct RedisCluster {
    /// The nodes.
    pub nodes: Vec<RedisServer>,
    ids: Vec<String>,
}

impl RedisServer {
    /// Starts a cluster of one server, which owns all slots: keys that a script does not declare, or that are in different
    /// slots, are errors as in any cluster.
    pub fn alone_in_a_cluster() -> RedisServer {
        let server = RedisOptions { in_cluster: true, ..RedisOptions::default() }.start();
        server.client().succeed(&["CLUSTER", "ADDSLOTSRANGE", "0", &(SLOTS - 1).to_string()]);
        patience::until("the only node has all slots", PATIENCE, || state(&server) == Some(true));
        server
    }
}

impl RedisCluster {
    /// Starts all nodes, and waits until all report a working cluster.
    pub fn start() -> RedisCluster {
        RedisCluster::start_as(&RedisOptions::default())
    }

    /// As [`start`](RedisCluster::start), with these options for every node.
    pub fn start_as(plan: &RedisOptions) -> RedisCluster {
        let plan = RedisOptions { in_cluster: true, ..plan.clone() }.with(&[
            "--cluster-node-timeout",
            "1000",
            "--cluster-replica-validity-factor",
            "0",
            "--repl-diskless-sync-delay",
            "0",
        ]);
        let nodes: Vec<RedisServer> = (0..NODES).map(|_| plan.clone().start()).collect();
        let ids = nodes.iter().map(|node| node.client().text(&["CLUSTER", "MYID"])).collect();
        let cluster = RedisCluster { nodes, ids };
        cluster.assign_slots();
        cluster.introduce();
        cluster.assign_replicas();
        cluster.wait_until_ready();
        cluster
    }

    fn assign_slots(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            let mut client = node.client();
            client.succeed(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            if index < PRIMARIES {
                let bound = |index: usize| usize::from(SLOTS) * index / PRIMARIES;
                let (first, last) = (bound(index).to_string(), (bound(index + 1) - 1).to_string());
                client.succeed(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
        }
    }

    fn introduce(&self) {
        for node in &self.nodes[1..] {
            let (port, bus) = (node.port().to_string(), node.bus().to_string());
            self.nodes[0].client().succeed(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        patience::until("the nodes know each other", PATIENCE, || {
            self.nodes.iter().all(|node| self.sees(node, |line| !line.contains("handshake")) == NODES)
        });
    }

    fn assign_replicas(&self) {
        for (index, node) in self.nodes[PRIMARIES..].iter().enumerate() {
            node.client().succeed(&["CLUSTER", "REPLICATE", &self.ids[index]]);
        }
    }

    fn wait_until_ready(&self) {
        patience::until("all nodes agree about the cluster", PATIENCE, || {
            self.is_ok()
                && self.nodes.iter().all(|node| self.sees(node, |line| line.contains("slave")) == PRIMARIES)
                && self.nodes[PRIMARIES..].iter().all(is_linked)
        });
    }

    /// The number of matching lines in a node's view of the cluster.
    fn sees(&self, node: &RedisServer, is_such: impl Fn(&str) -> bool) -> usize {
        node.client().text(&["CLUSTER", "NODES"]).lines().filter(|line| is_such(line)).count()
    }

    /// Whether every reachable node reports a working cluster.
    pub fn is_ok(&self) -> bool {
        let mut answers = self.nodes.iter().filter_map(state);
        answers.next().is_some_and(|first| first && answers.all(|ok| ok))
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(RedisServer::address).collect();
        format!("redis-cluster://{}", addresses.join(","))
    }

    /// The node that owns a slot, as the first node that answers sees it.
    pub fn primary_of(&self, slot: u16) -> usize {
        self.owner(slot).unwrap_or_else(|| panic!("no node knows the owner of slot {slot}"))
    }

    fn owner(&self, slot: u16) -> Option<usize> {
        let views = self.nodes.iter().filter_map(|node| {
            let mut client = RedisClient::connect(node.port()).ok()?.patience(Duration::from_millis(300));
            client.try_call(&["CLUSTER", "SLOTS"]).ok()
        });
        views.into_iter().find_map(|view| {
            let mut ranges = view.array()?.iter().filter_map(RespValue::array);
            let range = ranges.find(|range| {
                let bound = |at: usize| range.get(at).and_then(RespValue::integer).unwrap_or(-1);
                (bound(0)..=bound(1)).contains(&i64::from(slot))
            })?;
            let port = range.get(2)?.array()?.get(1)?.integer()?;
            self.nodes.iter().position(|node| i64::from(node.port()) == port)
        })
    }

    /// The other node of a pair of primary and replica.
    pub fn partner_of(&self, node: usize) -> usize {
        (node + PRIMARIES) % NODES
    }

    /// Waits until another node than `old` owns the slot and the cluster works, and returns how long that took.
    pub fn wait_for_failover(&self, slot: u16, old: usize) -> Duration {
        patience::until("the replica takes over", PATIENCE, || {
            self.owner(slot).is_some_and(|owner| owner != old) && self.is_ok()
        })
    }

    /// Waits until every reachable node reports a working cluster.
    pub fn wait_until_ok(&self) -> Duration {
        patience::until("the cluster works again", PATIENCE, || self.is_ok())
    }

    /// Starts to migrate a slot: requests for keys that have moved, or are new, get ASK; for some of each, TRYAGAIN.
    pub fn open_move(&self, slot: u16, to: usize) {
        let (from, slot) = (self.primary_of(slot), slot.to_string());
        self.nodes[to].client().succeed(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.ids[from]]);
        self.nodes[from].client().succeed(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.ids[to]]);
    }

    /// Moves at most this many keys of a migrating slot, and returns how many it moved.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize, most: usize) -> usize {
        let mut client = self.nodes[from].client();
        let keys = client.succeed(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &most.to_string()]);
        let keys: Vec<String> =
            keys.array().unwrap_or_default().iter().filter_map(RespValue::text).map(as_text).collect();
        let port = self.nodes[to].port().to_string();
        for key in &keys {
            client.succeed(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
        }
        keys.len()
    }

    /// Ends the migration: the old owner answers MOVED from now on.
    pub fn close_move(&self, slot: u16, to: usize) {
        let slot = slot.to_string();
        for node in std::iter::once(to).chain(0..NODES) {
            if let Ok(mut client) = RedisClient::connect(self.nodes[node].port()) {
                let _ = client.call(&["CLUSTER", "SETSLOT", &slot, "NODE", &self.ids[to]]); // replicas refuse it, and learn by gossip
            }
        }
    }
}

fn as_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a node reports a working cluster; `None` if it does not answer.
fn state(node: &RedisServer) -> Option<bool> {
    let mut client = RedisClient::connect(node.port()).ok()?.patience(Duration::from_millis(300));
    match client.try_call(&["CLUSTER", "INFO"]).ok()? {
        RespValue::Text(text) => Some(as_text(&text).contains("cluster_state:ok")),
        _ => None,
    }
}

fn is_linked(replica: &RedisServer) -> bool {
    replica.client().text(&["INFO", "replication"]).contains("master_link_status:up")
}
