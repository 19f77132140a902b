//! The reports of a fleet's nodes.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tollgate_core::Time;
use tollgate_store_redis::NodeReport;

/// The reports of the other nodes, as this one read them last.
#[derive(Debug, Default)]
pub(super) struct FleetReports(pub(super) Mutex<KnownReports>);

/// What this node knows of the others.
#[derive(Debug, Default)]
pub(super) struct KnownReports {
    /// The last report of this node.
    pub(super) published: Option<String>,
    /// When the next one is due.
    pub(super) next: Time,
    /// When the reports were read.
    pub(super) read_at: Time,
    pub(super) nodes: Vec<NodeReport>,
    /// When nodes answered a question last, by their names.
    pub(super) answered: BTreeMap<String, Time>,
}
