//! What the vectors run against: anything that keeps buckets, on a clock that the test sets.

mod in_redis;

use std::sync::Arc;

use tollgate_core::{Ask, Charge, ManualClock, Outcome, Receipt, SlotId, Time};
use tollgate_store::{Memory, MemoryConfig, Outcomes};

pub use in_redis::InRedis;

/// A store under test. Implementors promise that `now` is the only time they use.
pub trait Subject {
    /// Decides over all charges at once, all or nothing; one outcome per charge, in order.
    fn take(&mut self, now: Time, charges: &[Charge]) -> Vec<Outcome>;

    /// Refunds units of a charge; without its stamp, of whatever the bucket holds.
    fn refund(&mut self, now: Time, charge: &Charge, units: u64, stamp: Option<Time>);

    /// Releases a slot; false if `id` holds none.
    fn release(&mut self, now: Time, charge: &Charge, id: SlotId) -> bool;

    /// Drops buckets that equal fresh ones, if the store ever drops any. Outcomes must not change.
    fn sweep(&mut self, _now: Time) {}
}

/// The in-memory store on a manual clock.
pub struct InMemory {
    store: Memory,
    clock: ManualClock,
    /// Receipts so far: each gets a number of its own.
    receipts: u64,
}

impl Default for InMemory {
    fn default() -> Self {
        let clock = ManualClock::default();
        let config = MemoryConfig { max_memory: 1 << 20, shards: 2, ..MemoryConfig::default() };
        InMemory { store: Memory::with_clock(config, Arc::new(clock.clone())), clock, receipts: 0 }
    }
}

impl InMemory {
    fn give_back(&mut self, now: Time, charge: &Charge, units: u64, stamp: Time, slot: Option<SlotId>) -> bool {
        self.clock.set(now);
        self.receipts += 1;
        let Charge { bucket, limit, owner, identity, .. } = *charge;
        let number = Some(self.receipts);
        self.store.give_back_now(&[Receipt { bucket, limit, owner, identity, units, stamp, slot, number }]) == 1
    }
}

impl Subject for InMemory {
    fn take(&mut self, now: Time, charges: &[Charge]) -> Vec<Outcome> {
        self.clock.set(now);
        let mut outcomes = Outcomes::new();
        let _ = self.store.take_now(charges, &mut outcomes);
        outcomes.into_vec()
    }

    /// A store refunds by receipt only: without a stamp, the receipt gets the one that the bucket shows.
    fn refund(&mut self, now: Time, charge: &Charge, units: u64, stamp: Option<Time>) {
        let looks = [Charge { ask: Ask::Peek(0), ..*charge }];
        let stamp = stamp.unwrap_or_else(|| self.take(now, &looks)[0].stamp);
        self.give_back(now, charge, units, stamp, None);
    }

    fn release(&mut self, now: Time, charge: &Charge, id: SlotId) -> bool {
        self.give_back(now, charge, 1, now, Some(id))
    }

    fn sweep(&mut self, now: Time) {
        self.clock.set(now);
        self.store.sweep();
    }
}
