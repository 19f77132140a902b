//! The hash of slot ids, for tables of the slots of one bucket.
//!
//! Ids are [random](crate::SlotId) and made by the process that holds the slot, so callers cannot aim for collisions in
//! such a table: a keyed hash would protect nothing, and costs more than the rest of taking a slot.

use std::hash::{BuildHasherDefault, Hasher};

use crate::SlotId;

/// A map with slot ids as keys.
pub(crate) type SlotIdMap<V> = std::collections::HashMap<SlotId, V, BuildHasherDefault<SlotHasher>>;

/// Multiplies the halves of an id and folds the product. The constants keep small numbers apart, which tests use as ids.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotHasher(u64);

impl Hasher for SlotHasher {
    #[inline]
    fn write_u128(&mut self, id: u128) {
        let (low, high) = (id as u64, (id >> 64) as u64);
        let product = u128::from(low ^ 0x9e37_79b9_7f4a_7c15) * u128::from(high ^ self.0 ^ 0xd6e8_feb8_6659_fd93);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u128(u128::from(*byte)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    /// A table uses the lowest bits as the place, and the highest seven to tell entries of a group apart.
    #[test]
    fn random_ids_and_small_numbers_spread_over_both_ends() {
        let random = |number: u128| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        for ids in [(0..1024).map(SlotId).collect::<Vec<_>>(), (0..1024).map(|number| SlotId(random(number))).collect()]
        {
            let hashes = ids.iter().map(|id| BuildHasherDefault::<SlotHasher>::default().hash_one(id));
            let (low, high): (HashSet<u64>, HashSet<u64>) = hashes.map(|hash| (hash % 1024, hash >> 57)).unzip();
            // 1024 balls in 1024 bins leave 647 bins used on average, with a deviation of 10.
            assert!(low.len() > 560, "{} places", low.len());
            assert_eq!(high.len(), 128);
        }
    }
}
