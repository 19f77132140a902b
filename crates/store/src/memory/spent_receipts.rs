//! Receipts that were given back, remembered for as long as they could give anything.

use std::collections::HashMap;

use tollgate_core::Time;

/// Numbers of spent receipts, each until its charge owes nothing any more. After that time itself has given the units
/// back, and the receipt is worthless without being remembered.
#[derive(Debug, Default)]
pub(super) struct SpentReceipts(HashMap<u64, Time>);

impl SpentReceipts {
    /// Spends `number`, unless it is spent already or `most` bytes of them are remembered: then receipts are refused,
    /// which keeps units charged but never hands any out twice.
    pub(super) fn spend(&mut self, number: u64, until: Time, now: Time, most: usize) -> bool {
        if self.bytes() > most && self.0.len() == self.0.capacity() {
            self.0.retain(|_, until| *until > now);
            if self.0.len() == self.0.capacity() {
                return false;
            }
        }
        if self.0.contains_key(&number) {
            return false;
        }
        if until > now {
            self.0.insert(number, until);
        }
        true
    }

    /// Bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * (size_of::<(u64, Time)>() + 1)
    }
}
