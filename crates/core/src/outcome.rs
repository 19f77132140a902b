//! The result of one ask to one bucket.

use crate::{Source, Span, Time};

/// How long until the same cost would pass, if nothing else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// It passes now.
    None,
    /// It passes after exactly this span, not a nanosecond earlier.
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

/// The result for one bucket, after the decision over all buckets took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// This bucket admits the request.
    pub allowed: bool,
    /// What answered.
    pub source: Source,
    /// Capacity in cost units.
    pub limit: u64,
    /// The largest cost that would pass now. For a queue: requests that may still join. For a quota: without overdraft.
    pub remaining: u64,
    /// Units or slots in use; above `limit` after the limit was lowered or usage was forced.
    pub used: u64,
    /// Units recorded by this ask.
    pub granted: u64,
    /// When the same cost would pass.
    pub wait: Wait,
    /// Until the bucket is equivalent to an unused one (fixed window and quota: until the window or period ends).
    pub reset_after: Span,
    /// Until `remaining` increases; `None` if it cannot.
    pub next_unit_after: Option<Span>,
    /// How long an admitted caller of a queue must wait before it proceeds.
    pub delay: Span,
    /// Identifies the charge within its bucket, for a refund.
    pub stamp: Time,
}

impl Outcome {
    /// An outcome with default hints, for the algorithms to complete.
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
