//! A stretch of time that a quota is counted over.

use tollgate_core::{Span, Time};

/// Bits of [`Period::to_bits`] that hold the length. The longest year has 366 days and a change of the clocks: 25 bits
/// are 388 days.
const LENGTH_BITS: u32 = 25;
const LENGTH_MASK: u64 = (1 << LENGTH_BITS) - 1;

const NANOS: u64 = Span::SECOND.nanos();

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

    /// The time from `now` until the quota starts anew; `None` if it never does.
    pub fn remaining(self, now: Time) -> Option<Span> {
        self.end().map(|end| end.since(now))
    }

    /// The period in eight bytes, for the state of a bucket: 35 bits for the second of the start, and 25 bits for the
    /// seconds until the end, zero if there is none.
    pub fn to_bits(self) -> u64 {
        let length = self.end().map_or(0, |end| end.since(self.start).nanos() / NANOS);
        (self.start.nanos() / NANOS) << LENGTH_BITS | (length & LENGTH_MASK)
    }

    /// The period of [`to_bits`](Period::to_bits). Other bits make some period; none makes a panic.
    pub fn from_bits(bits: u64) -> Period {
        let (start, length) = (bits >> LENGTH_BITS, bits & LENGTH_MASK);
        let end = if length == 0 { NO_END } else { Time::from_secs(start + length) };
        Period { start: Time::from_secs(start), end }
    }
}
