//! Counters of requests that span several slots.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the store as a whole; each primary has its own besides.
#[derive(Debug, Default)]
pub(crate) struct SlotCounters {
    overflowed: AtomicU64,
    split: AtomicU64,
    undone: AtomicU64,
    overcharged: AtomicU64,
}

/// A snapshot of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotStats {
    /// Charges moved to an overflow bucket because their namespace had created too many buckets.
    pub overflowed: u64,
    /// Requests that one slot denied after another had charged them.
    pub split: u64,
    /// Charges given back for them.
    pub undone: u64,
    /// Charges that could not be given back: clients got that much less than their limit.
    pub overcharged: u64,
}

impl SlotCounters {
    pub(crate) fn overflowed(&self, charges: usize) {
        self.overflowed.fetch_add(charges as u64, Ordering::Relaxed);
    }

    /// A denial by the group at this index, after the groups before it had charged.
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
