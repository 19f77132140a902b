//! What the test vectors run against: anything that keeps buckets, driven by a clock that the test holds.

mod in_redis;

use std::fmt;
use std::sync::Arc;

use tollgate_core::{Ask, Charge, ManualClock, Outcome, Receipt, SlotId, Time};
use tollgate_store::{Memory, MemoryConfig, Outcomes};

pub use in_redis::InRedis;

use crate::Reference;

/// A keeper of buckets. Implementors promise that `now` is the only time they see.
pub trait Subject {
    /// Decides over all charges at once, all or nothing; one outcome per charge, in order.
    fn take(&mut self, now: Time, charges: &[Charge]) -> Vec<Outcome>;

    /// Gives units of a charge back. Without the stamp of the charge: of whatever the bucket holds.
    fn refund(&mut self, now: Time, charge: &Charge, units: u64, stamp: Option<Time>);

    /// Releases a slot; false if `id` holds none.
    fn release(&mut self, now: Time, charge: &Charge, id: SlotId) -> bool;

    /// Drops what may be dropped, if it ever drops anything. Nobody may notice.
    fn sweep(&mut self, _now: Time) {}
}

/// A way to make subjects, by the name that `--store` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// [`tollgate_store::Memory`] on a manual clock.
    Memory,
    /// [`Reference`]: the model of a store.
    Reference,
    /// [`InRedis`]: the server at this port of this machine.
    Redis(u16),
}

impl SubjectKind {
    /// What the vectors run on unless told otherwise.
    pub const DEFAULT: SubjectKind = SubjectKind::Memory;

    /// Every store that needs no server.
    pub const ALL: [SubjectKind; 2] = [SubjectKind::Memory, SubjectKind::Reference];

    /// The name that chooses it.
    pub const fn name(self) -> &'static str {
        match self {
            SubjectKind::Memory => "memory",
            SubjectKind::Reference => "reference",
            SubjectKind::Redis(_) => "redis://127.0.0.1:PORT",
        }
    }

    /// The store behind a name or URL.
    pub fn from_url(url: &str) -> Result<SubjectKind, UnknownStore> {
        let unknown = || UnknownStore(url.to_owned());
        let address = url.strip_prefix("redis://").map(|rest| rest.trim_end_matches('/'));
        match address.and_then(|address| address.split_once(':')) {
            Some(("127.0.0.1" | "localhost", port)) => port.parse().map(SubjectKind::Redis).map_err(|_| unknown()),
            Some(_) => Err(unknown()),
            None => SubjectKind::ALL.into_iter().find(|store| store.name() == url).ok_or_else(unknown),
        }
    }

    /// A subject without any bucket.
    pub fn open(self) -> Box<dyn Subject> {
        match self {
            SubjectKind::Memory => Box::new(InMemory::default()),
            SubjectKind::Reference => Box::new(Reference::default()),
            SubjectKind::Redis(port) => Box::new(InRedis::connect(port)),
        }
    }
}

/// Nobody answers to this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStore(String);

impl fmt::Display for UnknownStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = SubjectKind::ALL.into_iter().chain([SubjectKind::Redis(0)]).map(SubjectKind::name);
        let known: Vec<&str> = known.collect();
        write!(f, "unknown store {:?}; known are: {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownStore {}

/// The in-memory store, with its clock in our hands.
pub struct InMemory {
    store: Memory,
    clock: ManualClock,
    /// Receipts written so far: each gets a number of its own.
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

    /// A store refunds by receipt only: without a stamp, the receipt is for whatever the bucket shows.
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
