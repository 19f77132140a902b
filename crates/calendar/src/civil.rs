//! Dates, and local time as a count of seconds.
//!
//! Local time is counted as if it were UTC: the seconds since 1970-01-01 00:00 that a local clock has shown. Days and
//! weeks are then plain arithmetic, and only the step to an instant needs the rules of a zone.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

/// Seconds of a nominal day, without changes of the clocks.
pub(crate) const DAY: i64 = 86_400;

/// The instant `seconds` after the epoch. Times of this project end in 2554, those of jiff in 9999.
pub(crate) fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// Date and time that a local clock shows at `local`.
pub(crate) fn datetime(local: i64) -> DateTime {
    Offset::UTC.to_datetime(timestamp(local))
}

/// A month of a year.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct YearMonth {
    pub year: i16,
    /// 1 to 12
    pub month: i8,
}

impl YearMonth {
    /// The month that a local clock shows at `local`.
    pub fn at(local: i64) -> YearMonth {
        let date = datetime(local).date();
        YearMonth { year: date.year(), month: date.month() }
    }

    pub fn next(self) -> YearMonth {
        match self.month {
            12 => YearMonth { year: self.year + 1, month: 1 },
            month => YearMonth { month: month + 1, ..self },
        }
    }

    pub fn previous(self) -> YearMonth {
        match self.month {
            1 => YearMonth { year: self.year - 1, month: 12 },
            month => YearMonth { month: month - 1, ..self },
        }
    }

    /// Midnight of this day, or of the last one if the month is shorter.
    pub fn midnight_of(self, day: u8) -> i64 {
        let first = Date::new(self.year, self.month, 1).unwrap_or(Date::ZERO);
        let first_midnight = Offset::UTC.to_timestamp(first.to_datetime(jiff::civil::Time::midnight()));
        let last = i64::from(first.days_in_month());
        first_midnight.map_or(0, Timestamp::as_second) + (i64::from(day).min(last) - 1) * DAY
    }
}
