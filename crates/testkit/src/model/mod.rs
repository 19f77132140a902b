//! The algorithms of SPEC section 5 again: in wide integers, with state as the text describes it.
//!
//! Where `tollgate-core` keeps the end of a window, a model keeps the window's number; where core multiplies to avoid a
//! division, a model divides. The searches of [`crate::oracle`] find what both get wrong alike.
//!
//! Expired state is not written: a refusal that finds nothing to bound leaves the older state in place, and a clock that
//! steps back may meet it again.
//!
//! Time here may run below zero and past 2^64: models never saturate, so callers compare only where core does not.

mod fixed_window;
mod gcra;
mod queue;
mod quota;
mod sliding_counter;
mod sliding_log;
mod slots;
mod token_bucket;

use tollgate_core::{Ask, SlotId};

use crate::{LimitConfig, SpecOutcome};

pub use token_bucket::TokenBucket;

/// Nanoseconds since the epoch, or a difference of such.
pub type Nanos = i128;

/// One bucket of one algorithm. The configuration is an argument of each call, because it may change under the state.
pub trait Model {
    /// One request to this bucket alone: its outcome, and how many units were recorded.
    fn ask(&mut self, config: &LimitConfig, now: Nanos, wish: ModelAsk) -> (SpecOutcome, u64);

    /// Refunds units, of the charge with `stamp` if one is given. Returns how many whole units came back.
    fn refund(&mut self, config: &LimitConfig, now: Nanos, units: u64, stamp: Option<Nanos>) -> u64;

    /// Releases a slot; false if `id` holds none.
    fn release(&mut self, _config: &LimitConfig, _now: Nanos, _id: SlotId) -> bool {
        false
    }
}

/// A fresh model of an algorithm.
pub fn of(config: &LimitConfig) -> Box<dyn Model> {
    match config {
        LimitConfig::Gcra { .. } => Box::new(gcra::ModelGcra::default()),
        LimitConfig::Queue { .. } => Box::new(queue::ModelQueue::default()),
        LimitConfig::FixedWindow { .. } => Box::new(fixed_window::ModelWindow::default()),
        LimitConfig::SlidingLog { .. } => Box::new(sliding_log::ModelLog::default()),
        LimitConfig::SlidingCounter { .. } => Box::new(sliding_counter::ModelCounter::default()),
        LimitConfig::Concurrency { .. } => Box::new(slots::ModelSlots::default()),
        LimitConfig::Quota { .. } => Box::new(quota::ModelQuota::default()),
    }
}

/// A request, with the policy of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelAsk {
    /// What is asked for.
    pub ask: Ask,
    /// Charge it even when refused.
    pub count_denied: bool,
}

/// What a request writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Charged(u64),
    Forced(u64),
    Refused,
    /// Nothing is written, not even what the clock made necessary.
    Read,
}

impl ModelAsk {
    /// `room`: the most that would pass now, for `Ask::UpTo`.
    fn fate(&self, allowed: bool, room: u64) -> Fate {
        match self.ask {
            Ask::Peek(_) | Ask::Consume(0) | Ask::UpTo(0) | Ask::Force(0) => Fate::Read,
            Ask::Force(n) => Fate::Forced(n),
            Ask::UpTo(n) if allowed => Fate::Charged(n.min(room)),
            _ if allowed => Fate::Charged(self.ask.cost()),
            _ if self.count_denied => Fate::Forced(self.ask.cost()),
            _ => Fate::Refused,
        }
    }

    /// What must fit for the request to pass: one unit is enough for a lease.
    fn least(&self) -> u64 {
        match self.ask {
            Ask::UpTo(n) => n.min(1),
            other => other.cost(),
        }
    }
}

/// Narrows a number that fits 64 bits.
fn narrow(n: Nanos) -> u64 {
    u64::try_from(n).unwrap_or_else(|_| panic!("{n} does not fit 64 bits"))
}
