//! The heaviest of any number of keys: Space-Saving (Metwally, Agrawal, El Abbadi, 2005).
//!
//! A fixed number of counters. A key without one takes over the smallest counter, with its count, which then is its error.
//! With `k` counters and a total weight of `n`, for every key:
//!
//! - `count - error ≤ true weight ≤ count`, and `error ≤ n / k`;
//! - a key without a counter has at most [`floor`](SpaceSaving::floor), which is at most `n / k`: every heavier one is
//!   listed.
//!
//! Counters form a heap by their counts, so a key is added in logarithmic time, and memory is taken once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::heavy_hitters::{HeavyHitter, HeavyHitters};

/// Longest name that is kept of a key.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// The heaviest keys, each with a state of its own.
#[derive(Debug)]
pub struct SpaceSaving<T> {
    counters: Vec<KeyCounter<T>>,
    /// Indexes of counters: a heap, the smallest count first.
    heap: Vec<u32>,
    index: HashMap<u64, u32, BuildHasherDefault<KeyedHasher>>,
    capacity: usize,
    total: u64,
}

/// The counter of one key.
#[derive(Debug)]
pub struct KeyCounter<T> {
    /// The key: a digest under a secret, so that callers cannot aim for collisions.
    pub key: u64,
    /// Its name.
    pub name: String,
    /// At least its weight.
    pub count: u64,
    /// By how much the count can be too high.
    pub error: u64,
    /// What else is kept of the key since it has this counter.
    pub state: T,
    /// Its place in the heap.
    place: u32,
}

/// Keys are evenly distributed already.
#[derive(Debug, Default)]
pub(crate) struct KeyedHasher(u64);

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T: Default> SpaceSaving<T> {
    /// A summary of at most so many keys; at least one.
    pub fn new(capacity: usize) -> SpaceSaving<T> {
        let capacity = capacity.clamp(1, u32::MAX as usize);
        SpaceSaving { counters: Vec::new(), heap: Vec::new(), index: HashMap::default(), capacity, total: 0 }
    }

    /// Adds weight to a key, and returns its counter.
    pub fn add(&mut self, key: u64, name: &str, weight: u64) -> Option<&mut KeyCounter<T>> {
        self.total = self.total.saturating_add(weight);
        let slot = match self.index.get(&key) {
            Some(slot) => *slot,
            None if self.counters.len() < self.capacity => self.new_counter(key, name),
            None => self.take_over(key, name)?,
        };
        let counter = self.counters.get_mut(slot as usize)?;
        counter.count = counter.count.saturating_add(weight);
        let place = counter.place as usize;
        self.sift_down(place);
        self.counters.get_mut(slot as usize)
    }

    /// The counter of a key, if it has one.
    pub fn get(&self, key: u64) -> Option<&KeyCounter<T>> {
        self.counters.get(*self.index.get(&key)? as usize)
    }

    /// The counter of a key, to change its state.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut KeyCounter<T>> {
        self.counters.get_mut(*self.index.get(&key)? as usize)
    }

    /// All counters, in no order.
    pub fn counters(&self) -> impl Iterator<Item = &KeyCounter<T>> {
        self.counters.iter()
    }

    /// The most that a key without a counter can weigh.
    pub fn floor(&self) -> u64 {
        if self.counters.len() < self.capacity {
            return 0;
        }
        self.heap.first().and_then(|slot| self.counters.get(*slot as usize)).map_or(0, |counter| counter.count)
    }

    /// The weight of all keys together.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// How many keys have counters.
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// Forgets everything; the memory of the tables stays.
    pub fn clear(&mut self) {
        self.counters.clear();
        self.heap.clear();
        self.index.clear();
        self.total = 0;
    }

    /// The keys with their counts, the heaviest first.
    pub fn heavy_hitters(&self) -> HeavyHitters {
        let hitters = self.counters.iter().map(|counter| HeavyHitter {
            key: counter.key,
            name: counter.name.clone(),
            count: counter.count,
            error: counter.error,
        });
        HeavyHitters::new(hitters.collect(), self.floor(), self.total)
    }

    fn new_counter(&mut self, key: u64, name: &str) -> u32 {
        let slot = self.counters.len() as u32; // below the capacity, which fits
        let place = self.heap.len();
        let name = shortened(name).to_owned();
        self.counters.push(KeyCounter { key, name, count: 0, error: 0, state: T::default(), place: place as u32 });
        self.heap.push(slot);
        self.index.insert(key, slot);
        self.sift_up(place);
        slot
    }

    /// Gives the smallest counter to another key.
    fn take_over(&mut self, key: u64, name: &str) -> Option<u32> {
        let slot = *self.heap.first()?;
        let counter = self.counters.get_mut(slot as usize)?;
        self.index.remove(&counter.key);
        counter.key = key;
        counter.name.clear();
        counter.name.push_str(shortened(name));
        counter.error = counter.count;
        counter.state = T::default();
        self.index.insert(key, slot);
        Some(slot)
    }

    fn count_at(&self, place: usize) -> u64 {
        let slot = self.heap.get(place).copied().unwrap_or(u32::MAX);
        self.counters.get(slot as usize).map_or(u64::MAX, |counter| counter.count)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            let slot = self.heap.get(place).copied().unwrap_or(u32::MAX);
            if let Some(counter) = self.counters.get_mut(slot as usize) {
                counter.place = place as u32;
            }
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.count_at(parent) <= self.count_at(place) {
                return;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let child = if self.count_at(right) < self.count_at(left) { right } else { left };
            if child >= self.heap.len() || self.count_at(place) <= self.count_at(child) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

/// The beginning of a name.
pub(crate) fn shortened(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or(name)
}
