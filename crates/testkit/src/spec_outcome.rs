//! An outcome in the terms of SPEC 0.2, for vectors and models.

use tollgate_core::{Outcome, Wait};

/// What the caller is told; spans in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecOutcome {
    /// The cost passes.
    pub allowed: bool,
    /// Capacity in cost units.
    pub limit: u64,
    /// The largest cost that would pass now.
    pub remaining: u64,
    /// 0 if allowed, `None` for never.
    pub retry_after: Option<u64>,
    /// Until the bucket equals a fresh one.
    pub reset_after: u64,
    /// Until `remaining` grows.
    pub next_unit: Option<u64>,
    /// How long an admitted caller waits; `None` for a refused one.
    pub delay: Option<u64>,
    /// Slots or units in use.
    pub in_use: u64,
}

impl From<&Outcome> for SpecOutcome {
    fn from(outcome: &Outcome) -> SpecOutcome {
        SpecOutcome {
            allowed: outcome.allowed,
            limit: outcome.limit,
            remaining: outcome.remaining,
            retry_after: match outcome.wait {
                Wait::None => Some(0),
                Wait::For(span) => Some(span.nanos()),
                Wait::Never => None,
            },
            reset_after: outcome.reset_after.nanos(),
            next_unit: outcome.next_unit_after.map(|span| span.nanos()),
            delay: outcome.allowed.then_some(outcome.delay.nanos()),
            in_use: outcome.used,
        }
    }
}
