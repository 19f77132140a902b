//! Receipts that were given back, remembered for as long as they could have an effect.

use std::collections::HashMap;

use tollgate_core::Time;

/// Numbers of spent receipts, each kept until its charge owes nothing. After that time has returned the units, and the
/// receipt has no effect anyway.
#[derive(Debug, Default)]
pub(super) struct SpentReceipts(HashMap<u64, Time>);

impl SpentReceipts {
    /// Marks `number` as spent; false if it was, or if `most` bytes are used: receipts are then rejected, which keeps
    /// units charged but never returns any twice.
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

    /// Bytes used.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * (size_of::<(u64, Time)>() + 1)
    }
}
