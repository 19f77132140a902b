//! The kill switch of one engine: it overrides what the rules say, without a store or a database.

use std::sync::atomic::{AtomicU8, Ordering};

use tollgate_core::Enforcement;

/// Holds the position of the kill switch. Decisions read one byte, relaxed: no other memory depends on it.
#[derive(Debug, Default)]
pub(crate) struct AtomicSwitch(AtomicU8);

impl AtomicSwitch {
    #[inline]
    pub(crate) fn get(&self) -> Enforcement {
        match self.0.load(Ordering::Relaxed) {
            0 => Enforcement::Enforce,
            1 => Enforcement::Shadow,
            _ => Enforcement::Off,
        }
    }

    pub(crate) fn set(&self, enforcement: Enforcement) {
        self.0.store(enforcement as u8, Ordering::Relaxed);
    }
}
