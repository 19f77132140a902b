//! Interned names: numbers are consecutive and never reused.

use std::collections::HashMap;
use std::sync::Arc;

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
