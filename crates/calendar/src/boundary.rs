//! The starts of periods in local time, before any zone: which is the last one, the one after, the one before.
//!
//! Each is computed from the anchor and never from the length of the period before it, so that a short month leaves no
//! trace in those that follow.

use crate::anchor::AnchorKind;
use crate::civil::{DAY, YearMonth};

const WEEK: i64 = 7 * DAY;

/// 1970-01-01 was a Thursday.
const EPOCH_DAYS_SINCE_MONDAY: i64 = 3;

/// The starts of periods with an anchor. Never has none, and is left to the caller.
#[derive(Clone, Copy)]
pub(crate) enum Boundaries {
    /// `every` seconds apart, `first` seconds after the epoch or any number of steps before and after.
    Steps { first: i64, every: i64 },
    /// This day of each month.
    Months { day: u8 },
    /// This date of each year.
    Years { month: u8, day: u8 },
}

impl Boundaries {
    /// `None` if there are none.
    pub fn of(anchor: AnchorKind) -> Option<Boundaries> {
        Some(match anchor {
            AnchorKind::Day { hour, minute } => {
                Boundaries::Steps { first: i64::from(hour) * 3_600 + i64::from(minute) * 60, every: DAY }
            }
            AnchorKind::Week(day) => {
                Boundaries::Steps { first: (day.days_since_monday() - EPOCH_DAYS_SINCE_MONDAY) * DAY, every: WEEK }
            }
            AnchorKind::Month { day } => Boundaries::Months { day },
            AnchorKind::Year { month, day } => Boundaries::Years { month, day },
            AnchorKind::Never => return None,
        })
    }

    /// The last start that is not after `local`.
    pub fn last(self, local: i64) -> i64 {
        let start = match self {
            Boundaries::Steps { first, every } => return local - (local - first).rem_euclid(every),
            Boundaries::Months { day } => YearMonth::at(local).midnight_of(day),
            Boundaries::Years { month, day } => in_year(YearMonth::at(local).year, month).midnight_of(day),
        };
        if start <= local { start } else { self.before(start) }
    }

    /// The start that follows `start`.
    pub fn after(self, start: i64) -> i64 {
        match self {
            Boundaries::Steps { every, .. } => start + every,
            Boundaries::Months { day } => YearMonth::at(start).next().midnight_of(day),
            Boundaries::Years { month, day } => in_year(YearMonth::at(start).year + 1, month).midnight_of(day),
        }
    }

    /// The start that `start` follows.
    pub fn before(self, start: i64) -> i64 {
        match self {
            Boundaries::Steps { every, .. } => start - every,
            Boundaries::Months { day } => YearMonth::at(start).previous().midnight_of(day),
            Boundaries::Years { month, day } => in_year(YearMonth::at(start).year - 1, month).midnight_of(day),
        }
    }
}

fn in_year(year: i16, month: u8) -> YearMonth {
    YearMonth { year, month: i8::try_from(month).unwrap_or(12) }
}
