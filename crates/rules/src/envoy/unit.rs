//! Units of time in envoyproxy/ratelimit files.

use tollgate_core::Span;

/// A unit of time. Windows start at multiples of the unit since the epoch: weeks start on Thursdays, months have 30
/// days and years 365.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// One second.
    Second,
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
    /// 365 days.
    Year,
}

impl Unit {
    /// Every unit, the shortest first.
    pub const ALL: [Unit; 7] = [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month, Unit::Year];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
            Unit::Year => "year",
        }
    }

    /// The unit of that name, in any case.
    pub fn from_name(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.name().eq_ignore_ascii_case(name))
    }

    /// Its number in the protocol, in requests and responses.
    pub const fn number(self) -> i32 {
        match self {
            Unit::Second => 1,
            Unit::Minute => 2,
            Unit::Hour => 3,
            Unit::Day => 4,
            Unit::Month => 5,
            Unit::Year => 6,
            Unit::Week => 7,
        }
    }

    /// The unit of that number; `None` for `UNKNOWN` and undefined numbers.
    pub fn from_number(number: i32) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.number() == number)
    }

    /// Its length.
    pub const fn window(self) -> Span {
        const DAY: u64 = 24 * 3600;
        Span::from_secs(match self {
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Hour => 3600,
            Unit::Day => DAY,
            Unit::Week => 7 * DAY,
            Unit::Month => 30 * DAY,
            Unit::Year => 365 * DAY,
        })
    }

    /// The unit of that length, for the window of a native rule.
    pub fn from_window(window: Span) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.window() == window)
    }
}
