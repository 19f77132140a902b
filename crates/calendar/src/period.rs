//! A stretch of time that a quota is counted over.

use tollgate_core::Time;

/// From `start`, inclusive, to `end`, exclusive. Both are whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Period {
    start: Time,
    /// [`NO_END`] if there is none.
    end: Time,
}

/// The last instant of all belongs to the last period.
const NO_END: Time = Time::from_nanos(u64::MAX);

impl Period {
    /// The period of a quota that never starts anew.
    pub const FOREVER: Period = Period { start: Time::ZERO, end: NO_END };

    /// Seconds since the epoch. What lies before it, or after the end of [`Time`], is cut off.
    pub(crate) fn from_secs(start: i64, end: i64) -> Period {
        let time = |seconds: i64| Time::from_secs(u64::try_from(seconds).unwrap_or(0));
        Period { start: time(start), end: time(end) }
    }

    /// The first instant. The first period of all starts at the epoch.
    pub const fn start(self) -> Time {
        self.start
    }

    /// The first instant after the period: the start of the next one. `None` if there is none before the end of [`Time`].
    pub fn end(self) -> Option<Time> {
        (self.end != NO_END).then_some(self.end)
    }

    /// Whether `now` is in the period.
    #[inline]
    pub fn contains(self, now: Time) -> bool {
        self.start <= now && (now < self.end || self.end == NO_END)
    }
}
