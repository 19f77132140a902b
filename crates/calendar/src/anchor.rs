//! Where in a day, week, month or year a period starts.
//!
//! What an anchor looks like depends on the period, so an [`Anchor`] carries its [`Every`]: a weekday for a month cannot
//! be built. Three bytes, because every client may have its own.

use std::fmt;

use crate::error::{CalendarError, CalendarErrorKind};
use crate::every::Every;
use crate::nearest::nearest;
use crate::weekday::Weekday;

/// The days of the longest year's months.
const DAYS_IN_MONTH: [u8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// The point at which a period starts, by the local clock, and which period it is.
///
/// | period | anchor | starts |
/// |---|---|---|
/// | day | `0` to `23`, or `HH:MM` | at this time of the day; default midnight |
/// | week | `monday` to `sunday`, `mon` to `sun` | at midnight of this day; default Monday |
/// | month | `1` to `31` | at midnight of this day, or of the last one in shorter months; default 1 |
/// | year | `MM-DD`, such as `03-17` | at midnight of this date; `02-29` is February 28 in common years; default `01-01` |
/// | never | none | |
///
/// A short month moves one start, not those that follow: anchor 31 is January 31, February 28, March 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Anchor(pub(crate) AnchorKind);

/// Fields are in range: [`Anchor`] checks them when it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AnchorKind {
    Day { hour: u8, minute: u8 },
    Week(Weekday),
    Month { day: u8 },
    Year { month: u8, day: u8 },
    Never,
}

impl AnchorKind {
    /// A number of its own for every anchor.
    pub(crate) const fn packed(self) -> u32 {
        let (kind, one, other) = match self {
            AnchorKind::Day { hour, minute } => (0, hour, minute),
            AnchorKind::Week(day) => (1, day as u8, 0),
            AnchorKind::Month { day } => (2, day, 0),
            AnchorKind::Year { month, day } => (3, month, day),
            AnchorKind::Never => (4, 0, 0),
        };
        kind << 16 | (one as u32) << 8 | other as u32
    }
}

impl Anchor {
    /// No anchor: for a quota that never starts anew.
    pub const NEVER: Anchor = Anchor(AnchorKind::Never);

    /// The default: midnight, Monday, the first of the month, January 1.
    pub const fn default_of(every: Every) -> Anchor {
        Anchor(match every {
            Every::Day => AnchorKind::Day { hour: 0, minute: 0 },
            Every::Week => AnchorKind::Week(Weekday::Monday),
            Every::Month => AnchorKind::Month { day: 1 },
            Every::Year => AnchorKind::Year { month: 1, day: 1 },
            Every::Never => AnchorKind::Never,
        })
    }

    /// Days that start at this time, if the hour is at most 23 and the minute at most 59.
    pub const fn time_of_day(hour: u8, minute: u8) -> Option<Anchor> {
        if hour > 23 || minute > 59 {
            return None;
        }
        Some(Anchor(AnchorKind::Day { hour, minute }))
    }

    /// Weeks that start on this day.
    pub const fn weekday(day: Weekday) -> Anchor {
        Anchor(AnchorKind::Week(day))
    }

    /// Months that start on this day, 1 to 31.
    pub const fn day_of_month(day: u8) -> Option<Anchor> {
        if day < 1 || day > 31 {
            return None;
        }
        Some(Anchor(AnchorKind::Month { day }))
    }

    /// Years that start on this date, if some year has it.
    pub fn date(month: u8, day: u8) -> Option<Anchor> {
        let days = *DAYS_IN_MONTH.get(usize::from(month).checked_sub(1)?)?;
        (1..=days).contains(&day).then_some(Anchor(AnchorKind::Year { month, day }))
    }

    /// Reads the anchor of a period, as the table of [`Anchor`] lists them.
    pub fn parse(every: Every, text: &str) -> Result<Anchor, CalendarError> {
        Anchor::find(every, text).ok_or_else(|| refuse(every, text))
    }

    /// The same without a reason: for anchors of clients, which need not suit every quota.
    pub fn find(every: Every, text: &str) -> Option<Anchor> {
        match every {
            Every::Day => parse_time(text),
            Every::Week => Weekday::find(text).map(Anchor::weekday),
            Every::Month => number(text).and_then(Anchor::day_of_month),
            Every::Year => text.split_once('-').and_then(|(month, day)| Anchor::date(number(month)?, number(day)?)),
            Every::Never => None,
        }
    }

    /// Refuses what is an anchor of no period: for clients, whose quotas may have any.
    pub fn check(text: &str) -> Result<(), CalendarError> {
        match Every::ALL.into_iter().any(|every| Anchor::find(every, text).is_some()) {
            true => Ok(()),
            false => Err(refuse_always(text)),
        }
    }

    /// The period that the anchor is for.
    pub const fn every(self) -> Every {
        match self.0 {
            AnchorKind::Day { .. } => Every::Day,
            AnchorKind::Week(_) => Every::Week,
            AnchorKind::Month { .. } => Every::Month,
            AnchorKind::Year { .. } => Every::Year,
            AnchorKind::Never => Every::Never,
        }
    }
}

/// As [`Anchor::parse`] reads it: `06:30`, `monday`, `17`, `03-17`; empty for `never`.
impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            AnchorKind::Day { hour, minute } => write!(f, "{hour:02}:{minute:02}"),
            AnchorKind::Week(day) => day.fmt(f),
            AnchorKind::Month { day } => day.fmt(f),
            AnchorKind::Year { month, day } => write!(f, "{month:02}-{day:02}"),
            AnchorKind::Never => Ok(()),
        }
    }
}

/// `6`, `06` or `06:30`.
fn parse_time(text: &str) -> Option<Anchor> {
    match text.split_once(':') {
        Some((hour, minute)) if minute.len() == 2 => Anchor::time_of_day(number(hour)?, number(minute)?),
        Some(_) => None,
        None => Anchor::time_of_day(number(text)?, 0),
    }
}

/// One or two digits, nothing else.
fn number(text: &str) -> Option<u8> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| byte - b'0');
    match *text.as_bytes() {
        [ones] => digit(ones),
        [tens, ones] => Some(digit(tens)? * 10 + digit(ones)?),
        _ => None,
    }
}

fn refuse(every: Every, text: &str) -> CalendarError {
    let (problem, help) = match every {
        Every::Day => ("is not a time of the day", "an hour from 0 to 23, or `HH:MM`".to_owned()),
        Every::Week => ("is not a day of the week", weekday_help(text)),
        Every::Month => ("is not a day of the month", "1 to 31; a shorter month starts on its last day".to_owned()),
        Every::Year => ("is not a date of the year", "month and day as `MM-DD`, such as `03-17`".to_owned()),
        Every::Never => ("anchors a quota that never starts anew", "leave the anchor out".to_owned()),
    };
    CalendarError::new(CalendarErrorKind::BadAnchor, text, problem, help)
}

/// For a text that no period accepts.
fn refuse_always(text: &str) -> CalendarError {
    let help = match nearest(text, Weekday::ALL.map(Weekday::name)) {
        Some(day) => format!("did you mean `{day}`?"),
        None => "a day of the month (1 to 31), a day of the week, a date (`MM-DD`) or a time of the day (0 to 23, or \
                 `HH:MM`)"
            .to_owned(),
    };
    CalendarError::new(CalendarErrorKind::BadAnchor, text, "is where no period starts", help)
}

fn weekday_help(text: &str) -> String {
    match nearest(text, Weekday::ALL.map(Weekday::name)) {
        Some(day) => format!("did you mean `{day}`?"),
        None => "monday to sunday".to_owned(),
    }
}
