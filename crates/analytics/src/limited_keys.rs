//! The clients that are limited at a moment: counted once, however many rules and nodes refuse them.

use std::collections::{BTreeMap, HashSet};

/// Digests of clients, by namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitedKeys {
    /// By namespace; none of the sets is empty.
    pub keys: BTreeMap<String, HashSet<u64>>,
    /// False if there may be more.
    pub is_exact: bool,
}

impl LimitedKeys {
    /// Adds those that another node knows.
    pub fn add(&mut self, other: LimitedKeys) {
        self.is_exact &= other.is_exact;
        for (namespace, keys) in other.keys {
            self.keys.entry(namespace).or_default().extend(keys);
        }
    }

    /// Leaves at most so many.
    pub fn cut(&mut self, most: usize) {
        let mut room = most;
        for keys in self.keys.values_mut() {
            if keys.len() > room {
                self.is_exact = false;
                let kept: HashSet<u64> = keys.iter().copied().take(room).collect();
                *keys = kept;
            }
            room -= keys.len();
        }
        self.keys.retain(|_, keys| !keys.is_empty());
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.keys.values().map(HashSet::len).sum()
    }
}
