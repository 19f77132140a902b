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
    /// The present moment, for decisions: it should never go back.
    fn now(&self) -> Time;

    /// The wall time at which this clock showed `now`: what dates, `reset_at` and expiry go by. A wall clock may be set;
    /// a clock that follows it answers differently afterwards.
    fn wall_at(&self, now: Time) -> Time {
        now
    }

    /// The present wall time.
    fn wall(&self) -> Time {
        self.wall_at(self.now())
    }
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
pub struct ManualClock(Arc<ManualTime>);

#[derive(Debug, Default)]
struct ManualTime {
    now: AtomicU64,
    /// How far the wall is ahead, in nanoseconds; wraps for a wall that is behind.
    wall_ahead: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `time`.
    pub fn at(time: Time) -> ManualClock {
        let clock = ManualClock::default();
        clock.set(time);
        clock
    }

    /// Moves the hands forward.
    pub fn advance(&self, span: Span) {
        self.set(self.now().after(span));
    }

    /// Puts the hands anywhere, also back: clocks of real machines do.
    pub fn set(&self, time: Time) {
        self.0.now.store(time.nanos(), Ordering::SeqCst);
    }

    /// Sets the wall clock alone, as an administrator or NTP does: decisions run on as before.
    pub fn set_wall(&self, wall: Time) {
        self.0.wall_ahead.store(wall.nanos().wrapping_sub(self.now().nanos()), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.now.load(Ordering::SeqCst))
    }

    fn wall_at(&self, now: Time) -> Time {
        Time::from_nanos(now.nanos().wrapping_add(self.0.wall_ahead.load(Ordering::SeqCst)))
    }
}
