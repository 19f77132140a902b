//! What the other nodes counted in their last second.

use tollgate_analytics::LimitedKeys;
use tollgate_core::{Span, Time};

use super::found::NamedTotals;
use super::node_view::NodeView;

/// Counts that are older are not shown as those of now.
const FRESH: Span = Span::from_secs(3);

/// The counts of all other nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct OtherCounts {
    /// When they were read.
    pub(super) read_at: Time,
    /// By namespace and rule.
    pub(super) totals: Vec<NamedTotals>,
    /// The clients that they limit.
    pub(super) limited: LimitedKeys,
}

impl OtherCounts {
    /// Adds the counts of one node.
    pub(super) fn add(&mut self, view: &NodeView) {
        self.totals.extend(view.recent.iter().cloned());
        self.limited.add(view.limited.clone());
    }

    /// The counts, if they are of now.
    pub(super) fn at(&self, now: Time) -> Option<&OtherCounts> {
        (now.since(self.read_at) <= FRESH).then_some(self)
    }
}
