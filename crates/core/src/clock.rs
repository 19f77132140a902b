//! Where time comes from: whoever keeps the state tells it.
//!
//! The real clock lives with the in-memory store; what ships here is the one for tests, so that every program which
//! embeds Tollgate can test its limits without sleeping.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Span, Time};

/// Tells the time. Implementors promise steadiness, not truth: a clock that runs backwards costs a bucket at most one
/// period, and no decision ever panics for it.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Time;
}

/// A clock that stands still until it is told to move. Clones share the same hands.
///
/// ```
/// use tollgate_core::{Clock, ManualClock, Span, Time};
/// let clock = ManualClock::at(Time::from_secs(100));
/// let same = clock.clone();
/// clock.advance(Span::from_secs(5));
/// assert_eq!(same.now(), Time::from_secs(105));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows `time`.
    pub fn at(time: Time) -> ManualClock {
        ManualClock(Arc::new(AtomicU64::new(time.nanos())))
    }

    /// Moves the hands forward.
    pub fn advance(&self, span: Span) {
        self.set(self.now().after(span));
    }

    /// Puts the hands anywhere, also back: clocks of real machines do.
    pub fn set(&self, time: Time) {
        self.0.store(time.nanos(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::SeqCst))
    }
}
