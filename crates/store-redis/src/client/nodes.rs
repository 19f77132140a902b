//! How many nodes share the store: what a node divides limits by while the store is away.
//!
//! The count rises at once and falls slowly. A list that was just emptied, or that a promoted server does not have yet,
//! names one node although there are many. If every node believed it, each would take the whole limit just when the
//! store is in trouble. A count that is too high only makes shares smaller for a while.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate_core::{Span, Time};

/// The count falls only after it was not confirmed for this long: time for all nodes to register again.
const FALLS_AFTER: Span = Span::from_secs(4);

/// The number of nodes, as reported by the primaries of a store.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    count: AtomicU64,
    /// When the present count, or a higher one, was last reported.
    confirmed: Mutex<Time>,
    leaving: AtomicBool,
}

impl Nodes {
    /// Records the length of a list of nodes.
    pub(crate) fn heard(&self, nodes: u64, now: Time) {
        let mut confirmed = self.confirmed.lock();
        if nodes >= self.count.load(Ordering::Relaxed) || now.since(*confirmed) > FALLS_AFTER {
            self.count.store(nodes, Ordering::Relaxed);
            *confirmed = now;
        }
    }

    /// The number of nodes; `None` before the first report.
    pub(crate) fn known(&self) -> Option<u64> {
        Some(self.count.load(Ordering::Relaxed)).filter(|nodes| *nodes > 0)
    }

    /// This node is shutting down and must not register any more.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// True once this node is shutting down.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_are_believed_at_once_and_fewer_after_a_while() {
        let (nodes, start) = (Nodes::default(), Time::from_secs(1_800_000_000));
        let after = |secs| start.after(Span::from_secs(secs));
        assert_eq!(nodes.known(), None);
        for (at, told, believed) in [(0, 2, 2), (1, 5, 5), (2, 1, 5), (5, 4, 5), (6, 5, 5), (10, 3, 5), (11, 3, 3)] {
            nodes.heard(told, after(at));
            assert_eq!(nodes.known(), Some(believed), "after {at} s");
        }
    }
}
