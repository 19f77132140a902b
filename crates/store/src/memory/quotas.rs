//! Buckets of quotas outside of the store: what changed since it was last written down, and what a journal restores.
//!
//! A store that tracks marks the place of a quota's bucket when it is charged or refunded, one bit per place. All that
//! a writer asks for is copied shard by shard, so it neither holds a lock while it writes nor needs memory for more than
//! one shard.

use tollgate_core::{Charge, Clock, Digest, Limit, Owner, Quota, QuotaBucket, QuotaUse, State};

use super::Memory;
use super::shard::{Shard, StoreTime};

/// What became of buckets that were restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoredQuotas {
    /// Buckets that hold the usage of the record.
    pub restored: u64,
    /// Records that are over: their period has ended, or they say that the bucket is unused.
    pub over: u64,
    /// Records without room in the store: the memory budget is used up.
    pub full: u64,
}

impl Memory {
    /// Starts to track which buckets of quotas change: from here on, [`write_changed_quotas`] must be called
    /// periodically, because changed buckets are kept until then.
    ///
    /// [`write_changed_quotas`]: Memory::write_changed_quotas
    pub fn track_quotas(&self) {
        self.shards.iter().for_each(|padded| padded.0.lock().quota.track_changes());
    }

    /// Calls `write` with the buckets of quotas that changed since the last call, shard by shard. After an error the
    /// buckets of that call and of all following shards count as changed still.
    pub fn write_changed_quotas<E>(&self, mut write: impl FnMut(&[QuotaBucket]) -> Result<(), E>) -> Result<(), E> {
        let mut changed = Vec::new();
        for padded in &self.shards {
            changed.clear();
            padded.0.lock().quota.drain_changed(|bucket, usage, owner| {
                changed.push(QuotaBucket { bucket, usage: *usage, owner });
            });
            if changed.is_empty() {
                continue;
            }
            if let Err(error) = write(&changed) {
                padded.0.lock().mark_quotas(&changed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Copies all used buckets of quotas of one shard.
    pub fn copy_quotas(&self, shard: usize, copy: &mut Vec<QuotaBucket>) {
        let Some(padded) = self.shards.get(shard) else { return };
        let shard = padded.0.lock();
        let wall = self.clock.wall();
        shard.quota.for_each(|bucket, usage, owner| {
            if !usage.is_fresh(wall) {
                copy.push(QuotaBucket { bucket, usage: *usage, owner });
            }
        });
    }

    /// Number of buckets of quotas.
    pub fn quota_buckets(&self) -> u64 {
        self.shards.iter().map(|padded| padded.0.lock().quota.len() as u64).sum()
    }

    /// Puts buckets back as a journal has them, in its order: a later record of a bucket replaces an earlier one. To be
    /// called before the first decision.
    pub fn restore_quotas(&self, records: &[QuotaBucket]) -> RestoredQuotas {
        let time = self.time();
        let mut sum = RestoredQuotas::default();
        for record in records {
            match self.lock(record.bucket).restore(record, time) {
                RestoredAs::Used => sum.restored += 1,
                RestoredAs::Over => sum.over += 1,
                RestoredAs::Full => sum.full += 1,
            }
        }
        sum
    }
}

/// What became of one record.
enum RestoredAs {
    Used,
    Over,
    Full,
}

impl Shard {
    /// Marks buckets as changed that could not be written.
    fn mark_quotas(&mut self, buckets: &[QuotaBucket]) {
        for QuotaBucket { bucket, usage, owner } in buckets {
            match self.quota.find(*bucket) {
                Some(place) => self.quota.mark_changed(place),
                // Refunded or reset, and dropped since: an older record with usage must not be the last.
                None if usage.used() == 0 => {
                    let place = self.insert_quota(*bucket, *usage, *owner);
                    self.quota.mark_changed(place);
                }
                None => {} // its period is over
            }
        }
    }

    fn restore(&mut self, record: &QuotaBucket, time: StoreTime) -> RestoredAs {
        let QuotaBucket { bucket, usage, owner } = *record;
        let is_over = usage.is_fresh(time.wall);
        if let Some(entry) = self.quota.find_mut(bucket) {
            entry.state = usage;
            return if is_over { RestoredAs::Over } else { RestoredAs::Used };
        }
        if is_over {
            return RestoredAs::Over;
        }
        let charge = Charge { owner: Owner::new(owner), ..Charge::new(bucket, Limit::Quota(Quota::lifetime(1)), 1) };
        if !self.make_room(&charge, time, 0) {
            return RestoredAs::Full;
        }
        self.insert_quota(bucket, usage, owner);
        RestoredAs::Used
    }

    fn insert_quota(&mut self, bucket: Digest, usage: QuotaUse, owner: u32) -> usize {
        // The share of its rule is unknown here: memory is counted for every owner, and compared where there is a share.
        self.usage.add(Owner { share: 0, ..Owner::new(owner) }, &usage);
        let before = self.quota.bytes();
        let place = self.quota.insert(bucket, usage, owner);
        self.usage.tables = self.usage.tables - before + self.quota.bytes();
        place
    }
}

#[cfg(test)]
mod tests;
