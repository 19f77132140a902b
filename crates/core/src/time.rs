//! Points in time and the spans between them, as unsigned 64-bit nanoseconds.
//!
//! A [`Time`] counts from the Unix epoch and lasts until the year 2554. `std::time::Duration` has a second field that
//! every product and comparison would handle; a bucket needs eight bytes and one subtraction. All arithmetic saturates:
//! near the end of the range a limiter may be too strict, but must not wrap.

use std::fmt;
use std::time::Duration;

/// A point in time: nanoseconds since the Unix epoch, by the clock of the component that keeps the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch; also the stamp of an unused bucket.
    pub const ZERO: Time = Time(0);

    /// The time `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// The time `secs` seconds after the epoch.
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs.saturating_mul(Span::SECOND.0))
    }

    /// Nanoseconds since the epoch.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded up: at that second the time has passed.
    pub const fn secs_ceil(self) -> u64 {
        self.0.div_ceil(Span::SECOND.0)
    }

    /// How far `self` lies after `earlier`; zero if it does not.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The time `span` later, or the largest time.
    pub const fn after(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// The time `span` earlier, or the epoch.
    pub const fn before(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// An empty span.
    pub const ZERO: Span = Span(0);
    /// One second.
    pub const SECOND: Span = Span(1_000_000_000);
    /// The longest span of a limit: 2^63 − 1 ns, 292 years.
    pub const MAX: Span = Span(i64::MAX as u64);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos)
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000_000))
    }

    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(Span::SECOND.0))
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Milliseconds, rounded up: a sufficient wait.
    pub const fn millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// Seconds, rounded up: a sufficient wait.
    pub const fn secs_ceil(self) -> u64 {
        self.0.div_ceil(Span::SECOND.0)
    }

    /// The sum of both spans, or the largest span.
    pub const fn plus(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// `self` without `other`; zero if `other` is longer.
    pub const fn minus(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// True if the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Span {
        Span(duration.as_secs().saturating_mul(Span::SECOND.0).saturating_add(u64::from(duration.subsec_nanos())))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        Duration::from_nanos(span.0)
    }
}

/// Human-readable: `1.5s`, `250ms`, `42ns`; exact, without rounding.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Duration::from(*self), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wraps_at_either_end_of_time() {
        let end = Time::from_nanos(u64::MAX);
        assert_eq!(end.after(Span::SECOND), end);
        assert_eq!(Time::ZERO.before(Span::SECOND), Time::ZERO);
        assert_eq!(Time::ZERO.since(end), Span::ZERO);
        assert_eq!(Time::from_secs(u64::MAX), end);
    }

    #[test]
    fn coarser_units_round_up() {
        assert_eq!(Span::from_nanos(1).secs_ceil(), 1);
        assert_eq!(Span::from_nanos(1_000_001).millis_ceil(), 2);
        assert_eq!(Span::ZERO.secs_ceil(), 0);
    }

    #[test]
    fn a_span_reads_as_people_write_it() {
        assert_eq!(Span::from_millis(1500).to_string(), "1.5s");
        assert_eq!(Span::from_nanos(42).to_string(), "42ns");
    }
}
