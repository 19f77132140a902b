//! The source of time: the component that keeps the state supplies it.
//!
//! The real clock is in the store crate. This crate ships the manual clock, so that every program that embeds Tollgate
//! can test its limits without sleeping.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Span, Time};

/// A clock. Implementors promise steadiness, not accuracy: a clock that steps back costs a bucket at most one period,
/// and never makes a decision panic.
pub trait Clock: Send + Sync {
    /// The time for decisions: it should never step back.
    fn now(&self) -> Time;

    /// The wall time at which this clock showed `now`: for dates, `reset_at` and expiry. The result changes when the
    /// wall clock is set.
    fn wall_at(&self, now: Time) -> Time {
        now
    }

    /// The current wall time.
    fn wall(&self) -> Time {
        self.wall_at(self.now())
    }
}

/// A clock that only moves when it is set. Clones share the same time.
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

    /// Moves the time forward.
    pub fn advance(&self, span: Span) {
        self.set(self.now().after(span));
    }

    /// Sets the time, also back: clocks of real machines do.
    pub fn set(&self, time: Time) {
        self.0.now.store(time.nanos(), Ordering::SeqCst);
    }

    /// Sets only the wall clock, as an administrator or NTP does: the time for decisions does not change.
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
