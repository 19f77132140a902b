//! The answer of one bucket to one ask.

use crate::{Source, Span, Time};

/// How long until the same cost would pass, if nothing else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// It passes now.
    None,
    /// It passes after exactly this span and not one nanosecond earlier.
    For(Span),
    /// It can never pass: the cost exceeds the capacity, or the limit is zero.
    Never,
}

impl Wait {
    /// The span to wait, if waiting helps.
    pub const fn span(self) -> Option<Span> {
        match self {
            Wait::None => Some(Span::ZERO),
            Wait::For(span) => Some(span),
            Wait::Never => None,
        }
    }
}

/// What one bucket answers, after the decision over all buckets took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// This bucket would let the request pass.
    pub allowed: bool,
    /// Who answered.
    pub source: Source,
    /// Capacity in cost units.
    pub limit: u64,
    /// The largest cost that would pass at this instant. A queue counts the requests that may still join.
    pub remaining: u64,
    /// Units (or slots) in use; above `limit` after a limit was lowered or usage was forced.
    pub used: u64,
    /// Units recorded by this ask.
    pub granted: u64,
    /// When the same cost would pass.
    pub wait: Wait,
    /// Until the bucket equals an unused one (fixed window: until the window ends).
    pub reset_after: Span,
    /// Until `remaining` grows; `None` when it cannot.
    pub next_unit_after: Option<Span>,
    /// How long an admitted caller of a queue waits before it proceeds.
    pub delay: Span,
    /// What the charge left behind, by which a refund finds it again.
    pub stamp: Time,
}

impl Outcome {
    /// An outcome without hints, for the algorithms to fill.
    pub(crate) const fn new(allowed: bool, limit: u64) -> Outcome {
        Outcome {
            allowed,
            source: Source::Bucket,
            limit,
            remaining: 0,
            used: 0,
            granted: 0,
            wait: Wait::None,
            reset_after: Span::ZERO,
            next_unit_after: None,
            delay: Span::ZERO,
            stamp: Time::ZERO,
        }
    }
}
