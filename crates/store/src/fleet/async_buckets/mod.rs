//! Buckets that this node decides by a copy, reporting its charges to the shared store later.

mod bucket;

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Charge, Digest, Outcome, Receipt, Span, Time};

use self::bucket::{AsyncBucket, ReportResult};
use super::sharded::{DigestMap, Sharded, per_shard};
use crate::StoreError;

/// A report without an answer is given up after this.
const REPORT_TIMEOUT: Span = Span::from_secs(2);

/// All async buckets of this node.
#[derive(Debug)]
pub(super) struct AsyncBuckets {
    shards: Sharded<Shard>,
    /// Buckets per shard.
    most: usize,
    /// When reports were last sent, in nanoseconds of this node's clock.
    reported_at: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    buckets: DigestMap<AsyncBucket>,
    decisions: u64,
    excess: u64,
}

/// Statistics of async buckets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsyncCounts {
    pub(super) decisions: u64,
    pub(super) pending: u64,
    pub(super) excess: u64,
}

impl AsyncBuckets {
    pub(super) fn new(max_buckets: usize) -> AsyncBuckets {
        AsyncBuckets {
            shards: Sharded::new(Shard::default),
            most: per_shard(max_buckets),
            reported_at: AtomicU64::new(0),
        }
    }

    /// True if the bucket of `charge` is decided by this node: it is known, or there is room for one more.
    pub(super) fn has(&self, charge: &Charge, nodes: u64) -> bool {
        let mut shard = self.shards.lock(charge.bucket);
        if shard.buckets.contains_key(&charge.bucket) {
            return true;
        }
        let new = AsyncBucket::new(charge, nodes).filter(|_| shard.buckets.len() < self.most);
        new.is_some_and(|new| shard.buckets.insert(charge.bucket, new).is_none())
    }

    /// Decides one charge, and records it if the request `passes` so far. `None` if the bucket is not known.
    pub(super) fn take(&self, charge: &Charge, now: Time, passes: bool) -> Option<Outcome> {
        let mut shard = self.shards.lock(charge.bucket);
        let outcome = shard.buckets.get_mut(&charge.bucket)?.take(charge, now, passes)?;
        shard.decisions += u64::from(charge.ask.writes());
        Some(outcome)
    }

    /// Undoes a charge of a request that another charge refused.
    pub(super) fn undo(&self, charge: &Charge, outcome: &Outcome, now: Time) {
        if let Some(bucket) = self.shards.lock(charge.bucket).buckets.get_mut(&charge.bucket) {
            bucket.undo(now, outcome.granted, Some(outcome.stamp));
        }
    }

    /// Gives a receipt back, if its bucket is decided by this node. Returns how many of its units were already
    /// reported.
    pub(super) fn give_back(&self, receipt: &Receipt, now: Time) -> Option<u64> {
        let mut shard = self.shards.lock(receipt.bucket);
        Some(shard.buckets.get_mut(&receipt.bucket)?.undo(now, receipt.units, Some(receipt.stamp)))
    }

    /// The store returned units: the copy of the bucket must be refreshed.
    pub(super) fn invalidate(&self, bucket: Digest) {
        if let Some(bucket) = self.shards.lock(bucket).buckets.get_mut(&bucket) {
            bucket.invalidate();
        }
    }

    pub(super) fn forget(&self, bucket: Digest) {
        self.shards.lock(bucket).buckets.remove(&bucket);
    }

    /// True once per interval.
    pub(super) fn is_due(&self, now: Time, interval: Span) -> bool {
        let last = Time::from_nanos(self.reported_at.load(Ordering::Relaxed));
        let due = now.since(last) >= interval || now < last;
        if due {
            self.reported_at.store(now.nanos(), Ordering::Relaxed);
        }
        due
    }

    /// The reports to send: one forced charge per bucket.
    pub(super) fn start_reports(&self, now: Time) -> Vec<Charge> {
        let mut charges = Vec::new();
        for mut shard in self.shards.each() {
            for (digest, bucket) in &mut shard.buckets {
                charges.extend(
                    bucket.start_report(now, REPORT_TIMEOUT).map(|charge| Charge { bucket: *digest, ..charge }),
                );
            }
        }
        charges
    }

    /// Enters the result of reporting `charge`.
    pub(super) fn complete_report(
        &self,
        charge: &Charge,
        result: Result<(&Outcome, Time), &StoreError>,
        now: Time,
        nodes: u64,
    ) {
        let mut shard = self.shards.lock(charge.bucket);
        let Shard { buckets, excess, .. } = &mut *shard;
        let Some(bucket) = buckets.get_mut(&charge.bucket) else { return };
        let result = match result {
            Ok((outcome, time)) => ReportResult::Answered(outcome, time),
            Err(error) if error.kind.charged_nothing() => ReportResult::Failed,
            Err(_) => ReportResult::Lost,
        };
        *excess += bucket.complete_report(result, now, nodes);
    }

    /// Drops fresh buckets without charges to report; `now` is the store's time.
    pub(super) fn sweep(&self, now: Time) {
        self.shards.each().for_each(|mut shard| shard.buckets.retain(|_, bucket| !bucket.is_over(now)));
    }

    pub(super) fn counts(&self) -> AsyncCounts {
        self.shards.each().fold(AsyncCounts::default(), |sum, shard| AsyncCounts {
            decisions: sum.decisions + shard.decisions,
            pending: sum.pending + shard.buckets.values().map(AsyncBucket::pending).sum::<u64>(),
            excess: sum.excess + shard.excess,
        })
    }
}
