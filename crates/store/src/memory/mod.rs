//! The in-memory store: exact, bounded, about one cache miss per decision.
//!
//! Buckets are spread over shards by their digest, each behind its own lock. A request locks the shards of all its
//! buckets in index order, reads every bucket, then records into all or none. A full store drops only buckets that are
//! indistinguishable from unused ones; if there are none, new keys share their rule's overflow bucket, so a flood can
//! neither reset a limit nor grow memory.

mod changed_places;
mod locks;
mod quotas;
mod shard;
mod spent_receipts;
mod table;
mod usage;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Clock, Digest, Limit, Receipt, Span, Time};

use self::locks::{Locks, Seats};
pub use self::quotas::RestoredQuotas;
use self::shard::{Look, Shard, StoreTime};
use crate::sync::{Mutex, MutexGuard, PaddedShard};
use crate::{MonotonicClock, Outcomes, Store, StoreError, Taken};

/// The smallest size of a shard; a small store has fewer shards.
const SHARD_BYTES_MIN: usize = 16 << 10;

/// The size of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Bytes for all buckets. Default 1 GiB: about twenty million keys.
    pub max_memory: usize,
    /// The limit of an overflow bucket, as a multiple of its rule's limit. Default 10.
    pub overflow_factor: u64,
    /// Number of shards, each behind its own lock. Default 256.
    pub shards: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        MemoryConfig { max_memory: 1 << 30, overflow_factor: 10, shards: 256 }
    }
}

/// Statistics of the store. Sums over shards, which are read one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Number of buckets.
    pub buckets: usize,
    /// Bytes used.
    pub bytes: usize,
    /// Buckets dropped because they were indistinguishable from unused ones.
    pub dropped: u64,
    /// Charges that went to an overflow bucket.
    pub overflowed: u64,
}

/// The in-memory store.
///
/// ```
/// use tollgate_core::{Charge, Digest, Limit};
/// use tollgate_store::{Memory, Outcomes};
///
/// let store = Memory::default();
/// let charge = Charge::new(Digest([1, 2]), Limit::per_minute(2).unwrap(), 1);
/// let mut outcomes = Outcomes::new();
/// assert!(store.take_now(&[charge], &mut outcomes).allowed);
/// assert!(store.take_now(&[charge], &mut outcomes).allowed);
/// assert!(!store.take_now(&[charge], &mut outcomes).allowed);
/// ```
pub struct Memory {
    shards: Box<[PaddedShard<Shard>]>,
    clock: ClockSource,
    config: MemoryConfig,
    overflowed: AtomicU64,
}

/// The clock of the store: the real one is called directly, others through their trait.
enum ClockSource {
    Real(MonotonicClock),
    Other(Arc<dyn Clock>),
}

impl Clock for ClockSource {
    #[inline]
    fn now(&self) -> Time {
        match self {
            ClockSource::Real(clock) => clock.now(),
            ClockSource::Other(clock) => clock.now(),
        }
    }

    #[inline]
    fn wall_at(&self, now: Time) -> Time {
        match self {
            ClockSource::Real(clock) => clock.wall_at(now),
            ClockSource::Other(clock) => clock.wall_at(now),
        }
    }
}

impl Memory {
    /// A store on the real clock.
    pub fn new(config: MemoryConfig) -> Memory {
        Memory::with_clock_source(config, ClockSource::Real(MonotonicClock::new()))
    }

    /// A store on another clock, such as `ManualClock`.
    pub fn with_clock(config: MemoryConfig, clock: Arc<dyn Clock>) -> Memory {
        Memory::with_clock_source(config, ClockSource::Other(clock))
    }

    fn with_clock_source(config: MemoryConfig, clock: ClockSource) -> Memory {
        let most = (config.max_memory / SHARD_BYTES_MIN).clamp(1, 1 << 16);
        let config = MemoryConfig { shards: config.shards.clamp(1, most), ..config };
        let budget = (config.max_memory / config.shards).max(Shard::BUDGET_MIN);
        let shards = (0..config.shards).map(|_| PaddedShard(Mutex::new(Shard::new(budget)))).collect();
        Memory { shards, clock, config, overflowed: AtomicU64::new(0) }
    }

