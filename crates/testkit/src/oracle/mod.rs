//! Do the promises hold? A [`Scenario`] of requests, clock steps and changed limits is played on a bucket; every answer is
//! compared with the [`crate::model`], every hint is probed on a clone as SPEC 0.2 defines it, and everything that was
//! admitted is kept and counted (RELIABILITY P1 to P4, P10, P20).

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

pub use history::History;
pub use play::play;
pub use together::play_together;

/// What happens to one bucket, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Nanoseconds since the epoch at which it begins.
    pub start: u64,
    /// The limits it may run under. The first one is in force until told otherwise.
    pub configs: Vec<LimitConfig>,
    /// Each act with the time that passes before it.
    pub steps: Vec<(TimeStep, Operation)>,
}

impl fmt::Display for Scenario {
    /// A step a line: what a person reads when it fails.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "start {}", self.start)?;
        self.configs.iter().enumerate().try_for_each(|(place, config)| writeln!(f, "  config {place}: {config:?}"))?;
        self.steps.iter().enumerate().try_for_each(|(place, (pass, act))| writeln!(f, "  {place}: {pass:?} {act:?}"))
    }
}

/// How the clock moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeStep {
    /// On, by so many nanoseconds.
    On(u64),
    /// Back, by so many.
    Back(u64),
    /// On, by exactly the wait that the last answer gave.
    Retry,
    /// One nanosecond less than that.
    AlmostRetry,
    /// On, until the last answer said that one more unit comes.
    NextUnit,
    /// On, until the last answer said that the bucket is as unused.
    Reset,
}

/// What somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Asks.
    Ask(ModelAsk),
    /// Gives a receipt back, the so-manieth of those not yet given back: all its units, or half of them.
    Refund {
        /// Modulo how many there are.
        receipt: usize,
        /// Half of the units, rounded up, instead of all.
        half: bool,
    },
    /// Releases a slot, held or not.
    Release(SlotId),
    /// Puts another limit of the scenario in force; the state stays.
    Configure(usize),
}
