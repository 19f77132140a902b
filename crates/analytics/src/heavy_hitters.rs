//! The result of a summary of heavy keys, which can be added to others: of the time before, and of other nodes.

use std::collections::HashMap;

/// A key with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeavyHitter {
    /// The key.
    pub key: u64,
    /// Its name.
    pub name: String,
    /// At least its weight.
    pub count: u64,
    /// By how much the count can be too high.
    pub error: u64,
}

/// Keys with their counts, the heaviest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeavyHitters {
    hitters: Vec<HeavyHitter>,
    floor: u64,
    total: u64,
}

impl HeavyHitters {
    /// These keys; any other weighs at most `floor`, and all together `total`.
    pub fn new(mut hitters: Vec<HeavyHitter>, floor: u64, total: u64) -> HeavyHitters {
        hitters.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        HeavyHitters { hitters, floor, total }
    }

    /// The keys, the heaviest first.
    pub fn hitters(&self) -> &[HeavyHitter] {
        &self.hitters
    }

    /// The most that a key can weigh that is not listed.
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// The weight of all keys together.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The sum of two summaries. A key that only one lists may weigh as much in the other as that one's floor, which is
    /// added to its count and to its error, so that both bounds hold for the sum.
    #[must_use]
    pub fn plus(&self, other: &HeavyHitters) -> HeavyHitters {
        let known: HashMap<u64, &HeavyHitter> = other.hitters.iter().map(|hitter| (hitter.key, hitter)).collect();
        let mut sum: Vec<HeavyHitter> = Vec::with_capacity(self.hitters.len() + other.hitters.len());
        for hitter in &self.hitters {
            let (count, error) =
                known.get(&hitter.key).map_or((other.floor, other.floor), |own| (own.count, own.error));
            sum.push(raised(hitter, count, error));
        }
        let own: HashMap<u64, ()> = self.hitters.iter().map(|hitter| (hitter.key, ())).collect();
        let new = other.hitters.iter().filter(|hitter| !own.contains_key(&hitter.key));
        sum.extend(new.map(|hitter| raised(hitter, self.floor, self.floor)));
        HeavyHitters::new(sum, self.floor.saturating_add(other.floor), self.total.saturating_add(other.total))
    }

    /// The heaviest `most` keys: those that are left out raise the floor.
    #[must_use]
    pub fn cut(mut self, most: usize) -> HeavyHitters {
        if let Some(first) = self.hitters.get(most) {
            self.floor = self.floor.max(first.count);
        }
        self.hitters.truncate(most);
        self
    }
}

fn raised(hitter: &HeavyHitter, count: u64, error: u64) -> HeavyHitter {
    HeavyHitter {
        count: hitter.count.saturating_add(count),
        error: hitter.error.saturating_add(error),
        ..hitter.clone()
    }
}
