//! What happened across slots, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the store as a whole; each primary has its own beside them.
#[derive(Debug, Default)]
pub(crate) struct SlotCounters {
    overflowed: AtomicU64,
    split: AtomicU64,
    undone: AtomicU64,
    overcharged: AtomicU64,
}

/// A reading of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotStats {
    /// Charges that went to an overflow bucket, because their namespace had made too many buckets.
    pub overflowed: u64,
    /// Requests that one slot refused after another had charged them.
    pub split: u64,
    /// Charges that were given back for it.
    pub undone: u64,
    /// Charges that could not be given back: callers got that much less than their limit.
    pub overcharged: u64,
}

impl SlotCounters {
    pub(crate) fn overflowed(&self, charges: usize) {
        self.overflowed.fetch_add(charges as u64, Ordering::Relaxed);
    }

    /// A refusal by the group at this place: those before it had charged.
    pub(crate) fn split(&self, place: usize) {
        self.split.fetch_add(u64::from(place > 0), Ordering::Relaxed);
    }

    pub(crate) fn undone(&self, charges: usize) {
        self.undone.fetch_add(charges as u64, Ordering::Relaxed);
    }

    pub(crate) fn overcharged(&self, charges: usize) {
        self.overcharged.fetch_add(charges as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> SlotStats {
        let SlotCounters { overflowed, split, undone, overcharged } = self;
        let [overflowed, split, undone, overcharged] =
            [overflowed, split, undone, overcharged].map(|counter| counter.load(Ordering::Relaxed));
        SlotStats { overflowed, split, undone, overcharged }
    }
}
