//! The nodes of a fleet: what each tells of itself, and what is known of it.

use serde_json::{Value, json};
use tollgate_control::{Enforcement, Instant};

use super::node_health::{DatabaseHealth, StoreServer};

/// The nodes of the fleet, as this one knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetNodeList {
    /// When the others were last read from the shared store; `None` without one, or before the first time.
    pub read_at: Option<Instant>,
    /// This node first, then the others by name.
    pub nodes: Vec<FleetNodeStatus>,
}

impl FleetNodeList {
    /// Without nodes that were killed and started again: missing, while one of that name started after them.
    pub fn without_predecessors(mut self) -> FleetNodeList {
        let starts: Vec<(String, Option<Instant>)> = (self.nodes.iter().filter(|node| !node.is_missing))
            .map(|node| (node.snapshot.node.clone(), node.snapshot.started_at))
            .collect();
        self.nodes.retain(|node| {
            let is_successor = |(name, started_at): &(String, Option<Instant>)| {
                *name == node.snapshot.node && *started_at > Some(node.seen_at)
            };
            !node.is_missing || !starts.iter().any(is_successor)
        });
        self
    }
}

/// One node of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetNodeStatus {
    /// Its name in the store, unlike that of any other node: two on one machine may have the same name.
    pub node_id: String,
    /// True for the node that answers.
    pub is_self: bool,
    /// When it last told of itself.
    pub seen_at: Instant,
    /// True if it had stopped to, when the store was last read.
    pub is_missing: bool,
    /// True if it decides by other rules than the node that answers.
    pub has_other_rules: bool,
    /// What it told.
    pub snapshot: NodeSnapshot,
}

/// What a node tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSnapshot {
    /// Its name.
    pub node: String,
    /// Its version.
    pub version: String,
    /// When it started.
    pub started_at: Option<Instant>,
    /// The generation of the rule set in force, counted by the node.
    pub serving: u64,
    /// The generation of the database in force.
    pub generation: Option<i64>,
    /// Its mode; `None` if it is one that this version does not know.
    pub mode: Option<Enforcement>,
    /// The state of its database.
    pub database: &'static str,
    /// The servers of the shared store, as it sees them.
    pub store: Vec<StoreServer>,
}

/// Servers that a node tells of; those that are not up come first.
const SERVERS_MAX: usize = 32;
/// Longest text of another node that is read, and longest word in it.
const TEXT_BYTES_MAX: usize = 16 << 10;
const WORD_BYTES_MAX: usize = 256;
const STATES: [&str; 3] = ["up", "recovering", "down"];
const UNKNOWN: &str = "unknown";

impl NodeSnapshot {
    /// The text that other nodes read.
    pub fn text(&self) -> String {
        self.json().to_string()
    }

