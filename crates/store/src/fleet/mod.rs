//! One node of a fleet: shares buckets with other nodes as loosely as each charge allows.
//!
//! | sharing | decided by | cost | excess it may admit |
//! |---|---|---|---|
//! | exact | the shared store | a call | none |
//! | leased | this node, by units debited in advance | a call per batch | units that nodes hold: `min(N·q, r·τ)` |
//! | async | this node, by a copy of the bucket, reporting later | a call per interval | unbounded, measured |
//! | local | this node, by its share of the limit | none | none, if the number of nodes is as configured |
//!
//! In front of all of them is the deny cache: a key that is refused until a known time is refused by this node.
//!
//! A lease can be spent without a call because the store debited its units when it granted them. They are spent within
//! the lifetime τ of the lease, measured on this node's clock from before the call was sent, so no unit is spent later
//! than τ after its debit, and no unit of a window after the window. In any span t no more passes than was debited in
//! it, `B + r·t`, and what was held at its start.
//!
//! A leased bucket that was found empty is not asked for 25 to 50 ms, if its units are returned faster than that;
//! requests refused in the meantime get that wait. So a hot key beyond its limit costs a call per backoff instead of a
//! call per unit. No unit is lost, because they accumulate in the bucket.
//!
//! [`Fleet`] starts no task and knows no runtime: the program calls [`Fleet::upkeep`] about every 50 ms, lends a task
//! to [`Fleet::run_refills`], and calls [`Fleet::close`] before the process ends.

mod async_buckets;
mod config;
mod deny;
mod lease;
mod mirror;
mod pending_decision;
mod refills;
mod route;
mod sharded;
mod stats;
mod upkeep;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use smallvec::SmallVec;
use tollgate_core::{Charge, Clock, Receipt, Source, Span, Time};

use self::async_buckets::AsyncBuckets;
use self::deny::DenyCache;
use self::lease::Leases;
use self::mirror::Observation;
use self::pending_decision::PendingDecision;
use self::refills::RefillQueue;
use self::route::{ChargeRoute, local_share};
use crate::{Memory, Outcomes, Store, StoreError, Taken};

pub use self::config::FleetConfig;
pub use self::stats::FleetStats;

/// A store that shares its buckets with other nodes, as the [`Sharing`](tollgate_core::Sharing) of each charge says.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::{Charge, Digest, LeaseSize, Limit, Sharing};
/// use tollgate_store::{Fleet, FleetConfig, Memory, MonotonicClock, Outcomes, Store};
///
/// // Any store works; the nodes of a real fleet share one over the network.
/// let fleet = Fleet::new(Memory::default(), FleetConfig::default(), Arc::new(MonotonicClock::new()));
/// let limit = Limit::per_second(1000).unwrap();
/// let local = Charge { sharing: Sharing::Local, ..Charge::new(Digest([1, 2]), limit, 1) };
/// assert!(fleet.try_take(&[local], &mut Outcomes::new()).is_some(), "decided without the shared store");
/// let exact = Charge::new(Digest([3, 4]), limit, 1);
/// assert!(fleet.try_take(&[exact], &mut Outcomes::new()).is_none(), "the shared store must be asked");
/// ```
pub struct Fleet<S> {
    inner: S,
    config: FleetConfig,
    clock: Arc<dyn Clock>,
    leases: Leases,
    refills: RefillQueue,
    async_buckets: AsyncBuckets,
    deny: DenyCache,
    /// This node's static shares.
    local: Memory,
    by_local: AtomicU64,
    /// Requests of several charges that the deny cache refused.
    remembered: AtomicU64,
    inner_calls: AtomicU64,
    returned: AtomicU64,
    /// The store's time minus this node's, in nanoseconds, as of the last answer. Only for async buckets.
    skew: AtomicI64,
}

impl<S: Store> Fleet<S> {
    /// A node that shares the buckets of `inner`. The clock must be monotonic; it determines when leases expire.
    pub fn new(inner: S, config: FleetConfig, clock: Arc<dyn Clock>) -> Fleet<S> {
        Fleet {
            inner,
            config,
            leases: Leases::new(config.lease_ttl, config.deny_cache_ttl, config.max_leases),
            refills: RefillQueue::default(),
            async_buckets: AsyncBuckets::new(config.max_async),
            deny: DenyCache::new(config.deny_cache_ttl, config.max_denials),
            local: Memory::with_clock(config.local, clock.clone()),
            clock,
            by_local: AtomicU64::new(0),
            remembered: AtomicU64::new(0),
            inner_calls: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            skew: AtomicI64::new(0),
        }
    }

