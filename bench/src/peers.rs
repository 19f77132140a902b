//! The limiters that are compared, each from the `&str` key on.
//!
//! Every limiter gets the same limit, [`PERIOD`] per unit and a burst of [`BURST`]: so generous that everything passes,
//! and so slow that a bucket stays in use for the whole run, so that none gains by dropping buckets that equal fresh
//! ones.

mod engine;
mod floor;
mod governor;
mod sharded;
mod throttlecrab;
mod tollgate;

pub use self::engine::{Decides, Matches};
pub use self::floor::FloorTable;
pub use self::governor::{Governor, GovernorStd};
pub use self::sharded::ShardedMap;
pub use self::throttlecrab::Throttlecrab;
pub use self::tollgate::{Tollgate, sliding_counter};
pub use crate::limit::{BURST, PERIOD};

use crate::keys::Sequence;

/// A limiter with a bucket per key.
pub trait KeyedLimiter: Sync {
    /// What a caller keeps between checks, such as a buffer for the key.
    type Hand: Default;

    /// One check of cost 1: hash, clock and decision.
    fn check(&self, hand: &mut Self::Hand, key: &str) -> bool;
}

/// A limiter with a loop over many checks compiled for it, so that no check is a virtual call.
pub trait BatchLimiter: Sync {
    /// Checks every key of the sequence; returns how many passed.
    fn run(&self, keys: &Sequence) -> usize;
}

impl<P: KeyedLimiter> BatchLimiter for P {
    fn run(&self, keys: &Sequence) -> usize {
        let mut hand = P::Hand::default();
        keys.iter().filter(|key| self.check(&mut hand, key)).count()
    }
}
