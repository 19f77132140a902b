//! The floor: fingerprints of 64 bits beside arrival times, and nothing else.
//!
//! No bound on memory, no overflow, no second bucket, no hints, and two keys in some billions share a bucket. The difference
//! to a complete limiter is the cost of its promises.

use std::hash::Hasher;
use std::time::Instant;

use parking_lot::Mutex;
use siphasher::sip::SipHasher13;

use super::{BURST, KeyedLimiter, PERIOD};

const SHARDS: usize = 256;
const INTERVAL: u64 = PERIOD.as_nanos() as u64;
const TOLERANCE: u64 = INTERVAL * BURST as u64;

/// Shards of open-addressed tables, picked by a keyed hash.
pub struct FloorTable {
    shards: Vec<Shard>,
    hasher: SipHasher13,
    start: Instant,
}

#[repr(align(64))]
#[derive(Default)]
struct Shard(Mutex<Table>);

/// A power of two of places, at most half of them in use. Fingerprint 0: vacant.
#[derive(Default)]
struct Table {
    places: Vec<(u64, u64)>,
    used: usize,
}

impl FloorTable {
    /// An empty limiter.
    #[expect(clippy::disallowed_methods, reason = "a limiter needs a clock")]
    pub fn new() -> FloorTable {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        FloorTable { shards, hasher: SipHasher13::new_with_key(b"benchmark secret"), start: Instant::now() }
    }
}

impl KeyedLimiter for FloorTable {
    type Hand = ();

    #[inline]
    fn check(&self, (): &mut (), key: &str) -> bool {
        let mut hasher = self.hasher;
        hasher.write(key.as_bytes());
        let print = hasher.finish().max(1);
        let now = self.start.elapsed().as_nanos() as u64;
        let Some(shard) = self.shards.get((print >> 56) as usize % SHARDS) else { return false };
        let mut table = shard.0.lock();
        let Some(tat) = table.find(print) else { return false };
        let next = (*tat).max(now) + INTERVAL;
        let allowed = next - now <= TOLERANCE;
        if allowed {
            *tat = next;
        }
        allowed
    }
}

impl Table {
    #[inline]
    fn find(&mut self, print: u64) -> Option<&mut u64> {
        let place = match self.probe(print) {
            Some((place, true)) => place,
            other => self.insert(print, other)?,
        };
        self.places.get_mut(place).map(|(_, tat)| tat)
    }

    /// Where `print` is, or where it would go.
    #[inline]
    fn probe(&self, print: u64) -> Option<(usize, bool)> {
        let mask = self.places.len().checked_sub(1)?;
        let mut place = print as usize & mask;
        loop {
            match self.places.get(place)?.0 {
                found if found == print => return Some((place, true)),
                0 => return Some((place, false)),
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[cold]
    fn insert(&mut self, print: u64, vacant: Option<(usize, bool)>) -> Option<usize> {
        let mut vacant = vacant;
        if self.used * 2 >= self.places.len() {
            self.double();
            vacant = self.probe(print);
        }
        let (place, _) = vacant?;
        *self.places.get_mut(place)? = (print, 0);
        self.used += 1;
        Some(place)
    }

    fn double(&mut self) {
        let places = vec![(0, 0); (self.places.len() * 2).max(8)];
        for entry in std::mem::replace(&mut self.places, places) {
            if entry.0 != 0
                && let Some((place, _)) = self.probe(entry.0)
                && let Some(slot) = self.places.get_mut(place)
            {
                *slot = entry;
            }
        }
    }
}
