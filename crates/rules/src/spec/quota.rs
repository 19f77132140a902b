//! A limit per calendar period.

use tollgate_calendar::{Calendar, Every};

use super::{LimitAlgorithm, LimitSpec};

/// The calendar of a quota, and what happens at its ends. The amount is the limit's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaSpec {
    /// When it starts anew, for clients without a calendar of their own.
    pub calendar: Calendar,
    /// Most units carried from one period into the next, in percent of the amount; 0 carries none.
    pub rollover: u32,
    /// Units admitted above the amount, in percent of it; 0 admits none.
    pub overdraft: u32,
}

/// The attribute of a client that names its time zone.
pub const TIME_ZONE: &str = "time_zone";
/// The attribute of a client that names the start of its periods: a day of the month, a weekday, a date or a time.
pub const ANCHOR: &str = "anchor";

impl LimitSpec {
    /// A limit of `amount` per period. Its window is the usual length of a period, for display.
    pub fn quota(amount: u64, quota: QuotaSpec) -> LimitSpec {
        const DAY: u64 = 86_400_000_000_000;
        let window_ns = match quota.calendar.every() {
            Every::Day => DAY,
            Every::Week => 7 * DAY,
            Every::Month => 30 * DAY,
            Every::Year => 365 * DAY,
            Every::Never => 0,
        };
        let algorithm = LimitAlgorithm::Quota;
        LimitSpec { algorithm, requests: amount, window_ns, quota: Some(Box::new(quota)), ..LimitSpec::default() }
    }
}
