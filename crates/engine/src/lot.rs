//! Numbers nobody can foresee, and numbers that are merely spread: from the standard library, without a crate.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use tollgate_core::{Secret, SlotId};

/// Sixty-four unforeseeable bits: the standard library's hash seeds come from the operating system.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0u64)
}

/// A secret of this process alone.
pub(crate) fn random_secret() -> Secret {
    Secret::new(random_128().to_le_bytes())
}

/// A slot id nobody can guess.
pub fn random_slot() -> SlotId {
    SlotId(random_128())
}

fn random_128() -> u128 {
    u128::from(random()) << 64 | u128::from(random())
}

/// Evenly spread, not unforeseeable, and nearly free: a generator per thread (SplitMix64). A plain counter would give
/// keys that take turns the same sub-bucket every time.
#[inline]
pub fn spread() -> u64 {
    thread_local!(static NEXT: Cell<u64> = Cell::new(random()));
    let x = NEXT.with(|next| next.replace(next.get().wrapping_add(0x9e37_79b9_7f4a_7c15)));
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
