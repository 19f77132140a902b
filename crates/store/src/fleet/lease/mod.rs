//! Leases: units that the shared store has debited in advance, spent by this node.
//!
//! A bucket that is used rarely is decided by the shared store. A bucket that is used repeatedly gets a lease: the
//! request that finds too few units asks the store for a batch, and later requests spend from it in memory. Before the
//! batch is used up the lease is refilled while requests continue to spend.

mod bucket_lease;
mod demand;
mod refill;
mod size;

use tollgate_core::{Ask, Charge, Digest, LeaseSize, Limit, Outcome, Receipt, Source, Span, Time};

use self::bucket_lease::BucketLease;
pub(super) use self::bucket_lease::{Grant, LeaseDecision, LeaseTerms};
use self::demand::RecentBuckets;
use super::mirror::Observation;
use super::sharded::{DigestMap, Sharded, per_shard};

/// Receipts that wait for the next round of upkeep, per shard; units beyond that are lost.
const RETURNS_MAX: usize = 1024;

/// Entries for recently used buckets, per shard.
const RECENT_BUCKETS: usize = 512;

/// All leases of this node.
#[derive(Debug)]
pub(super) struct Leases {
    shards: Sharded<Shard>,
    ttl: Span,
    deny_ttl: Span,
    /// Leases per shard.
    most: usize,
}

#[derive(Debug)]
struct Shard {
    leases: DigestMap<BucketLease>,
    recent: RecentBuckets,
    returns: Vec<Receipt>,
    counts: LeaseCounts,
    closed: bool,
}

/// Statistics of leases.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeaseCounts {
    pub(super) live: usize,
    pub(super) held: u64,
    pub(super) granted: u64,
    /// Batches with at least one unit.
    pub(super) grants: u64,
    pub(super) spent: u64,
    /// Returned to the bucket by time.
    pub(super) paid_off: u64,
    pub(super) stranded: u64,
    pub(super) decisions: u64,
}

/// What a request took from a lease provisionally. Settled by an answer of the store, or put back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spend {
    pub(super) bucket: Digest,
    pub(super) grants: [Grant; 2],
    /// True if this request asks the store for a batch.
    pub(super) leads: bool,
}

/// An answer of the store about a leased bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreAnswer<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) seen: Observation,
    /// Units that were asked for.
    pub(super) asked: u64,
    /// Units of the grant that the request itself uses.
    pub(super) used: u64,
    /// Nodes that share the bucket.
    pub(super) nodes: u64,
}

impl Leases {
    pub(super) fn new(ttl: Span, deny_ttl: Span, max_leases: usize) -> Leases {
        let shard = || Shard {
            leases: DigestMap::default(),
            recent: RecentBuckets::new(RECENT_BUCKETS),
            returns: Vec::new(),
            counts: LeaseCounts::default(),
            closed: false,
        };
        Leases { shards: Sharded::new(shard), ttl, deny_ttl, most: per_shard(max_leases) }
    }

    /// The terms of all leases, for one request.
    pub(super) fn terms(&self, nodes: u64, may_ask: bool) -> LeaseTerms {
        LeaseTerms { ttl: self.ttl, deny_ttl: self.deny_ttl, nodes, may_ask }
    }

    /// Decides a request of one charge, if that needs no call. `None` has changed nothing.
    #[inline]
    pub(super) fn try_spend(&self, charge: &Charge, now: Time) -> Option<(Outcome, Time)> {
        let mut shard = self.shards.lock(charge.bucket);
        let Shard { leases, counts, .. } = &mut *shard;
        let answer = leases.get_mut(&charge.bucket)?.try_spend(charge, now, self.deny_ttl)?;
        counts.decisions += 1;
        counts.spent += answer.0.granted;
        Some(answer)
    }