    /// The clock of the store.
    pub fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    /// [`Store::take`], synchronously: this store never waits and never fails.
    #[inline]
    pub fn take_now(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Taken {
        outcomes.clear();
        if charges.iter().any(|charge| charge.owner.is_overflowing()) {
            let redirected =
                charges.iter().map(|charge| self.redirect(charge, charge.owner.is_overflowing())).collect();
            return self.take_redirected(redirected, outcomes);
        }
        match charges {
            [] => taken(true, self.time()),
            [charge] => self.take_one(charge, outcomes),
            many => self.take_many(many, outcomes),
        }
    }

    /// [`Store::give_back`], synchronously.
    pub fn give_back_now(&self, receipts: &[Receipt]) -> usize {
        let give_back = |receipt: &&Receipt| match receipt.owner.is_overflowing() {
            false => self.lock(receipt.bucket).give_back(receipt, self.time()),
            true => {
                let Charge { bucket, limit, owner, identity, .. } = self.redirect(&receipt.charge(Ask::Peek(0)), true);
                let receipt = Receipt { bucket, limit, owner, identity, ..receipt.handed_on() };
                self.lock(bucket).give_back(&receipt, self.time())
            }
        };
        receipts.iter().filter(give_back).count()
    }

    /// True if the store has this bucket.
    pub(crate) fn holds(&self, bucket: Digest, limit: &Limit) -> bool {
        self.lock(bucket).place(&Charge::new(bucket, *limit, 0)).is_some()
    }

    /// [`Store::forget`], synchronously.
    pub fn forget_now(&self, buckets: &[Charge]) {
        for Charge { bucket, limit, .. } in buckets {
            self.lock(*bucket).forget(*bucket, limit.kind());
        }
    }

    /// Checks a few more buckets in every shard and drops those that are indistinguishable from unused ones. To be
    /// called periodically: otherwise only a store that needs room drops buckets.
    pub fn sweep(&self) {
        self.shards.iter().for_each(|padded| {
            let mut shard = padded.0.lock();
            shard.sweep(self.time());
        });
    }

    /// Statistics of the store.
    pub fn stats(&self) -> MemoryStats {
        let start = MemoryStats { overflowed: self.overflowed.load(Ordering::Relaxed), ..MemoryStats::default() };
        self.shards.iter().fold(start, |sum, padded| {
            let shard = padded.0.lock();
            MemoryStats {
                buckets: sum.buckets + shard.buckets(),
                bytes: sum.bytes + shard.bytes(),
                dropped: sum.dropped + shard.dropped(),
                ..sum
            }
        })
    }

    /// To be read under the lock, so that a bucket never sees time step back. If it were read before, a thread that is
    /// preempted in between would look like a backward step, and the bucket would forget usage.
    #[inline]
    fn time(&self) -> StoreTime {
        let now = self.clock.now();
        StoreTime { now, wall: self.clock.wall_at(now) }
    }

    #[inline]
    fn take_one(&self, charge: &Charge, outcomes: &mut Outcomes) -> Taken {
        let mut shard = self.lock(charge.bucket);
        let time = self.time();
        let decided = shard.take_alone(charge, time, outcomes);
        drop(shard);
        match decided {
            Some(allowed) => taken(allowed, time),
            None => self.take_one_overflowed(charge, outcomes),
        }
    }

    #[cold]
    fn take_one_overflowed(&self, charge: &Charge, outcomes: &mut Outcomes) -> Taken {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        self.take_one(&self.redirect(charge, true), outcomes)
    }

    fn take_many(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Taken {
        let mut seats = Seats::new();
        let mut locks = Locks::new(self, charges, &mut seats);
        let time = self.time();
        for (charge, seat) in charges.iter().zip(&mut seats) {
            locks.find(charge, seat);
        }
        let (mut passes, mut full) = (true, 0);
        for (charge, seat) in charges.iter().zip(&mut seats) {
            locks.look(charge, seat, time);
            passes &= seat.look.admits() || !charge.is_enforced();
            full += u64::from(seat.look == Look::Full);
        }
        if full > 0 {
            drop(locks); // the overflow buckets are in other shards, which must be locked in order too
            self.overflowed.fetch_add(full, Ordering::Relaxed);
            let redirected =
                charges.iter().zip(&seats).map(|(charge, seat)| self.redirect(charge, seat.look == Look::Full));
            return self.take_redirected(redirected.collect(), outcomes);
        }
        for (charge, seat) in charges.iter().zip(&seats) {
            let Look::Seen { admits, place } = seat.look else { continue };
            outcomes.push(locks.shard(*seat).settle(charge, place, time, passes, admits));
        }
        taken(passes, time)
    }

    /// Takes charges of which several may share an overflow bucket: those are combined into one. Where their asks
    /// cannot be combined, each is taken on its own.
    #[cold]
    fn take_redirected(&self, charges: SmallVec<[Charge; 16]>, outcomes: &mut Outcomes) -> Taken {
        let mut joined: SmallVec<[Charge; 16]> = SmallVec::new();
        let mut places: SmallVec<[usize; 16]> = SmallVec::new();
        for charge in &charges {
            let twin = joined.iter_mut().enumerate().find_map(|(place, other)| {
                let ask = (other.bucket == charge.bucket).then(|| other.ask.join(charge.ask))??;
                Some((place, other, ask))
            });
            match twin {
                Some((place, other, ask)) => {
                    other.ask = ask;
                    places.push(place);
                }
                None => {
                    places.push(joined.len());
                    joined.push(*charge);
                }
            }
        }
        let taken = self.take_many(&joined, outcomes);
        let answers: Outcomes = places.iter().filter_map(|place| outcomes.get(*place).copied()).collect();
        *outcomes = answers;
        taken
    }

    /// The same charge, on its owner's overflow bucket if it `overflows`. There is always room for that: each rule has
    /// one.
    fn redirect(&self, charge: &Charge, overflows: bool) -> Charge {
        if overflows { charge.overflowing(self.config.overflow_factor) } else { *charge }
    }

    #[inline]
    fn lock(&self, bucket: Digest) -> MutexGuard<'_, Shard> {
        #[expect(clippy::indexing_slicing, reason = "the index is below the number of shards by construction")]
        self.shards[self.index(bucket)].0.lock()
    }

    #[inline]
    fn index(&self, bucket: Digest) -> usize {
        let [bits, _] = bucket.0;
        ((u128::from(bits) * self.shards.len() as u128) >> 64) as usize
    }
}

#[inline]
fn taken(allowed: bool, StoreTime { now, wall }: StoreTime) -> Taken {
    Taken { allowed, now, wall }
}

impl Store for Memory {
    async fn take(&self, charges: &[Charge], _: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        Ok(self.take_now(charges, outcomes))
    }

    #[inline]
    fn try_take(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Option<Taken> {
        Some(self.take_now(charges, outcomes))
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        Ok(self.give_back_now(receipts))
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        self.forget_now(buckets);
        Ok(())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new(MemoryConfig::default())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("config", &self.config).finish_non_exhaustive()
    }
}