    /// Reads the text of another node. The store is shared with other programs and versions, so nothing about it is taken
    /// for granted: what is not understood is left out.
    pub fn read(text: &str) -> NodeSnapshot {
        let json: Value = match text.len() {
            0..=TEXT_BYTES_MAX => serde_json::from_str(text).unwrap_or_default(),
            _ => Value::Null,
        };
        let word = |of: &Value, name: &str| {
            let word = of.get(name).and_then(Value::as_str).unwrap_or_default();
            word.chars().filter(|letter| !letter.is_control()).take(WORD_BYTES_MAX).collect::<String>()
        };
        let known =
            |word: &str, words: &[&'static str]| words.iter().copied().find(|known| *known == word).unwrap_or(UNKNOWN);
        let database = [DatabaseHealth::Off, DatabaseHealth::Up, DatabaseHealth::Away(String::new())];
        let servers = json.get("store").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let server = |server: &Value| StoreServer {
            address: word(server, "address"),
            state: known(&word(server, "state"), &STATES),
        };
        NodeSnapshot {
            node: word(&json, "node"),
            version: word(&json, "version"),
            started_at: Instant::parse(&word(&json, "started_at")).ok(),
            serving: json.get("serving").and_then(Value::as_u64).unwrap_or_default(),
            generation: json.get("generation").and_then(Value::as_i64),
            mode: Enforcement::named(&word(&json, "mode")),
            database: known(&word(&json, "database"), &database.each_ref().map(DatabaseHealth::name)),
            store: servers.iter().take(SERVERS_MAX).map(server).collect(),
        }
    }

    /// What it tells, as JSON.
    pub(crate) fn json(&self) -> Value {
        let NodeSnapshot { node, version, started_at, serving, generation, mode, database, store } = self;
        let mut servers: Vec<&StoreServer> = store.iter().collect();
        servers.sort_by_key(|server| server.state == "up");
        let servers = servers.iter().take(SERVERS_MAX);
        json!({
            "node": node,
            "version": version,
            "started_at": started_at.map(|at| at.to_string()),
            "serving": serving,
            "generation": generation,
            "mode": mode.map_or(UNKNOWN, Enforcement::name),
            "database": database,
            "store": servers.map(|server| json!({ "address": server.address, "state": server.state })).collect::<Value>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> NodeSnapshot {
        let server = |address: &str, state| StoreServer { address: address.to_owned(), state };
        NodeSnapshot {
            node: "b".to_owned(),
            version: "1.2.3".to_owned(),
            started_at: Some(Instant(1_700_000_000_000_000)),
            serving: 7,
            generation: Some(42),
            mode: Some(Enforcement::Shadow),
            database: "away",
            store: vec![server("b:6379", "down"), server("a:6379", "up")],
        }
    }

    #[test]
    fn what_a_node_tells_is_read_by_another() {
        assert_eq!(NodeSnapshot::read(&snapshot().text()), snapshot());
        let many = (0..100).map(|at| StoreServer {
            address: format!("redis-{at}.some-long-name-of-a-cluster.example:6379"),
            state: if at == 99 { "down" } else { "up" },
        });
        let text = NodeSnapshot { store: many.collect(), ..snapshot() }.text();
        let told = NodeSnapshot::read(&text);
        assert!(text.len() < 4096, "{} bytes", text.len());
        assert_eq!((told.store.len(), told.store[0].state), (SERVERS_MAX, "down"), "the one that matters is told");
    }

    #[test]
    fn a_node_that_was_started_again_is_not_missed() {
        let node = |name: &str, is_missing, started_at, seen_at| FleetNodeStatus {
            node_id: format!("{name}-{started_at}"),
            is_self: false,
            seen_at: Instant(seen_at),
            is_missing,
            has_other_rules: false,
            snapshot: NodeSnapshot { node: name.to_owned(), started_at: Some(Instant(started_at)), ..snapshot() },
        };
        let nodes = vec![
            node("a", false, 50, 90),
            node("a", true, 10, 40), // killed before the first one started
            node("a", true, 10, 60), // another of that name, killed after it
            node("b", true, 10, 40), // of a name that none has any more
        ];
        let left = FleetNodeList { read_at: None, nodes: nodes.clone() }.without_predecessors().nodes;
        assert_eq!(left, [nodes[0].clone(), nodes[2].clone(), nodes[3].clone()]);
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        let unknown = NodeSnapshot { database: UNKNOWN, ..NodeSnapshot::default() };
        for text in ["", "{", "[]", "null", "{\"version\":1,\"store\":{},\"serving\":-1,\"generation\":\"x\"}"] {
            assert_eq!(NodeSnapshot::read(text), unknown, "{text}");
        }
        let hostile = json!({ "version": "\u{1b}[31m".repeat(1000), "mode": "on", "store": [1, { "state": "<b>" }] });
        let read = NodeSnapshot::read(&hostile.to_string());
        assert!(!read.version.contains('\u{1b}') && read.version.len() <= WORD_BYTES_MAX, "{:?}", read.version);
        assert!(read.mode.is_none() && read.store.iter().all(|server| server.state == UNKNOWN));
        assert_eq!(NodeSnapshot::read(&format!("{{\"version\":\"{}\"}}", "x".repeat(TEXT_BYTES_MAX))), unknown);
    }
}
