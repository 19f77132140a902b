//! A bounded memory of settled receipts.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;

/// Reservations that were settled, so that doing it twice changes nothing.
#[derive(Debug, Default)]
pub struct Settlements(Mutex<(HashSet<u64>, VecDeque<u64>)>);

impl Settlements {
    /// How many are remembered, in a few megabytes. Whoever settles more of them within a day, and then one of the first
    /// again, may be charged twice for it; refunded twice is nobody, that is the store's to remember.
    const CAPACITY: usize = 1 << 18;

    /// True the first time.
    pub(crate) fn first(&self, number: u64) -> bool {
        let (known, order) = &mut *self.0.lock();
        if !known.insert(number) {
            return false;
        }
        order.push_back(number);
        if order.len() > Settlements::CAPACITY
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        true
    }

    /// It did not happen after all.
    pub(crate) fn forget(&self, number: u64) {
        self.0.lock().0.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settlements_are_remembered_and_bounded() {
        let settlements = Settlements::default();
        assert!((0..Settlements::CAPACITY as u64).all(|number| settlements.first(number)));
        assert!(!settlements.first(0));
        assert!(settlements.first(u64::MAX), "a new one");
        assert!(settlements.first(0), "the oldest was forgotten for it");
        assert_eq!(settlements.0.lock().0.len(), Settlements::CAPACITY);
    }
}
