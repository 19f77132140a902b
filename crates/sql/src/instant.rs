//! Points in time.

use std::fmt;

use tollgate_core::Time;
use tollgate_rules::datetime;

/// A point in time, in microseconds since 1970, PostgreSQL's resolution. Always UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub i64);

impl Instant {
    /// Parses RFC 3339 with any offset, truncated to microseconds.
    pub fn parse(text: &str) -> Result<Instant, tollgate_rules::problem::ParseError> {
        datetime::parse(text).map(|nanos| Time::from_nanos(nanos).into())
    }

    /// The same instant on the engine's clock. Instants before 1970 become 1970.
    pub fn time(self) -> Time {
        Time::from_nanos(u64::try_from(self.0).unwrap_or(0).saturating_mul(1000))
    }
}

impl From<Time> for Instant {
    fn from(time: Time) -> Instant {
        Instant(i64::try_from(time.nanos() / 1000).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Instant {
    /// RFC 3339 in UTC, always with microseconds, so that texts sort by time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = u64::try_from(self.0).unwrap_or(0);
        let seconds = micros / 1_000_000;
        let (year, month, day) = datetime::date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", micros % 1_000_000)
    }
}
