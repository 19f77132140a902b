//! Tollgate's in-memory store, asked as the engine asks it: keyed 128-bit hash, one charge, one call.

use tollgate_core::{Charge, Gcra, KeyHasher, Limit, Secret, SlidingCounter, Span};
use tollgate_store::{Memory, MemoryConfig, MemoryStats, Outcomes};

use super::{BURST, KeyedLimiter, PERIOD};

/// The store with one limit for all keys.
#[derive(Debug)]
pub struct Tollgate {
    store: Memory,
    hasher: KeyHasher,
    limit: Limit,
}

impl Tollgate {
    /// A store of default size on the real clock, with the limit all peers have.
    pub fn new() -> Tollgate {
        let limit = Gcra::new(1, Span::from(PERIOD), u64::from(BURST)).expect("the limit is representable");
        Tollgate::with_limit(Limit::Gcra(limit))
    }

    /// The same with another limit.
    pub fn with_limit(limit: Limit) -> Tollgate {
        let hasher = KeyHasher::new(Secret::new(*b"benchmark secret"));
        Tollgate { store: Memory::new(MemoryConfig::default()), hasher, limit }
    }

    /// What the store says it holds.
    pub fn stats(&self) -> MemoryStats {
        self.store.stats()
    }
}

impl KeyedLimiter for Tollgate {
    type Hand = Outcomes;

    #[inline]
    fn check(&self, outcomes: &mut Outcomes, key: &str) -> bool {
        let mut hasher = self.hasher;
        hasher.part(key.as_bytes());
        let charge = Charge::new(hasher.finish(), self.limit, 1);
        self.store.take_now(&[charge], outcomes).allowed
    }
}

/// The same store with the estimated sliding window, whose buckets are larger.
pub fn sliding_counter() -> Tollgate {
    let limit = SlidingCounter::new(u64::from(BURST), Span::from_secs(86_400)).expect("the limit is representable");
    Tollgate::with_limit(Limit::SlidingCounter(limit))
}
