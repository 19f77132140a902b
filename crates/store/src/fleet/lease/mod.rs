//! Units taken in advance: spent here, debited there.
//!
//! A bucket that is asked for once in a while is the shared store's affair. One that is asked for again and again gets
//! a lease: the request that finds too little asks the store for a batch at once, and those behind it spend from that,
//! in memory. Shortly before the batch is used up one request asks for the next one while the others go on spending.

mod bucket_lease;
mod demand;
mod size;

use tollgate_core::{Ask, Charge, Digest, LeaseSize, Limit, Outcome, Receipt, Source, Span, Time};

use self::bucket_lease::Lease;
pub(super) use self::bucket_lease::{Lot, Step, Terms};
use self::demand::Doorkeeper;
use super::mirror::Sighting;
use super::sharded::{DigestMap, Sharded, part};

/// Receipts that wait for the next round of upkeep, per shard; what does not fit is lost.
const RETURNS_MAX: usize = 1024;

/// Places of the doorkeeper, per shard.
const DOOR: usize = 512;

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
    leases: DigestMap<Lease>,
    door: Doorkeeper,
    returns: Vec<Receipt>,
    counts: Counts,
    closed: bool,
}

/// What became of leased units, and what they decided.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) live: usize,
    pub(super) held: u64,
    pub(super) granted: u64,
    pub(super) spent: u64,
    /// Came back to the bucket by time alone.
    pub(super) paid_off: u64,
    pub(super) stranded: u64,
    pub(super) decisions: u64,
}

/// What a request took from a lease for the time being. Settled by an answer of the store, or put back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spend {
    pub(super) bucket: Digest,
    pub(super) lots: [Lot; 2],
    /// The batch this request asks for, if it is the one that asks.
    pub(super) leads: bool,
}

