//! A queue of events in the order of their time, and the random numbers of a run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate_core::Time;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happening {
    /// A caller sends a request.
    Arrival { critical: bool },
    /// A worker of the upstream finishes.
    Finished { request: u64 },
    /// A caller does not wait any longer.
    GivenUp { request: u64 },
    /// Those who wait look again.
    Tick,
}

/// Events that will happen.
#[derive(Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    count: u64,
}

impl Agenda {
    pub fn add(&mut self, at: Time, event: Happening) {
        self.count += 1;
        self.heap.push(Reverse((at, self.count, event)));
    }

    pub fn next(&mut self) -> Option<(Time, Happening)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

/// SplitMix64.
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = self.0;
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        let uniform = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        -mean * (1.0 - uniform).ln()
    }
}
