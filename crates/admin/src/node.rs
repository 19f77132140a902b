//! What the node provides to the admin API: its status, the rules of its files, and a signal after changes.
//!
//! Closures rather than a trait: there is one node, and tests supply only what they need.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use tollgate_control::{Enforcement, Instant};
use tollgate_rules::{RuleFile, RuleSpec};
use tollgate_service::plans::PlanDocument;

use super::fleet_nodes::FleetNodeList;
use super::node_health::{DatabaseHealth, StoreServer};

/// The functions of the node that the admin API calls.
pub struct NodeHooks {
    /// Tells the other nodes of the fleet that something changed. This node learns of its own commits by itself.
    pub notify_nodes: Box<dyn Fn() + Send + Sync>,
    /// The status of the node.
    pub status: Box<dyn Fn() -> NodeStatus + Send + Sync>,
    /// The nodes of the fleet.
    pub nodes: Box<dyn Fn() -> FleetNodeList + Send + Sync>,
    /// The rules of files: read-only.
    pub file_rules: Box<dyn Fn() -> Arc<Vec<FileRule>> + Send + Sync>,
    /// The plans of files: read-only.
    pub file_plans: Box<dyn Fn() -> Arc<Vec<PlanDocument>> + Send + Sync>,
    /// The rules file in force, for its clients and overrides: read-only.
    pub rules_file: Box<dyn Fn() -> Option<Arc<RuleFile>> + Send + Sync>,
    /// The rules of a file that an override means by namespace and name, if they are in force: the one of that name, or all
    /// with that name within plans. Overrides are checked against them.
    pub file_rule: FindRules,
    /// Stores a mode that was set here, with its time, so that it survives a restart.
    pub persist_mode: Box<dyn Fn(Enforcement, Instant) + Send + Sync>,
}

/// Looks rules up by namespace and name.
pub type FindRules = Box<dyn Fn(&str, &str) -> Vec<RuleSpec> + Send + Sync>;

impl NodeHooks {
    /// A node without a database and files.
    pub fn standalone() -> NodeHooks {
        let none = Arc::new(Vec::new());
        NodeHooks {
            notify_nodes: Box::new(|| {}),
            status: Box::new(NodeStatus::default),
            nodes: Box::new(FleetNodeList::default),
            file_rules: Box::new(move || none.clone()),
            file_plans: Box::new(Arc::default),
            rules_file: Box::new(|| None),
            file_rule: Box::new(|_, _| Vec::new()),
            persist_mode: Box::new(|_, _| {}),
        }
    }
}

impl fmt::Debug for NodeHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

/// A rule of a file of either kind.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRule {
    /// Its namespace.
    pub namespace: String,
    /// Its name in the file.
    pub rule_id: String,
    /// The kind of file.
    pub kind: FileKind,
    /// File and line: `examples/rules.yaml:12`.
    pub location: String,
    /// The rule as in the file, without `name`.
    pub document: Map<String, Value>,
}

/// Kinds of files with rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A Tollgate rules file.
    Rules,
    /// A file of envoyproxy/ratelimit.
    Envoy,
}

impl FileKind {
    /// The `source` of such rules in responses.
    pub const fn name(self) -> &'static str {
        match self {
            FileKind::Rules => "file",
            FileKind::Envoy => "envoy",
        }
    }
}

/// The status of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its name.
    pub node: String,
    /// The generation of the rule set in force, counted by the node.
    pub serving: u64,
    /// The generation of the database in force; `None` before the first read.
    pub generation: Option<i64>,
    /// The state of the database.
    pub database: DatabaseHealth,
    /// When the database was last read, with or without changes.
    pub refreshed_at: Option<Instant>,
    /// Rows that cannot be used, and why.
    pub quarantined: Vec<QuarantinedRow>,
    /// The servers of a shared store; none for the memory store.
    pub store: Vec<StoreServer>,
    /// Errors in the current rules files. The last valid rules stay in force.
    pub file_errors: Vec<String>,
}

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedRow {
    /// `rule`, `override`, `grant` or `client`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// The reason.
    pub reason: String,
}
