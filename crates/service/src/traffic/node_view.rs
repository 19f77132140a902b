//! What one node answers to a question.

use tollgate_analytics::{LimitedKeys, RuleClients, TrafficSeries};

use super::found::{FoundDecision, NamedTotals};

/// Clients that are limited now, at most, of the answer of one node.
const LIMITED_MAX: usize = 4096;

/// The answer of one node. A question fills the parts that it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// The node.
    pub node: String,
    /// A number that the process chose at random.
    pub process: u64,
    /// What namespaces and rules counted.
    pub totals: Vec<NamedTotals>,
    /// What they counted in the last seconds.
    pub recent: Vec<NamedTotals>,
    /// The clients that are limited now.
    pub limited: LimitedKeys,
    /// Counts over time.
    pub series: Option<TrafficSeries>,
    /// The clients of rules.
    pub clients: Vec<RuleClients>,
    /// Decisions, the last first.
    pub decisions: Vec<FoundDecision>,
    /// True if there was no room for all decisions.
    pub is_cut: bool,
    /// Decisions that the node recorded since its start.
    pub recorded: u64,
}

impl NodeView {
    /// Leaves less of everything that grows with the number of clients.
    pub(super) fn cut(&mut self, most: usize) {
        self.clients.iter_mut().for_each(|clients| clients.cut(most));
        self.limited.cut(LIMITED_MAX.min(most * 32));
        if self.decisions.len() > most * 4 {
            self.decisions.truncate(most * 4);
            self.is_cut = true;
        }
    }
}
