//! Random numbers from the standard library, without another crate.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Sixty-four bits that callers cannot predict: the standard library seeds its hashers from the operating system.
pub fn unpredictable() -> u64 {
    RandomState::new().hash_one(0u64)
}

/// Evenly distributed and nearly free, but predictable: a generator per thread (SplitMix64). A plain counter would give
/// keys that take turns the same shard every time.
#[inline]
pub fn fast() -> u64 {
    thread_local!(static NEXT: Cell<u64> = Cell::new(unpredictable()));
    let x = NEXT.with(|next| next.replace(next.get().wrapping_add(0x9e37_79b9_7f4a_7c15)));
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
