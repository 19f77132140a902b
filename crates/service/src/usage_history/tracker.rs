//! Buckets of quotas whose usage changed since it was last written.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tollgate_core::{Charge, Request, Time};
use tollgate_engine::{DecidedBy, Decision, Settlement};
use tollgate_ruleset::Rule;
use tollgate_store::{StoreError, StoreErrorKind};

use super::UsageHistoryMetrics;
use super::reading::{BucketOwner, ChangedBucket, PeriodKey, SeenUsage};

/// Most buckets between two writes: about 20 MiB.
const BUCKETS_MAX: usize = 50_000;
/// Shards, so that charges of different clients rarely contend.
const SHARDS: usize = 16;

type TrackedShard = HashMap<PeriodKey, ChangedBucket, BuildHasherDefault<std::hash::DefaultHasher>>;

/// Notes which buckets of quotas changed.
pub struct UsageTracker {
    shards: [Mutex<TrackedShard>; SHARDS],
    /// How many there are in all shards.
    buckets: AtomicUsize,
    /// The earliest end of a period among them, in nanoseconds.
    earliest_end: AtomicU64,
    metrics: Arc<UsageHistoryMetrics>,
}

impl UsageTracker {
    /// A tracker that has noted nothing.
    pub fn new(metrics: Arc<UsageHistoryMetrics>) -> UsageTracker {
        UsageTracker {
            shards: std::array::from_fn(|_| Mutex::default()),
            buckets: AtomicUsize::new(0),
            earliest_end: AtomicU64::new(u64::MAX),
            metrics,
        }
    }

    /// Notes the usage after the charges of a decision, or of the next step of a reservation, whose requests are not
    /// known.
    #[inline]
    pub(crate) fn decided(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        if decision.rules().has_quotas() {
            self.note_decision(requests, decision, charges);
        }
    }

    fn note_decision(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        for ruling in decision.rulings().iter().filter(|ruling| ruling.decided_by == DecidedBy::Store) {
            // A refusal tells the usage, too: it corrects the row of a node that was killed before it wrote.
            let Some(outcome) = ruling.outcome.filter(|outcome| outcome.used > 0) else { continue };
            let Some(charge) = ruling.charge().and_then(|index| charges.get(index)) else { continue };
            let changed = ChangedBucket::of(charge).filter(|_| charge.ask.writes());
            let Some((rule, mut changed)) = decision.rule(ruling).zip(changed) else { continue };
            changed.note(SeenUsage::of(&outcome, decision.now));
            let owner = || Some(owner(requests.get(usize::from(ruling.request)), rule, decision));
            self.note((charge.bucket, outcome.stamp), changed, owner);
        }
    }

    /// Notes that settling changed buckets, which must be read.
    pub(crate) fn settled(&self, settlement: &Settlement) {
        if settlement.local {
            return;
        }
        for correction in &settlement.corrections {
            let Some(changed) = ChangedBucket::of(&correction.read) else { continue };
            let owner = || settlement.rule(correction).map(BucketOwner::of_rule);
            self.note((correction.read.bucket, correction.stamp), ChangedBucket { must_read: true, ..changed }, owner);
        }
    }

    /// Notes that the store may have recorded charges.
    pub(crate) fn unanswered(&self, error: &StoreError, charges: &[Charge]) {
        if error.kind != StoreErrorKind::Indeterminate {
            return;
        }
        for charge in charges.iter().filter(|charge| charge.ask.writes()) {
            let Some(changed) = ChangedBucket::of(charge) else { continue };
            let end = changed.proposed_end();
            self.note((charge.bucket, end), ChangedBucket { must_read: true, ..changed }, || None);
        }
    }

    /// Notes one change. `owner` is asked for a bucket that was not noted yet.
    fn note(&self, key: PeriodKey, changed: ChangedBucket, owner: impl FnOnce() -> Option<BucketOwner>) {
        let [low, _] = key.0.0;
        let Some(shard) = self.shards.get(low as usize % SHARDS) else { return };
        let mut shard = shard.lock();
        if let Some(known) = shard.get_mut(&key) {
            known.join(changed);
            if known.owner.as_ref().is_none_or(|known| known.client.is_none()) {
                known.owner = owner().or(known.owner.take());
            }
            return;
        }
        if self.buckets.fetch_add(1, Ordering::Relaxed) >= BUCKETS_MAX {
            self.buckets.fetch_sub(1, Ordering::Relaxed);
            return self.metrics.dropped(1);
        }
        self.earliest_end.fetch_min(key.1.nanos(), Ordering::Relaxed);
        shard.insert(key, ChangedBucket { owner: owner(), ..changed });
    }

    /// The earliest end of a period that was noted since the last [`drain`](UsageTracker::drain).
    pub(super) fn earliest_end(&self) -> Time {
        Time::from_nanos(self.earliest_end.load(Ordering::Relaxed))
    }

    /// Takes everything that was noted.
    pub(super) fn drain(&self) -> Vec<(PeriodKey, ChangedBucket)> {
        self.earliest_end.store(u64::MAX, Ordering::Relaxed);
        let mut drained = Vec::new();
        for shard in &self.shards {
            let taken = std::mem::take(&mut *shard.lock());
            self.buckets.fetch_sub(taken.len(), Ordering::Relaxed);
            drained.extend(taken);
        }
        drained
    }
}

/// The owner of a bucket, from the request that charged it if that is known.
fn owner(request: Option<&Request<'_>>, rule: &Rule, decision: &Decision) -> BucketOwner {
    let billed = request.and_then(|request| decision.rules().billed_client(request, rule, decision.wall));
    let (client, organisation) = billed.map(|billed| (billed.client, billed.organisation)).unzip();
    BucketOwner { client, organisation: organisation.flatten(), ..BucketOwner::of_rule(rule) }
}

impl fmt::Debug for UsageTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageTracker").field("buckets", &self.buckets).finish_non_exhaustive()
    }
}
