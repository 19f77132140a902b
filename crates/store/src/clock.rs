//! The real clock of this process: anchored once to the wall, then monotonic.
//!
//! Windows align to the wall and answers speak of it, but a step of the wall clock must not decide anything. So the
//! wall is read once, at start; everything after is the monotonic clock's elapsed time on top.

use std::time::{Instant, SystemTime};

use tollgate_core::{Clock, Span, Time};

/// Wall time at its making plus monotonic time since. Never steps.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    anchor: Instant,
    wall: Time,
}

impl MonotonicClock {
    /// A clock anchored to the present wall time.
    #[expect(clippy::disallowed_methods, reason = "the home of the real clock")]
    pub fn new() -> MonotonicClock {
        let wall = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        MonotonicClock { anchor: Instant::now(), wall: Time::ZERO.after(Span::from(wall)) }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        MonotonicClock::new()
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Time {
        self.wall.after(Span::from(self.anchor.elapsed()))
    }
}
