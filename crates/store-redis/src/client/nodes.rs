//! How many nodes share the store: what a node divides limits by while the store is away.
//!
//! The count rises at once and falls slowly. A list that was just emptied, or that a promoted server does not have yet,
//! names one node although there are many; if each of them believed it, each would take the whole limit just when the
//! store is in trouble. Too high a count only makes shares smaller, for a while.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate_core::{Span, Time};

/// So long nobody must have heard of as many nodes before fewer are believed: time for all of them to enter themselves
/// again.
const FALLS_AFTER: Span = Span::from_secs(4);

/// The count, as all primaries of a store tell it.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    count: AtomicU64,
    /// When the present count, or more, was last heard.
    confirmed: Mutex<Time>,
    leaving: AtomicBool,
}

impl Nodes {
    /// Takes note of how many are in a list.
    pub(crate) fn heard(&self, nodes: u64, now: Time) {
        let mut confirmed = self.confirmed.lock();
        if nodes >= self.count.load(Ordering::Relaxed) || now.since(*confirmed) > FALLS_AFTER {
            self.count.store(nodes, Ordering::Relaxed);
            *confirmed = now;
        }
    }

    /// How many there are; `None` before anybody told.
    pub(crate) fn known(&self) -> Option<u64> {
        Some(self.count.load(Ordering::Relaxed)).filter(|nodes| *nodes > 0)
    }

    /// This node leaves: it must not enter itself into lists any more.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// True once this node leaves.
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
