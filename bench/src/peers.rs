//! Who is compared: the same question, put to five limiters from the `&str` key on.
//!
//! Every peer gets the same limit, [`PERIOD`] per unit and a burst of [`BURST`]: so generous that everything passes,
//! and so slow that a bucket once touched stays in use for the whole run, so nobody gains by dropping buckets that
//! equal unused ones.

mod engine;
mod floor;
mod governor;
mod sharded;
mod throttlecrab;
mod tollgate;

use std::time::Duration;

pub use self::engine::{Decides, Matches};
pub use self::floor::FloorTable;
pub use self::governor::{Governor, GovernorStd};
pub use self::sharded::ShardedMap;
pub use self::throttlecrab::Throttlecrab;
pub use self::tollgate::{Tollgate, sliding_counter};

use crate::keys::Sequence;

/// Time in which one unit comes back.
pub const PERIOD: Duration = Duration::from_secs(60);
/// Units at once: 95 years' worth, more than any run asks for.
pub const BURST: u32 = 50_000_000;

/// A limiter that is asked by key.
pub trait KeyedLimiter: Sync {
    /// What a caller keeps between checks, such as a buffer for the key.
    type Hand: Default;

    /// One check of cost 1: hash, clock and decision.
    fn check(&self, hand: &mut Self::Hand, key: &str) -> bool;
}

/// A peer whose loop over many checks is compiled for it, so that no check is a virtual call.
pub trait BatchLimiter: Sync {
    /// Checks every key of the sequence; answers how many passed.
    fn run(&self, keys: &Sequence) -> usize;
}

impl<P: KeyedLimiter> BatchLimiter for P {
    fn run(&self, keys: &Sequence) -> usize {
        let mut hand = P::Hand::default();
        keys.iter().filter(|key| self.check(&mut hand, key)).count()
    }
}
