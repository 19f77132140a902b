//! Tables spread over locks by the bits of a digest.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use tollgate_core::Digest;

use crate::sync::{Mutex, MutexGuard, PaddedShard};

/// How many locks a table is spread over; the model checker tries the orders of few.
const SHARDS: usize = if cfg!(shuttle) { 2 } else { 64 };

/// A map by digest. Digests are keyed hashes already: hashing them again would buy nothing.
pub(super) type DigestMap<T> = HashMap<Digest, T, BuildHasherDefault<DigestHasher>>;

/// Takes the bits of a digest as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // The last word: the first one chose the shard, so its upper bits are alike within one.
        if let Some(last) = bytes.last_chunk::<8>() {
            self.0 = u64::from_ne_bytes(*last);
        }
    }

    fn write_usize(&mut self, _: usize) {} // the length of the digest, always the same
}

/// Independent parts of a table, each behind a lock of its own.
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

    /// All parts, one lock after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|shard| shard.0.lock())
    }
}

/// The part of `most` entries that one shard may hold; at least one.
pub(super) fn per_shard(most: usize) -> usize {
    most.div_ceil(SHARDS).max(usize::from(most > 0))
}