    /// Spends provisionally, refuses, or returns what to ask the store for.
    pub(super) fn begin(&self, charge: &Charge, bound: LeaseSize, now: Time, terms: &LeaseTerms) -> LeaseDecision {
        let mut shard = self.shards.lock(charge.bucket);
        let shard = &mut *shard;
        if !shard.leases.contains_key(&charge.bucket) {
            let room = shard.leases.len() < self.most && !shard.closed;
            if !terms.may_ask {
                return LeaseDecision::Cold;
            }
            let Some(gap) = shard.recent.touch(charge.bucket, now).filter(|_| room && charge.ask.writes()) else {
                return LeaseDecision::Cold;
            };
            shard.leases.insert(charge.bucket, BucketLease::new(charge, now, gap));
        }
        shard.drop_unusable(charge, now);
        let Some(lease) = shard.leases.get_mut(&charge.bucket) else { return LeaseDecision::Cold };
        let step = lease.begin(charge, bound, now, terms);
        if let LeaseDecision::Spent { grants: [a, b], .. } | LeaseDecision::Short { grants: [a, b], .. } = &step {
            shard.counts.spent += a.units + b.units;
        }
        shard.counts.decisions +=
            u64::from(matches!(step, LeaseDecision::Spent { .. } | LeaseDecision::Refused { .. }));
        step
    }

    /// The outcome of `charge` without spending, for a request that another charge refused.
    pub(super) fn look(&self, charge: &Charge, now: Time) -> Option<(Outcome, Time)> {
        let charge = Charge { ask: Ask::Peek(charge.ask.cost()), ..*charge };
        let mut shard = self.shards.lock(charge.bucket);
        shard.leases.get_mut(&charge.bucket)?.try_spend(&charge, now, self.deny_ttl)
    }

    /// Undoes what [`begin`](Leases::begin) took, and lets other requests ask.
    pub(super) fn put_back(&self, spend: &Spend, now: Time, failed: bool) {
        let mut shard = self.shards.lock(spend.bucket);
        let Shard { leases, counts, returns, .. } = &mut *shard;
        let lease = leases.get_mut(&spend.bucket);
        let units: u64 = spend.grants.iter().map(|grant| grant.units).sum();
        counts.spent -= units;
        let Some(lease) = lease else {
            counts.stranded += units;
            return;
        };
        for grant in spend.grants.iter().filter(|grant| grant.units > 0) {
            if let Some(leftover) = lease.put_back(*grant) {
                queue_return(lease, spend.bucket, &leftover, now, returns, counts);
            }
        }
        if spend.leads {
            lease.abandon_refill(now, failed);
        }
    }

    /// Enters an answer of the store; `charge` is the charge of the request, `admitted` whether it passed. Returns the
    /// outcome for the caller.
    pub(super) fn settle(&self, charge: &Charge, spend: &Spend, answer: &StoreAnswer<'_>, admitted: bool) -> Outcome {
        let StoreAnswer { outcome, seen, asked, used, nodes } = *answer;
        let mut shard = self.shards.lock(charge.bucket);
        let Shard { leases, counts, returns, .. } = &mut *shard;
        let rest = outcome.granted.saturating_sub(used);
        let granted = if admitted && charge.ask.writes() { charge.ask.cost() } else { 0 };
        counts.granted += if spend.leads { outcome.granted } else { 0 };
        counts.grants += u64::from(spend.leads && outcome.granted > 0);
        counts.spent += if spend.leads { used } else { 0 };
        let overflowed = outcome.source == Source::Overflow;
        let lease = leases.get_mut(&charge.bucket).filter(|lease| lease.limit == charge.limit);
        let Some(lease) = lease.filter(|_| !overflowed) else {
            if rest > 0 && returns.len() < RETURNS_MAX {
                returns.push(Receipt { units: rest, ..Receipt::of(charge, outcome) });
            }
            if overflowed {
                leases.remove(&charge.bucket);
            }
            return Outcome { granted, allowed: admitted, ..*outcome };
        };
        lease.learn(outcome, seen, rest, spend.leads.then_some(asked), &self.terms(nodes, true));
        lease.view(charge, outcome, seen.store_time, admitted, granted)
    }

    /// True if the lease of `charge` waits for a refill under the same limit.
    pub(super) fn is_refilling(&self, charge: &Charge) -> bool {
        let shard = self.shards.lock(charge.bucket);
        shard.leases.get(&charge.bucket).is_some_and(|lease| lease.limit == charge.limit && lease.is_refilling())
    }

