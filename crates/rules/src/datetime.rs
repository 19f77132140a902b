//! Instants as RFC 3339 text, such as `2026-12-01T00:00:00Z` or `2026-12-01T01:00:00.5+01:00`.

use crate::problem::{ParseError, quote};

/// Nanoseconds since 1970-01-01T00:00:00Z.
pub fn parse(text: &str) -> Result<u64, ParseError> {
    read(text).ok_or_else(|| {
        ParseError::new(
            format!("{} is not a point in time", quote(text)),
            "write it like 2026-12-01T00:00:00Z, or with an offset such as 2026-12-01T01:00:00+01:00; from 1970 to 2553",
        )
    })
}

/// The same, or a date: its first instant in UTC.
pub fn parse_or_date(text: &str) -> Result<u64, ParseError> {
    let is_date = text.len() == "2026-12-01".len();
    if is_date { parse(&format!("{text}T00:00:00Z")).or_else(|_| parse(text)) } else { parse(text) }
}

fn read(text: &str) -> Option<u64> {
    let mut text = Digits(text);
    let year = text.number(4)?;
    let month = text.after("-")?.number(2)?;
    let day = text.after("-")?.number(2)?;
    let hour = text.after("Tt")?.number(2)?;
    let minute = text.after(":")?.number(2)?;
    let second = text.after(":")?.number(2)?;
    let nanos = text.fraction()?;
    let offset = text.offset()?;
    let valid = (1970..=2553).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !valid || !text.0.is_empty() {
        return None;
    }
    let seconds = ((days_since_epoch(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let seconds = u64::try_from(seconds - offset).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

struct Digits<'a>(&'a str);

impl<'a> Digits<'a> {
    fn number(&mut self, width: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(width)?;
        self.0 = rest;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    }

    /// Skips one character out of `any`.
    fn after(&mut self, any: &str) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(|letter| any.contains(letter))?;
        Some(self)
    }

    fn fraction(&mut self) -> Option<u64> {
        let Some(rest) = self.0.strip_prefix('.') else { return Some(0) };
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        self.0 = rest;
        (1..=9).contains(&digits.len()).then(|| format!("{digits:0<9}").parse().ok())?
    }

    /// Seconds east of Greenwich.
    fn offset(&mut self) -> Option<i64> {
        if self.after("Zz").is_some() {
            return Some(0);
        }
        let sign = if self.0.starts_with('-') { -1 } else { 1 };
        let hours = self.after("+-")?.number(2)?;
        let minutes = self.after(":")?.number(2)?;
        (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
    }
}

/// An instant in whole seconds, as [`parse`] reads it: `2026-11-18T12:00:00Z`.
pub fn display(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The Gregorian year, month and day of a day since 1970. The computation lets years start in March, so that a leap day
/// is the last day of a year; 400 years always have 146,097 days.
pub fn date(day: u64) -> (u64, u64, u64) {
    let since = day + 719_468; // 0000-03-01
    let (era, of_era) = (since / 146_097, since % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let past = year - 1;
    let days_to_year = past * 365 + past / 4 - past / 100 + past / 400 - 719_162;
    days_to_year + (1..month).map(|month| days_in(year, month)).sum::<i64>() + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_instants() {
        let second = 1_000_000_000;
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600 * second),
            ("2026-12-01T00:00:00Z", 1_796_083_200 * second),
            ("2026-12-01T01:00:00+01:00", 1_796_083_200 * second),
            ("2026-11-30T19:30:00-04:30", 1_796_083_200 * second),
            ("2026-12-01T00:00:00.25z", 1_796_083_200 * second + 250_000_000),
            ("2553-12-31T23:59:59.999999999Z", 18_429_292_799 * second + 999_999_999),
        ];
        for (text, ns) in cases {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        let cases = [
            "",
            "tomorrow",
            "2026-12-01",
            "2026-12-01 00:00:00Z",
            "2026-12-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-12-01T24:00:00Z",
            "2026-12-01T00:00:60Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "2600-01-01T00:00:00Z",
            "2026-12-01T00:00:00.Z",
            "2026-12-01T00:00:00Z ",
            "2026-12-01T00:00:00.1234567891Z",
            "+026-12-01T00:00:00Z",
            "2026-12-0\u{661}T00:00:00Z",
            "é",
        ];
        for text in cases {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
