//! One node of a fleet: shares buckets with the others as loosely as each charge allows.
//!
//! | sharing | who decides | what it costs | what it may admit too much |
//! |---|---|---|---|
//! | exact | the shared store | a call | nothing |
//! | leased | this node, by units the store has debited before | a call per batch | what nodes hold: `min(N·q, r·τ)` |
//! | async | this node, by what it knows; the store is told behind | a call per interval | unbounded, measured |
//! | local | this node, by its share | nothing | nothing, if the nodes are as many as configured |
//!
//! Around all of them lies the deny cache: a key that is refused until a known moment is refused here.
//!
//! A lease may be spent without asking because asking came first: the store debited its units when it granted them.
//! They are spent within the lease's lifetime τ, counted on this node's clock from before the question was sent, so a
//! unit is never spent later than τ after its debit, and those of a window never after the window. In any span t no more
//! passes than was debited in it, `B + r·t`, and what was held when it began.
//!
//! A leased bucket that was found empty is left alone for 25 to 50 ms while its units gather, where they come back faster
//! than that: who is refused meanwhile is told to wait until then. So a hot key beyond its limit costs a call per pace
//! instead of a call per unit, and loses nothing, because the units wait in the bucket.
//!
//! [`Fleet`] starts no task and knows no runtime: whoever runs it calls [`Fleet::upkeep`] every 50 ms or so, and
//! [`Fleet::close`] before the process ends.

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

/// A store that shares its buckets with other nodes, by the sharing that each charge carries.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::{Charge, Digest, LeaseSize, Limit, Sharing};
/// use tollgate_store::{Fleet, FleetConfig, Memory, MonotonicClock, Outcomes, Store};
///
/// // Any store will do; nodes of a real fleet share one behind the network.
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
    /// Refusals over several parts of which the remembered ones decided.
    remembered: AtomicU64,
    inner_calls: AtomicU64,
    returned: AtomicU64,
    /// The store's time less this node's, in nanoseconds, as of the last answer. For what is decided behind only.
    skew: AtomicI64,
}

impl<S: Store> Fleet<S> {
    /// A node that shares the buckets of `inner`. The clock must be monotonic; it decides when leases end.
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

    /// What this node did.
    pub fn stats(&self) -> FleetStats {
        let leases = self.leases.counts();
        let async_buckets = self.async_buckets.counts();
        let (deny_entries, hits) = self.deny.figures();
        let returned = self.returned.load(Ordering::Relaxed);
        FleetStats {
            leases: leases.live,
            lease_held: leases.held,
            lease_granted: leases.granted,
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

    /// Nodes that share the buckets, by the store or by configuration.
    fn nodes_or_configured(&self) -> u64 {
        self.inner.nodes().unwrap_or(self.config.nodes).max(1)
    }

    /// Decides a request of one charge, if that needs nobody. `None` has changed nothing.
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

    /// The store's time, as far as is known.
    fn store_time(&self, now: Time) -> Time {
        Time::from_nanos(now.nanos().saturating_add_signed(self.skew.load(Ordering::Relaxed)))
    }

    /// Asks the shared store. The clock is read before: whatever the answer allows began no earlier than that.
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

    /// Decides what the shared store has to be asked about.
    async fn take_slowly(
        &self,
        charges: &[Charge],
        within: Span,
        outcomes: &mut Outcomes,
    ) -> Result<Taken, StoreError> {
        if is_shared(charges) {
            return self.take_shared(charges, within, outcomes).await;
        }
        // In a box, so that those who are answered at once do not carry the room for it.
        Box::pin(PendingDecision::begin(self, charges, self.clock.now(), true).finish(within, outcomes)).await
    }

    /// A request that is the shared store's alone, and of which too little is remembered.
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

    /// Gives a receipt back to whoever keeps its bucket here; answers whether that gave something, and what is left for
    /// the shared store.
    fn give_back_here(&self, receipt: &Receipt) -> (bool, Option<Receipt>) {
        let limit = receipt.limit.share(self.nodes_or_configured());
        if self.by_local.load(Ordering::Relaxed) > 0 && self.local.holds(receipt.bucket, &limit) {
            return (self.local.give_back_now(&[Receipt { limit, ..receipt.handed_on() }]) > 0, None);
        }
        // Who numbers a receipt may bring it to any node, so it was charged in the store, where the number is spent.
        // What is pending here is somebody else's.
        if receipt.number.is_some() {
            return (false, Some(receipt.handed_on()));
        }
        match self.async_buckets.give_back(receipt, self.store_time(self.clock.now())) {
            Some(0) => (true, None),
            Some(told) => (false, Some(Receipt { units: told, ..receipt.handed_on() })),
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
        self.invalidate(rest.iter()); // an answer from before may have been remembered meanwhile
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

/// True if all of them are the shared store's.
fn is_shared(charges: &[Charge]) -> bool {
    charges.iter().all(|charge| ChargeRoute::of(charge) == ChargeRoute::Shared)
}

impl<S: fmt::Debug> fmt::Debug for Fleet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fleet { inner, config, .. } = self;
        f.debug_struct("Fleet").field("inner", inner).field("config", config).finish_non_exhaustive()
    }
}
