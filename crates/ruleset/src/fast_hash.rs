//! A fast hash for tables with keys from operators.
//!
//! Requests choose what is looked up, not what is in the table, so they cannot cause collisions in it, and a keyed hash
//! is not needed. Not for tables that requests fill.

use std::hash::{BuildHasherDefault, Hasher};

use tollgate_core::last_word;

/// A map with keys from operators.
pub(crate) type FastMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// Multiplies and folds one word at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastHasher(u64);

impl FastHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            self.mix(last_word(bytes) | (rest.len() as u64) << 56);
        }
    }

    /// Ignores the byte that ends a string: it separates several strings, and keys here are one string each.
    #[inline]
    fn write_u8(&mut self, _: u8) {}

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    #[inline]
    fn write_u128(&mut self, words: u128) {
        self.mix(words as u64);
        self.mix((words >> 64) as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
