//! What the admin API asks of the node it runs in: to follow what was changed, and to say how it is.
//!
//! Closures rather than a trait: there is one node, and tests hand in what they need of it.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use tollgate_control::{Enforcement, Instant};
use tollgate_rules::RuleSpec;

/// The node behind the admin API.
pub struct NodeHooks {
    /// Something was changed: read it now rather than at the next look.
    pub changed: Box<dyn Fn() + Send + Sync>,
    /// How the node is.
    pub status: Box<dyn Fn() -> NodeStatus + Send + Sync>,
    /// The rules that came from files: shown, and never changed here.
    pub file_rules: Box<dyn Fn() -> Arc<Vec<FileRule>> + Send + Sync>,
    /// The rule of a file that has this name in this namespace, if it is in force: overrides are checked against it.
    pub file_rule: FindRule,
    /// Somebody set the mode here, at that instant: to be remembered over a restart.
    pub persist_mode: Box<dyn Fn(Enforcement, Instant) + Send + Sync>,
}

/// Looks a rule up by namespace and name.
pub type FindRule = Box<dyn Fn(&str, &str) -> Option<RuleSpec> + Send + Sync>;

impl NodeHooks {
    /// A node that follows nobody and has no files.
    pub fn standalone() -> NodeHooks {
        let none = Arc::new(Vec::new());
        NodeHooks {
            changed: Box::new(|| {}),
            status: Box::new(NodeStatus::default),
            file_rules: Box::new(move || none.clone()),
            file_rule: Box::new(|_, _| None),
            persist_mode: Box::new(|_, _| {}),
        }
    }
}

impl fmt::Debug for NodeHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

/// A rule that came from a file of either kind.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRule {
    /// Whose.
    pub namespace: String,
    /// Its name in the file.
    pub rule_id: String,
    /// Which kind of file.
    pub kind: FileKind,
    /// File and line: `examples/rules.yaml:12`.
    pub location: String,
    /// The rule as the file has it, without `name`.
    pub document: Map<String, Value>,
}

/// Kinds of files that rules come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A rules file of ours.
    Rules,
    /// A file of envoyproxy/ratelimit.
    Envoy,
}

impl FileKind {
    /// The `source` of such rules in answers.
    pub const fn name(self) -> &'static str {
        match self {
            FileKind::Rules => "file",
            FileKind::Envoy => "envoy",
        }
    }
}

/// How a node is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStatus {
    /// What it calls itself.
    pub node: String,
    /// The generation of rules that it decides by, counted by itself.
    pub serving: u64,
    /// The generation of the database that this holds; `None` before it was first read.
    pub generation: Option<i64>,
    /// How the database is.
    pub database: DatabaseHealth,
    /// When it was last read, whether or not anything was new.
    pub refreshed_at: Option<Instant>,
    /// Rows that cannot be used, and why.
    pub quarantined: Vec<QuarantinedRow>,
    /// The servers of a shared store; none if everything is in memory.
    pub store: Vec<StoreServer>,
    /// What is wrong with rules files as they are now. The last rules that were right stay in force.
    pub file_errors: Vec<String>,
}

/// How a server of the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreServer {
    /// Where it is.
    pub address: String,
    /// `up`, `recovering` or `down`.
    pub state: &'static str,
}

/// How the database is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DatabaseHealth {
    /// There is none.
    #[default]
    Off,
    /// It answers.
    Up,
    /// It does not: what it last said.
    Away(String),
}

impl DatabaseHealth {
    /// Its name in answers.
    pub const fn name(&self) -> &'static str {
        match self {
            DatabaseHealth::Off => "off",
            DatabaseHealth::Up => "up",
            DatabaseHealth::Away(_) => "away",
        }
    }
}

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedRow {
    /// `rule`, `override` or `client`.
    pub kind: String,
    /// Whose.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// What is wrong with it.
    pub reason: String,
}
