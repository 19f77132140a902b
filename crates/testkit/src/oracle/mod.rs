//! Checks the promises of an algorithm. A [`Scenario`] of requests, clock steps and changed limits runs on a bucket; every
//! outcome is compared with the [`crate::model`], every hint is probed on a clone as SPEC 0.2 defines it, and everything
//! that was admitted is kept and counted (RELIABILITY P1 to P4, P10, P20).

mod calendar;
mod decode;
mod freshness;
mod hints;
mod history;
mod play;
mod together;

use std::fmt;

use tollgate_core::SlotId;

use crate::LimitConfig;
use crate::model::ModelAsk;

pub use calendar::{CalendarRun, play_calendar};
pub use history::History;
pub use play::play;
pub use together::play_together;

/// What happens to one bucket, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Nanoseconds since the epoch at which it begins.
    pub start: u64,
    /// The limits it may run under; the first is in force at the start.
    pub configs: Vec<LimitConfig>,
    /// Each operation with the clock step before it.
    pub steps: Vec<(TimeStep, Operation)>,
}

impl fmt::Display for Scenario {
    /// One step per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "start {}", self.start)?;
        self.configs.iter().enumerate().try_for_each(|(place, config)| writeln!(f, "  config {place}: {config:?}"))?;
        self.steps.iter().enumerate().try_for_each(|(place, (pass, act))| writeln!(f, "  {place}: {pass:?} {act:?}"))
    }
}

/// A step of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeStep {
    /// Forward, by this many nanoseconds.
    On(u64),
    /// Back, by this many.
    Back(u64),
    /// Forward, by exactly the wait of the last outcome.
    Retry,
    /// One nanosecond less than that.
    AlmostRetry,
    /// Forward, to the next unit that the last outcome announced.
    NextUnit,
    /// Forward, to the reset that the last outcome announced.
    Reset,
}

/// An operation on the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A request.
    Ask(ModelAsk),
    /// Returns one of the receipts that are left: all its units, or half of them.
    Refund {
        /// Its number, modulo how many there are.
        receipt: usize,
        /// Half of the units, rounded up, instead of all.
        half: bool,
    },
    /// Releases a slot, held or not.
    Release(SlotId),
    /// Puts another limit in force; the state stays.
    Configure(usize),
}
