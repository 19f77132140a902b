//! A limit per calendar period.

use tollgate_calendar::{Calendar, Every};

/// The calendar of a quota, and what happens at its ends. The amount is the limit's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaSpec {
    /// When it starts anew, for clients without a calendar of their own.
    pub calendar: Calendar,
    /// Most units carried from one period into the next, in percent of the amount; 0 carries none.
    pub rollover: u32,
    /// Units admitted above the amount, in percent of it; 0 admits none.
    pub overdraft: u32,
    /// Percentages of the limit at which an event is reported, in ascending order.
    pub marks: Vec<u32>,
}

impl QuotaSpec {
    /// The marks of a quota that names none.
    pub const MARKS: [u32; 2] = [80, 100];

    /// True if it never starts anew.
    pub fn is_for_ever(&self) -> bool {
        self.calendar.every() == Every::Never
    }
}

/// The attribute of a client that names its time zone.
pub const TIME_ZONE: &str = "time_zone";
/// The attribute of a client that names the start of its periods: a day of the month, a weekday, a date or a time.
pub const ANCHOR: &str = "anchor";
