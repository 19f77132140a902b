//! The days of the week.

use std::fmt;

/// A day of the week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weekday {
    /// The first day of a week, unless the anchor says otherwise (ISO 8601).
    #[default]
    Monday,
    /// Tuesday
    Tuesday,
    /// Wednesday
    Wednesday,
    /// Thursday
    Thursday,
    /// Friday
    Friday,
    /// Saturday
    Saturday,
    /// Sunday
    Sunday,
}

impl Weekday {
    /// All days, Monday first.
    pub const ALL: [Weekday; 7] = [
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
        Weekday::Sunday,
    ];

    /// The name in English, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Weekday::Monday => "monday",
            Weekday::Tuesday => "tuesday",
            Weekday::Wednesday => "wednesday",
            Weekday::Thursday => "thursday",
            Weekday::Friday => "friday",
            Weekday::Saturday => "saturday",
            Weekday::Sunday => "sunday",
        }
    }

    /// Days since Monday.
    pub(crate) const fn days_since_monday(self) -> i64 {
        self as i64
    }

    /// The day with this name, or its first three letters, in any case.
    pub(crate) fn find(text: &str) -> Option<Weekday> {
        Weekday::ALL.into_iter().find(|day| {
            let short = day.name().get(..3).unwrap_or_default();
            text.eq_ignore_ascii_case(day.name()) || text.eq_ignore_ascii_case(short)
        })
    }
}

impl fmt::Display for Weekday {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
