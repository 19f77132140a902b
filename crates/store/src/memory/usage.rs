//! Memory accounting of a shard: bytes in total and by owner.

use std::collections::HashMap;

use tollgate_core::{Owner, State, Time};

use super::table::TableEntry;

/// The memory used by a shard's entries, in total and by owner.
#[derive(Debug, Default)]
pub(super) struct ShardUsage {
    pub(super) budget: usize,
    /// Bytes of all tables.
    pub(super) tables: usize,
    /// Bytes that states hold on the heap.
    pub(super) heap: usize,
    /// Bytes by owner, for owners that may not fill the store.
    pub(super) owned: HashMap<u32, usize>,
    pub(super) dropped: u64,
    /// When unused memory of tables was last released.
    pub(super) reclaimed: Time,
}

impl ShardUsage {
    pub(super) fn bytes(&self) -> usize {
        self.tables + self.heap
    }

    /// Records into a state that may allocate, within the budget.
    #[inline]
    pub(super) fn record<S: State>(
        &mut self,
        owner: Owner,
        entry: &mut TableEntry<S>,
        record: impl FnOnce(&mut S) -> u64,
    ) -> u64 {
        let state = &mut entry.state;
        if !S::ON_HEAP {
            return record(state);
        }
        let before = state.heap_bytes();
        state.confine(self.bytes() > self.budget || !self.may_own_more(owner));
        let granted = record(state);
        // The owner that the bucket was added for, as when it is removed: rules of several plans share buckets.
        self.move_heap(entry.owner, before, state.heap_bytes());
        granted
    }

    pub(super) fn move_heap(&mut self, owner: u32, before: usize, after: usize) {
        self.heap = (self.heap + after).saturating_sub(before);
        if let Some(bytes) = self.owned.get_mut(&owner) {
            *bytes = (*bytes + after).saturating_sub(before);
        }
    }

    /// True while `owner` has not filled its share of the budget.
    pub(super) fn may_own_more(&self, owner: Owner) -> bool {
        let most = self.budget / 100 * usize::from(owner.share);
        owner.share >= 100 || self.owned.get(&owner.id).is_none_or(|bytes| *bytes < most)
    }

    /// Adds a new bucket.
    pub(super) fn add<S: State>(&mut self, owner: Owner, state: &S) {
        if owner.share < 100 {
            *self.owned.entry(owner.id).or_default() += size_of::<TableEntry<S>>();
        }
        self.move_heap(owner.id, 0, state.heap_bytes());
    }

    /// Removes a dropped bucket.
    pub(super) fn remove<S: State>(&mut self, entry: &TableEntry<S>) {
        self.dropped += 1;
        self.move_heap(entry.owner, entry.state.heap_bytes(), 0);
        if let Some(bytes) = self.owned.get_mut(&entry.owner) {
            *bytes = bytes.saturating_sub(size_of::<TableEntry<S>>());
        }
    }
}
