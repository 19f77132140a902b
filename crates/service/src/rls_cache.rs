//! The local cache of envoyproxy/ratelimit (`LOCAL_CACHE_SIZE_IN_BYTES`).
//!
//! A descriptor that went over its limit is refused by this node until its window ends: the store is not asked, and the
//! hits are not counted there. Entries name buckets, so a change of rules that changes the bucket ends them too. Refunds
//! through other nodes are not seen before the window ends, as in that service.

use std::collections::HashMap;

use parking_lot::Mutex;
use tollgate_core::{Digest, Span, Time};

/// The smallest cache: smaller sizes are rounded up to it, as there.
const BYTES_MIN: usize = 512 * 1024;
/// Estimated size of an entry: digest and time in a hash table that is half full.
const ENTRY_BYTES: usize = 64;
/// Shortest time between two searches for expired entries while the cache is full.
const SWEEP_INTERVAL: Span = Span::from_secs(1);

/// Buckets that are over their limits, until the end of their windows.
#[derive(Debug)]
pub struct RlsLocalCache {
    state: Mutex<CacheState>,
    most: usize,
}

#[derive(Debug, Default)]
struct CacheState {
    ends: HashMap<Digest, Time>,
    swept: Time,
    hits: u64,
    misses: u64,
    expired: u64,
    evicted: u64,
    overwritten: u64,
}

impl RlsLocalCache {
    /// A cache of about this size; `None` for 0 bytes.
    pub(crate) fn new(bytes: usize) -> Option<RlsLocalCache> {
        let most = bytes.max(BYTES_MIN) / ENTRY_BYTES;
        (bytes > 0).then(|| RlsLocalCache { state: Mutex::default(), most })
    }

    /// When the window of a bucket that is over its limit ends.
    pub(crate) fn find(&self, bucket: Digest, now: Time) -> Option<Time> {
        let mut state = self.state.lock();
        let end = state.ends.get(&bucket).copied();
        if end.is_some_and(|end| end <= now) {
            state.ends.remove(&bucket);
            state.expired += 1;
        }
        let end = end.filter(|end| *end > now);
        *(if end.is_some() { &mut state.hits } else { &mut state.misses }) += 1;
        end
    }

    pub(crate) fn insert(&self, bucket: Digest, end: Time, now: Time) {
        let mut state = self.state.lock();
        if state.ends.len() >= self.most && !state.ends.contains_key(&bucket) {
            state.make_room(now);
        }
        if state.ends.insert(bucket, end).is_some() {
            state.overwritten += 1;
        }
    }

    pub(crate) fn forget(&self, bucket: Digest) {
        self.state.lock().ends.remove(&bucket);
    }

    /// Its gauges, by their names in `/stats`.
    pub fn figures(&self) -> [(&'static str, u64); 7] {
        let state = self.state.lock();
        [
            ("entryCount", state.ends.len() as u64),
            ("evacuateCount", state.evicted),
            ("expiredCount", state.expired),
            ("hitCount", state.hits),
            ("lookupCount", state.hits + state.misses),
            ("missCount", state.misses),
            ("overwriteCount", state.overwritten),
        ]
    }
}

impl CacheState {
    /// Drops expired entries, or else any one: its bucket is asked again.
    fn make_room(&mut self, now: Time) {
        let before = self.ends.len();
        if now.since(self.swept) >= SWEEP_INTERVAL {
            self.swept = now;
            self.ends.retain(|_, end| *end > now);
        }
        self.expired += (before - self.ends.len()) as u64;
        if self.ends.len() == before
            && let Some(bucket) = self.ends.keys().next().copied()
        {
            self.ends.remove(&bucket);
            self.evicted += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Time {
        Time::from_secs(number)
    }

    fn figure(cache: &RlsLocalCache, name: &str) -> u64 {
        cache.figures().into_iter().find(|(own, _)| *own == name).map_or(u64::MAX, |(_, count)| count)
    }

    #[test]
    fn an_entry_holds_until_its_window_ends() {
        assert!(RlsLocalCache::new(0).is_none());
        let cache = RlsLocalCache::new(1000).unwrap();
        let bucket = Digest([1, 2]);
        assert_eq!(cache.find(bucket, second(1)), None);
        cache.insert(bucket, second(60), second(1));
        assert_eq!(cache.find(bucket, second(59)), Some(second(60)));
        assert_eq!(cache.find(bucket, second(60)), None);
        let counts = ["hitCount", "missCount", "lookupCount", "expiredCount", "entryCount"];
        assert_eq!(counts.map(|name| figure(&cache, name)), [1, 2, 3, 1, 0]);
        cache.insert(bucket, second(90), second(61));
        cache.forget(bucket);
        assert_eq!(cache.find(bucket, second(62)), None);
    }

    #[test]
    fn a_full_cache_drops_what_expired_and_then_anything() {
        let cache = RlsLocalCache::new(1).unwrap();
        let most = (BYTES_MIN / ENTRY_BYTES) as u64;
        (0..most).for_each(|number| cache.insert(Digest([number, 0]), second(10), second(1)));
        cache.insert(Digest([0, 1]), second(100), second(1));
        assert_eq!(["entryCount", "evacuateCount"].map(|name| figure(&cache, name)), [most, 1]);
        cache.insert(Digest([0, 2]), second(100), second(11));
        assert_eq!((figure(&cache, "entryCount"), figure(&cache, "expiredCount")), (2, most - 1));
    }
}