    /// The shared store.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Statistics of this node.
    pub fn stats(&self) -> FleetStats {
        let leases = self.leases.counts();
        let async_buckets = self.async_buckets.counts();
        let (deny_entries, hits) = self.deny.figures();
        let returned = self.returned.load(Ordering::Relaxed);
        FleetStats {
            leases: leases.live,
            lease_held: leases.held,
            lease_granted: leases.granted,
            lease_grants: leases.grants,
            lease_spent: leases.spent,
            lease_returned: returned + leases.paid_off,
            lease_stranded: leases.stranded.saturating_sub(returned),
            by_lease: leases.decisions,
            by_deny_cache: hits + self.remembered.load(Ordering::Relaxed),
            by_async: async_buckets.decisions,
            by_local: self.by_local.load(Ordering::Relaxed),
            inner_calls: self.inner_calls.load(Ordering::Relaxed),
            async_pending: async_buckets.pending,
            async_excess: async_buckets.excess,
            deny_entries,
        }
    }

    /// The number of nodes that share the buckets, by the store or by configuration.
    fn nodes_or_configured(&self) -> u64 {
        self.inner.nodes().unwrap_or(self.config.nodes).max(1)
    }

    /// Decides a request of one charge, if that needs no call. `None` has changed nothing.
    #[inline]
    fn decide_alone(&self, charge: &Charge, may_ask: bool, outcomes: &mut Outcomes) -> Option<Taken> {
        let (outcome, now) = match ChargeRoute::of(charge) {
            ChargeRoute::Leased(_) => self.leases.try_spend(charge, self.clock.now())?,
            ChargeRoute::Shared => {
                return self.deny.check(std::slice::from_ref(charge), self.clock.now(), may_ask, outcomes);
            }
            ChargeRoute::Local => return Some(self.take_share(charge, outcomes)),
            ChargeRoute::Async => {
                let now = self.store_time(self.clock.now());
                if !self.async_buckets.has(charge, self.nodes_or_configured()) {
                    return None;
                }
                (self.async_buckets.take(charge, now, true)?, now)
            }
        };
        outcomes.push(outcome);
        Some(Taken::new(outcome.allowed || !charge.is_enforced(), now))
    }

    fn take_share(&self, charge: &Charge, outcomes: &mut Outcomes) -> Taken {
        let taken = self.take_local(&[local_share(charge, self.nodes_or_configured())], outcomes);
        outcomes.iter_mut().for_each(|outcome| outcome.source = Source::Local);
        taken
    }