    /// Enters the answer to a refill.
    pub(super) fn settle_refill(&self, charge: &Charge, answer: &StoreAnswer<'_>) {
        let nothing = Spend { bucket: charge.bucket, grants: Default::default(), leads: true };
        self.settle(charge, &nothing, answer, false);
    }

    /// A refill got no answer: another request may ask.
    pub(super) fn abandon_refill(&self, bucket: Digest, now: Time, failed: bool) {
        if let Some(lease) = self.shards.lock(bucket).leases.get_mut(&bucket) {
            lease.abandon_refill(now, failed);
        }
    }

    /// True once the node closes: what arrives for the bucket must go back.
    pub(super) fn is_closed(&self, bucket: Digest) -> bool {
        self.shards.lock(bucket).closed
    }

    /// Units were given back to the bucket: the copy of it must no longer refuse.
    pub(super) fn invalidate(&self, bucket: Digest) {
        if let Some(lease) = self.shards.lock(bucket).leases.get_mut(&bucket) {
            lease.invalidate();
        }
    }

    /// The bucket is forgotten, and its lease with it.
    pub(super) fn forget(&self, bucket: Digest) {
        let mut shard = self.shards.lock(bucket);
        if let Some(lease) = shard.leases.remove(&bucket) {
            shard.counts.stranded += lease.units();
        }
    }

    /// Collects the units to give back: expired, idle, or all if the node closes. They count as stranded until the
    /// store has accepted them.
    pub(super) fn collect(&self, now: Time, closing: bool) -> Vec<Receipt> {
        let mut receipts = Vec::new();
        for mut shard in self.shards.each() {
            let Shard { leases, returns, counts, closed, .. } = &mut *shard;
            *closed |= closing;
            leases.retain(|bucket, lease| {
                let rest = if closing { lease.empty() } else { lease.idle(now) };
                for grant in lease.expire(now).iter().chain(&rest) {
                    queue_return(lease, *bucket, grant, now, returns, counts);
                }
                !closing && !lease.is_over(now, self.ttl)
            });
            counts.stranded += returns.iter().map(|receipt| receipt.units).sum::<u64>();
            receipts.append(returns);
        }
        receipts
    }

    /// Sums over all shards.
    pub(super) fn counts(&self) -> LeaseCounts {
        self.shards.each().fold(LeaseCounts::default(), |sum, shard| LeaseCounts {
            live: sum.live + shard.leases.len(),
            held: sum.held + shard.leases.values().map(BucketLease::units).sum::<u64>(),
            granted: sum.granted + shard.counts.granted,
            grants: sum.grants + shard.counts.grants,
            spent: sum.spent + shard.counts.spent,
            paid_off: sum.paid_off + shard.counts.paid_off,
            stranded: sum.stranded + shard.counts.stranded,
            decisions: sum.decisions + shard.counts.decisions,
        })
    }
}

impl Shard {
    /// Removes units that the charge must not spend: expired ones, and all if the limit has changed.
    fn drop_unusable(&mut self, charge: &Charge, now: Time) {
        let Shard { leases, returns, counts, .. } = self;
        let Some(lease) = leases.get_mut(&charge.bucket) else { return };
        let changed = lease.limit != charge.limit;
        let expired = lease.expire(now);
        let rest = if changed { lease.empty() } else { Default::default() };
        expired.iter().chain(&rest).for_each(|grant| queue_return(lease, charge.bucket, grant, now, returns, counts));
        if changed {
            *lease = BucketLease::new(charge, now, Span::SECOND);
        }
    }
}

/// Queues units to give back, unless time has already returned them. Beyond the bound they are lost.
fn queue_return(
    lease: &BucketLease,
    bucket: Digest,
    grant: &Grant,
    now: Time,
    returns: &mut Vec<Receipt>,
    counts: &mut LeaseCounts,
) {
    match (lease.receipt(bucket, grant, now), lease.limit) {
        (Some(receipt), _) if returns.len() < RETURNS_MAX => returns.push(receipt),
        (None, Limit::Gcra(_)) => counts.paid_off += grant.units, // time has returned them
        _ => counts.stranded += grant.units,
    }
}
