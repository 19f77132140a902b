//! Maps split into shards by the bits of a digest, each shard behind its own lock.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use tollgate_core::Digest;

use crate::sync::{Mutex, MutexGuard, PaddedShard};

/// Number of shards; few for the model checker, which explores their locking orders.
const SHARDS: usize = if cfg!(shuttle) { 2 } else { 64 };

/// A map by digest. Digests are keyed hashes already: hashing them again is not needed.
pub(super) type DigestMap<T> = HashMap<Digest, T, BuildHasherDefault<DigestHasher>>;

/// Uses the bits of a digest as its hash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // The last word: the first one selected the shard, so its upper bits are equal within a shard.
        if let Some(last) = bytes.last_chunk::<8>() {
            self.0 = u64::from_ne_bytes(*last);
        }
    }

    fn write_usize(&mut self, _: usize) {} // the length of the digest, always the same
}

/// Independent shards, each behind its own lock.
#[derive(Debug)]
pub(super) struct Sharded<T>(Box<[PaddedShard<T>]>);

impl<T> Sharded<T> {
    pub(super) fn new(make: impl Fn() -> T) -> Sharded<T> {
        Sharded((0..SHARDS).map(|_| PaddedShard(Mutex::new(make()))).collect())
    }

    #[inline]
    pub(super) fn lock(&self, bucket: Digest) -> MutexGuard<'_, T> {
        let [bits, _] = bucket.0;
        let index = ((u128::from(bits) * SHARDS as u128) >> 64) as usize;
        #[expect(clippy::indexing_slicing, reason = "the index is below the number of shards by construction")]
        self.0[index].0.lock()
    }

    /// All shards, one lock after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|shard| shard.0.lock())
    }
}

/// How many of `most` entries one shard may hold; at least one.
pub(super) fn per_shard(most: usize) -> usize {
    most.div_ceil(SHARDS).max(usize::from(most > 0))
}
