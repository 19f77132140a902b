//! Random numbers, slot ids and secrets.

use tollgate_core::{Secret, SlotId};

pub use tollgate_store::random::{fast, unpredictable};

/// A slot id that callers cannot guess.
pub fn random_slot() -> SlotId {
    SlotId(unpredictable_128())
}

/// A secret of this process alone.
pub(crate) fn random_secret() -> Secret {
    Secret::new(unpredictable_128().to_le_bytes())
}

fn unpredictable_128() -> u128 {
    u128::from(unpredictable()) << 64 | u128::from(unpredictable())
}