/// An answer of the store about a leased bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) seen: Sighting,
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
            door: Doorkeeper::new(DOOR),
            returns: Vec::new(),
            counts: Counts::default(),
            closed: false,
        };
        Leases { shards: Sharded::new(shard), ttl, deny_ttl, most: part(max_leases) }
    }

    /// What holds for all leases, for one request.
    pub(super) fn terms(&self, nodes: u64, may_ask: bool) -> Terms {
        Terms { ttl: self.ttl, deny_ttl: self.deny_ttl, nodes, may_ask }
    }

    /// Decides a request of one charge, if that needs nobody. `None` has changed nothing.
    #[inline]
    pub(super) fn quick(&self, charge: &Charge, now: Time) -> Option<(Outcome, Time)> {
        let mut shard = self.shards.lock(charge.bucket);
        let Shard { leases, counts, .. } = &mut *shard;
        let answer = leases.get_mut(&charge.bucket)?.quick(charge, now, self.deny_ttl)?;
        counts.decisions += 1;
        counts.spent += answer.0.granted;
        Some(answer)
    }

    /// Spends for the time being, refuses, or says what to ask the store for.
    pub(super) fn begin(&self, charge: &Charge, bound: LeaseSize, now: Time, terms: &Terms) -> Step {
        let mut shard = self.shards.lock(charge.bucket);
        let shard = &mut *shard;
        if !shard.leases.contains_key(&charge.bucket) {
            let room = shard.leases.len() < self.most && !shard.closed;
            if !terms.may_ask {
                return Step::Cold;
            }
            let Some(gap) = shard.door.knock(charge.bucket, now).filter(|_| room && charge.ask.writes()) else {
                return Step::Cold;
            };
            shard.leases.insert(charge.bucket, Lease::new(charge, now, gap));
        }
        shard.tidy(charge, now);
        let Some(lease) = shard.leases.get_mut(&charge.bucket) else { return Step::Cold };
        let step = lease.begin(charge, bound, now, terms);
        if let Step::Spent { lots: [a, b], .. } | Step::Short { lots: [a, b], .. } = &step {
            shard.counts.spent += a.units + b.units;
        }
        shard.counts.decisions += u64::from(matches!(step, Step::Spent { .. } | Step::Refused { .. }));
        step
    }

    /// What the lease would answer to `charge` without spending, for a request that was refused elsewhere.
    pub(super) fn look(&self, charge: &Charge, now: Time) -> Option<(Outcome, Time)> {
        let charge = Charge { ask: Ask::Peek(charge.ask.cost()), ..*charge };
        let mut shard = self.shards.lock(charge.bucket);
        shard.leases.get_mut(&charge.bucket)?.quick(&charge, now, self.deny_ttl)
    }

    /// Undoes what [`begin`](Leases::begin) took, and lets somebody else ask.
    pub(super) fn put_back(&self, spend: &Spend, now: Time, failed: bool) {
        let mut shard = self.shards.lock(spend.bucket);
        let Shard { leases, counts, returns, .. } = &mut *shard;
        let lease = leases.get_mut(&spend.bucket);
        let units: u64 = spend.lots.iter().map(|lot| lot.units).sum();
        counts.spent -= units;
        let Some(lease) = lease else {
            counts.stranded += units;
            return;
        };
        for lot in spend.lots.iter().filter(|lot| lot.units > 0) {
            if let Some(homeless) = lease.put_back(*lot) {
                file(lease, spend.bucket, &homeless, now, returns, counts);
            }
        }
        if spend.leads {
            lease.give_up(now, failed);
        }
    }

    /// Enters an answer of the store; `charge` is what the request wanted, `admitted` whether it got it. Answers what
    /// the caller is told.
    pub(super) fn settle(&self, charge: &Charge, spend: &Spend, answer: &Answer<'_>, admitted: bool) -> Outcome {
        let Answer { outcome, seen, asked, used, nodes } = *answer;
        let mut shard = self.shards.lock(charge.bucket);
        let Shard { leases, counts, returns, .. } = &mut *shard;
        let rest = outcome.granted.saturating_sub(used);
        let granted = if admitted && charge.ask.writes() { charge.ask.cost() } else { 0 };
        counts.granted += if spend.leads { outcome.granted } else { 0 };
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
        lease.view(charge, outcome, seen.store, admitted, granted)
    }

    /// Units were given back to the bucket: what is known of it no longer refuses.
    pub(super) fn doubt(&self, bucket: Digest) {
        if let Some(lease) = self.shards.lock(bucket).leases.get_mut(&bucket) {
            lease.doubt();
        }
    }

    /// The bucket is forgotten, and with it what was taken from it.
    pub(super) fn forget(&self, bucket: Digest) {
        let mut shard = self.shards.lock(bucket);
        if let Some(lease) = shard.leases.remove(&bucket) {
            shard.counts.stranded += lease.units();
        }
    }

    /// Collects what is to be given back: expired, idle, or everything if the node closes. Until the store has taken it
    /// back it counts as stranded.
    pub(super) fn collect(&self, now: Time, closing: bool) -> Vec<Receipt> {
        let mut receipts = Vec::new();
        for mut shard in self.shards.each() {
            let Shard { leases, returns, counts, closed, .. } = &mut *shard;
            *closed |= closing;
            leases.retain(|bucket, lease| {
                let rest = if closing { lease.empty() } else { lease.idle(now) };
                for lot in lease.expire(now).iter().chain(&rest) {
                    file(lease, *bucket, lot, now, returns, counts);
                }
                !closing && !lease.is_over(now, self.ttl)
            });
            counts.stranded += returns.iter().map(|receipt| receipt.units).sum::<u64>();
            receipts.append(returns);
        }
        receipts
    }

    /// Sums over all shards.
    pub(super) fn counts(&self) -> Counts {
        self.shards.each().fold(Counts::default(), |sum, shard| Counts {
            live: sum.live + shard.leases.len(),
            held: sum.held + shard.leases.values().map(Lease::units).sum::<u64>(),
            granted: sum.granted + shard.counts.granted,
            spent: sum.spent + shard.counts.spent,
            paid_off: sum.paid_off + shard.counts.paid_off,
            stranded: sum.stranded + shard.counts.stranded,
            decisions: sum.decisions + shard.counts.decisions,
        })
    }
}

impl Shard {
    /// Takes out what the charge may not be paid with: expired units, and all of them if the limit has changed.
    fn tidy(&mut self, charge: &Charge, now: Time) {
        let Shard { leases, returns, counts, .. } = self;
        let Some(lease) = leases.get_mut(&charge.bucket) else { return };
        let changed = lease.limit != charge.limit;
        let expired = lease.expire(now);
        let rest = if changed { lease.empty() } else { Default::default() };
        expired.iter().chain(&rest).for_each(|lot| file(lease, charge.bucket, lot, now, returns, counts));
        if changed {
            *lease = Lease::new(charge, now, Span::SECOND);
        }
    }
}

/// Puts units on the list of what to give back, unless time has done so already; else they are lost.
fn file(lease: &Lease, bucket: Digest, lot: &Lot, now: Time, returns: &mut Vec<Receipt>, counts: &mut Counts) {
    match (lease.receipt(bucket, lot, now), lease.limit) {
        (Some(receipt), _) if returns.len() < RETURNS_MAX => returns.push(receipt),
        (None, Limit::Gcra(_)) => counts.paid_off += lot.units, // the bucket has been full since
        _ => counts.stranded += lot.units,
    }
}