    fn take_local(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Taken {
        self.by_local.fetch_add(charges.len() as u64, Ordering::Relaxed);
        self.local.take_now(charges, outcomes)
    }

    fn note_remembered(&self, refused: bool) {
        self.remembered.fetch_add(u64::from(refused), Ordering::Relaxed);
    }

    /// An estimate of the store's time.
    fn store_time(&self, now: Time) -> Time {
        Time::from_nanos(now.nanos().saturating_add_signed(self.skew.load(Ordering::Relaxed)))
    }

    /// Calls the shared store. The clock is read before the call, so that what the answer grants does not expire too
    /// late.
    async fn ask(
        &self,
        charges: &[Charge],
        within: Span,
        outcomes: &mut Outcomes,
    ) -> Result<(Taken, Observation), StoreError> {
        self.inner_calls.fetch_add(1, Ordering::Relaxed);
        let sent = self.clock.now();
        let taken = self.inner.take(charges, within, outcomes).await?;
        let received = self.clock.now();
        self.skew.store(taken.now.nanos().wrapping_sub(received.nanos()) as i64, Ordering::Relaxed);
        Ok((taken, Observation { store_time: taken.now, sent, received }))
    }

    /// Decides a request that needs the shared store.
    async fn take_slowly(
        &self,
        charges: &[Charge],
        within: Span,
        outcomes: &mut Outcomes,
    ) -> Result<Taken, StoreError> {
        if is_shared(charges) {
            return self.take_shared(charges, within, outcomes).await;
        }
        // Boxed, so that the future of a local decision does not contain it.
        Box::pin(PendingDecision::begin(self, charges, self.clock.now(), true).finish(within, outcomes)).await
    }

    /// Decides a request of which all charges belong to the shared store.
    async fn take_shared(
        &self,
        charges: &[Charge],
        within: Span,
        outcomes: &mut Outcomes,
    ) -> Result<Taken, StoreError> {
        let (taken, seen) = self.ask(charges, within, outcomes).await?;
        match taken.allowed {
            true => self.deny.refresh(charges, outcomes, seen),
            false => self.deny.remember(charges, outcomes, seen),
        }
        Ok(taken)
    }

    /// Gives a receipt back to this node's own buckets. Returns whether that had an effect, and what is left for the
    /// shared store.
    fn give_back_here(&self, receipt: &Receipt) -> (bool, Option<Receipt>) {
        let limit = receipt.limit.share(self.nodes_or_configured());
        if self.by_local.load(Ordering::Relaxed) > 0 && self.local.holds(receipt.bucket, &limit) {
            return (self.local.give_back_now(&[Receipt { limit, ..receipt.handed_on() }]) > 0, None);
        }
        // A receipt with a number may arrive at any node, so it was charged in the store, which spends the number.
        // Charges pending on this node belong to other requests.
        if receipt.number.is_some() {
            return (false, Some(receipt.handed_on()));
        }
        match self.async_buckets.give_back(receipt, self.store_time(self.clock.now())) {
            Some(0) => (true, None),
            Some(reported) => (false, Some(Receipt { units: reported, ..receipt.handed_on() })),
            None => (false, Some(receipt.handed_on())),
        }
    }

    fn invalidate<'a>(&self, receipts: impl Iterator<Item = &'a Receipt>) {
        for receipt in receipts {
            self.deny.forget(receipt.bucket);
            self.leases.invalidate(receipt.bucket);
            self.async_buckets.invalidate(receipt.bucket);
        }
    }
}

impl<S: Store> Store for Fleet<S> {
    #[inline]
    async fn take(&self, charges: &[Charge], within: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        outcomes.clear();
        let answered = match charges {
            [charge] => self.decide_alone(charge, true, outcomes),
            many if is_shared(many) => self.deny.check(many, self.clock.now(), true, outcomes),
            _ => None,
        };
        if let Some(taken) = answered {
            return Ok(taken);
        }
        self.take_slowly(charges, within, outcomes).await
    }

    #[inline]
    fn try_take(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Option<Taken> {
        outcomes.clear();
        match charges {
            [charge] => self.decide_alone(charge, false, outcomes),
            many => PendingDecision::begin(self, many, self.clock.now(), false).finish_locally(outcomes),
        }
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        let mut given = 0;
        let mut rest: SmallVec<[Receipt; 4]> = SmallVec::new();
        for receipt in receipts {
            let (gave, left) = self.give_back_here(receipt);
            given += usize::from(gave);
            rest.extend(left);
        }
        if rest.is_empty() {
            return Ok(given);
        }
        self.invalidate(rest.iter());
        self.inner_calls.fetch_add(1, Ordering::Relaxed);
        let answer = self.inner.give_back(&rest).await;
        self.invalidate(rest.iter()); // an older answer may have been remembered in the meantime
        answer.map(|more| given + more)
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        let forget_here = || {
            for charge in buckets {
                self.deny.forget(charge.bucket);
                self.leases.forget(charge.bucket);
                self.async_buckets.forget(charge.bucket);
            }
            self.local.forget_now(buckets);
        };
        forget_here();
        if buckets.iter().all(|charge| ChargeRoute::of(charge) == ChargeRoute::Local) {
            return Ok(()); // the shared store never has them, and may be away
        }
        self.inner_calls.fetch_add(1, Ordering::Relaxed);
        let answer = self.inner.forget(buckets).await;
        forget_here();
        answer
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn nodes(&self) -> Option<u64> {
        self.inner.nodes()
    }
}

/// True if all charges belong to the shared store.
fn is_shared(charges: &[Charge]) -> bool {
    charges.iter().all(|charge| ChargeRoute::of(charge) == ChargeRoute::Shared)
}

impl<S: fmt::Debug> fmt::Debug for Fleet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fleet { inner, config, .. } = self;
        f.debug_struct("Fleet").field("inner", inner).field("config", config).finish_non_exhaustive()
    }
}
