//! The simplest implementation: maps of strings behind locks, picked by hash.

use std::hash::BuildHasher;
use std::time::Instant;

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use super::{BURST, KeyedLimiter, PERIOD};

const SHARDS: usize = 256;
const INTERVAL: u64 = PERIOD.as_nanos() as u64;
const TOLERANCE: u64 = INTERVAL * BURST as u64;

/// Arrival times by key. A table rather than a map, so that one hash picks both the shard and the place.
pub struct ShardedMap {
    shards: Vec<Shard>,
    hasher: DefaultHashBuilder,
    start: Instant,
}

#[repr(align(64))]
#[derive(Default)]
struct Shard(Mutex<HashTable<(String, u64)>>);

impl ShardedMap {
    /// An empty limiter.
    #[expect(clippy::disallowed_methods, reason = "a limiter needs a clock")]
    pub fn new() -> ShardedMap {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        ShardedMap { shards, hasher: DefaultHashBuilder::default(), start: Instant::now() }
    }
}

impl KeyedLimiter for ShardedMap {
    type Hand = ();

    #[inline]
    fn check(&self, (): &mut (), key: &str) -> bool {
        let hash = self.hasher.hash_one(key);
        let now = self.start.elapsed().as_nanos() as u64;
        let Some(shard) = self.shards.get((hash >> 32) as usize % SHARDS) else { return false };
        let mut table = shard.0.lock();
        let rehash = |(key, _): &(String, u64)| self.hasher.hash_one(key);
        let mut entry = table.entry(hash, |(known, _)| known == key, rehash).or_insert_with(|| (key.to_owned(), 0));
        let (_, tat) = entry.get_mut();
        let next = (*tat).max(now) + INTERVAL;
        let allowed = next - now <= TOLERANCE;
        if allowed {
            *tat = next;
        }
        allowed
    }
}
