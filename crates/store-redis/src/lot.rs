//! Numbers nobody can foresee, and numbers that are merely spread: from the standard library, without a crate.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Sixty-four unforeseeable bits: the standard library's hash seeds come from the operating system.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0u64)
}

/// Evenly spread, not unforeseeable, and nearly free: a generator per thread (SplitMix64).
pub(crate) fn spread() -> u64 {
    thread_local!(static NEXT: Cell<u64> = Cell::new(random()));
    let x = NEXT.with(|next| next.replace(next.get().wrapping_add(0x9e37_79b9_7f4a_7c15)));
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
