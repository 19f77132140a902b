//! A bounded cache of verified tokens: a token that comes again costs one digest instead of one signature.
//!
//! Two generations: what is found or added is in the young one; when that is full it becomes the old one, and the old
//! one is forgotten. A flood of valid tokens costs signatures, never memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tollgate_core::Time;

use crate::{KeyDigest, ProvenIdentity};

const SHARDS: usize = 16;

/// Tokens that were verified.
pub(super) struct VerifiedTokens {
    shards: [Mutex<Generations>; SHARDS],
    young_max: usize,
}

#[derive(Default)]
struct Generations {
    young: HashMap<KeyDigest, VerifiedToken>,
    old: HashMap<KeyDigest, VerifiedToken>,
}

#[derive(Clone)]
pub(super) struct VerifiedToken {
    pub(super) identity: Arc<ProvenIdentity>,
    pub(super) expires_at: Time,
    /// The version of the keys that verified it: with other keys it must be verified again.
    pub(super) keys: u64,
}

impl VerifiedTokens {
    /// A cache of about `tokens_max` tokens.
    pub(super) fn new(tokens_max: usize) -> VerifiedTokens {
        VerifiedTokens { shards: Default::default(), young_max: (tokens_max / SHARDS / 2).max(1) }
    }

    pub(super) fn get(&self, digest: &KeyDigest) -> Option<VerifiedToken> {
        let mut shard = self.shard(digest)?.lock();
        if let Some(found) = shard.young.get(digest) {
            return Some(found.clone());
        }
        let found = shard.old.remove(digest)?;
        shard.add(*digest, found.clone(), self.young_max);
        Some(found)
    }

    pub(super) fn add(&self, digest: KeyDigest, token: VerifiedToken) {
        if let Some(shard) = self.shard(&digest) {
            shard.lock().add(digest, token, self.young_max);
        }
    }

    fn shard(&self, digest: &KeyDigest) -> Option<&Mutex<Generations>> {
        let [first, ..] = digest.0;
        self.shards.get(usize::from(first) % SHARDS)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock()).map(|shard| shard.young.len() + shard.old.len()).sum()
    }
}

impl Generations {
    fn add(&mut self, digest: KeyDigest, token: VerifiedToken, young_max: usize) {
        if self.young.len() >= young_max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, token);
    }
}
