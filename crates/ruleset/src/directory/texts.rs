//! Interned texts: deduplicated values of attributes in contiguous memory, and tables of names.

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::Arc;

use crate::fast_hash::{FastHasher, FastMap};

/// Concatenated texts, by number.
#[derive(Debug, Default)]
pub(super) struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    pub(super) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|end| self.text.get(start..*end)).unwrap_or_default()
    }

    fn push(&mut self, text: &str) -> u32 {
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.ends.len() as u32 - 1
    }

    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// One attribute of a client: the number of its name, and that of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttributePair {
    pub(super) name: u16,
    pub(super) value: u32,
}

/// Attribute sets that clients share, by number: a tier, an organisation, and others. The first one is empty.
#[derive(Debug)]
pub(super) struct Profiles {
    pairs: Vec<AttributePair>,
    ends: Vec<u32>,
}

impl Profiles {
    pub(super) const EMPTY: u32 = 0;

    pub(super) fn get(&self, number: u32) -> &[AttributePair] {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(number).copied().unwrap_or(0);
        self.pairs.get(start as usize..end as usize).unwrap_or_default()
    }

    fn push(&mut self, pairs: &[AttributePair]) -> u32 {
        self.pairs.extend_from_slice(pairs);
        self.ends.push(self.pairs.len() as u32);
        self.ends.len() as u32 - 1
    }

    pub(super) fn pairs(&self) -> &[AttributePair] {
        &self.pairs
    }

    pub(super) fn shrink(&mut self) {
        self.pairs.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    pub(super) fn bytes(&self) -> usize {
        self.pairs.capacity() * size_of::<AttributePair>() + self.ends.capacity() * size_of::<u32>()
    }
}

impl Default for Profiles {
    fn default() -> Profiles {
        Profiles { pairs: Vec::new(), ends: vec![0] }
    }
}

/// Interns texts and profiles by hash. If two hashes collide, later copies of one of them are stored again, which costs
/// a few bytes and nothing else.
#[derive(Debug, Default)]
pub(super) struct ValuePool {
    pub(super) texts: Texts,
    pub(super) profiles: Profiles,
    texts_seen: FastMap<u64, u32>,
    profiles_seen: FastMap<u64, u32>,
}

impl ValuePool {
    pub(super) fn text(&mut self, text: &str) -> u32 {
        let mut hasher = FastHasher::default();
        hasher.write(text.as_bytes());
        let hash = hasher.finish();
        match self.texts_seen.get(&hash).copied().filter(|number| self.texts.get(*number) == text) {
            Some(number) => number,
            None => {
                let number = self.texts.push(text);
                self.texts_seen.insert(hash, number);
                number
            }
        }
    }

    pub(super) fn profile(&mut self, pairs: &[AttributePair]) -> u32 {
        if pairs.is_empty() {
            return Profiles::EMPTY;
        }
        let mut hasher = FastHasher::default();
        pairs.iter().for_each(|pair| hasher.write_u64(u64::from(pair.name) << 32 | u64::from(pair.value)));
        let hash = hasher.finish();
        match self.profiles_seen.get(&hash).copied().filter(|number| self.profiles.get(*number) == pairs) {
            Some(number) => number,
            None => {
                let number = self.profiles.push(pairs);
                self.profiles_seen.insert(hash, number);
                number
            }
        }
    }
}

/// Names by number, and numbers by name.
#[derive(Clone, Debug, Default)]
pub(super) struct NameTable {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl NameTable {
    /// The number of `name`, which is added if it is new.
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let (name, number) = (Arc::<str>::from(name), self.names.len() as u32);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(super) fn get(&self, number: u32) -> Option<&str> {
        self.names.get(number as usize).map(|name| &**name)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// Approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.names.iter().map(|name| name.len() + 64).sum()
    }
}
