//! A bounded memory of settled receipts.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;

/// Numbers of settled reservations: settling one again changes nothing.
#[derive(Debug, Default)]
pub struct Settlements(Mutex<(HashSet<u64>, VecDeque<u64>)>);

impl Settlements {
    /// How many are remembered, in a few megabytes. A caller that settles more within a day, and then an early one
    /// again, may be charged twice. Refunds never repeat: the store remembers those.
    const CAPACITY: usize = 1 << 18;

    /// True the first time a number is settled.
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

    /// Forgets a number whose settlement failed.
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
