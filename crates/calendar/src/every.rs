//! How long a period is.

use std::fmt;

use crate::error::{CalendarError, CalendarErrorKind};
use crate::nearest::suggest;

/// How often a quota starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Every {
    /// Every calendar day: 24 hours, or 23 or 25 where clocks are changed.
    Day,
    /// Every seven calendar days.
    Week,
    /// Every calendar month.
    Month,
    /// Every calendar year.
    Year,
    /// Never: the quota is for the lifetime of the client.
    Never,
}

impl Every {
    /// All values, shortest first.
    pub const ALL: [Every; 5] = [Every::Day, Every::Week, Every::Month, Every::Year, Every::Never];

    /// The word in rules: `day`, `week`, `month`, `year` or `never`.
    pub const fn name(self) -> &'static str {
        match self {
            Every::Day => "day",
            Every::Week => "week",
            Every::Month => "month",
            Every::Year => "year",
            Every::Never => "never",
        }
    }

    /// Reads a [`name`](Every::name), in lower case.
    pub fn parse(text: &str) -> Result<Every, CalendarError> {
        let found = Every::ALL.into_iter().find(|every| every.name() == text);
        found.ok_or_else(|| {
            let help = suggest(text, &Every::ALL.map(Every::name));
            CalendarError::new(CalendarErrorKind::UnknownEvery, text, "is not a period of a quota", help)
        })
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
