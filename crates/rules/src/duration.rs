//! Durations in text: `250ms`, `30s`, `5m`, `1h30m`, `7d`.
//!
//! A number without a unit is rejected (RELIABILITY J11): `60` means seconds, milliseconds or minutes in different
//! systems. `1M` and `PT1M` are rejected too, because they look alike and differ.

use crate::nearest::nearest;
use crate::problem::{ParseError, quote, short};

/// Units from large to small, the order of a sum.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Words that are taken for units in suggestions.
const WORDS: [(&str, &str); 16] = [
    ("second", "s"),
    ("seconds", "s"),
    ("sec", "s"),
    ("secs", "s"),
    ("minute", "m"),
    ("minutes", "m"),
    ("min", "m"),
    ("hour", "h"),
    ("hours", "h"),
    ("hr", "h"),
    ("day", "d"),
    ("days", "d"),
    ("millisecond", "ms"),
    ("milliseconds", "ms"),
    ("msec", "ms"),
    ("µs", "us"),
];

const ALLOWED: &str = "a duration is a whole number with a unit (ms, s, m, h, d), such as 250ms, 30s, 5m or 1h30m";

/// Periods of a calendar, which have no fixed length.
const MONTHS_AND_YEARS: [&str; 7] = ["mo", "mon", "month", "months", "y", "year", "years"];
const CALENDAR: &str = "calendar months and years are quotas: `quota: { amount: 1000, every: month }`";

/// Nanoseconds of a duration.
pub fn parse(text: &str) -> Result<u64, ParseError> {
    let refuse = |why: &str, help: String| Err(ParseError::new(format!("{} {why}", quote(text)), help));
    if text.trim().is_empty() {
        return Err(ParseError::new("the duration is blank", ALLOWED));
    }
    if text.starts_with(['-', '+']) {
        return refuse("has a sign", ALLOWED.to_owned());
    }
    if text.contains(['.', ',']) {
        return refuse(
            "is not a whole number",
            "use a smaller unit, e.g. 1500ms for one and a half seconds".to_owned(),
        );
    }
    let (mut rest, mut total, mut smallest) = (text, 0_u64, u64::MAX);
    while !rest.is_empty() {
        let (digits, after) = split_while(rest, |letter| letter.is_ascii_digit());
        let (unit, after) = split_while(after, |letter| !letter.is_ascii_digit());
        if digits.is_empty() {
            return refuse("is not a duration", ALLOWED.to_owned());
        }
        if unit.is_empty() {
            return refuse("has no unit", format!("a number needs a unit, e.g. {}s; {ALLOWED}", short(text)));
        }
        let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return refuse(&format!("has the unknown unit {}", quote(unit)), unit_help(digits, unit));
        };
        if *size >= smallest {
            return refuse("names its units out of order", "write a sum from large to small, e.g. 1h30m".to_owned());
        }
        let part = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*size));
        let Some(sum) = part.and_then(|part| total.checked_add(part)) else {
            return refuse("is too long", "the longest duration is 366d".to_owned());
        };
        (rest, total, smallest) = (after, sum, *size);
    }
    Ok(total)
}

/// A text that [`parse`] reads as `ns`: one unit, or a sum of units, whichever is shorter.
pub fn display(ns: u64) -> String {
    if ns == 0 {
        return "0s".to_owned();
    }
    let single =
        UNITS.iter().find(|(_, size)| ns.is_multiple_of(*size)).map(|(unit, size)| format!("{}{unit}", ns / size));
    let mut sum = String::new();
    let mut rest = ns;
    for (unit, size) in UNITS {
        if rest >= size {
            sum.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    single.filter(|single| single.len() <= sum.len()).unwrap_or(sum)
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|letter| !keep(letter)).unwrap_or(text.len());
    text.split_at(end)
}

fn unit_help(digits: &str, unit: &str) -> String {
    if unit == "M" {
        return format!("write {}m for minutes; {CALENDAR}", short(digits));
    }
    if MONTHS_AND_YEARS.contains(&unit.to_lowercase().as_str()) {
        return format!("{CALENDAR}; or use days such as 30d");
    }
    if unit == "w" {
        return "write weeks as days, e.g. 7d".to_owned();
    }
    let lower = unit.trim().to_lowercase();
    let known = || WORDS.iter().map(|(word, _)| *word).chain(UNITS.iter().map(|(unit, _)| *unit));
    let meant = nearest(&lower, known()).filter(|meant| lower.len() > 1 || *meant == lower);
    match meant {
        Some(meant) => {
            let unit = WORDS.iter().find(|(word, _)| *word == meant).map_or(meant, |(_, unit)| unit);
            format!("did you mean `{}{unit}`? {ALLOWED}", short(digits))
        }
        None => ALLOWED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_displays() {
        let cases = [
            ("250ms", 250_000_000, "250ms"),
            ("30s", 30_000_000_000, "30s"),
            ("5m", 300_000_000_000, "5m"),
            ("1h", 3_600_000_000_000, "1h"),
            ("7d", 604_800_000_000_000, "7d"),
            ("15us", 15_000, "15us"),
            ("1ns", 1, "1ns"),
            ("1h30m", 5_400_000_000_000, "90m"),
            ("90m", 5_400_000_000_000, "90m"),
            ("60s", 60_000_000_000, "1m"),
            ("1d1ms", 86_400_001_000_000, "1d1ms"),
            ("0s", 0, "0s"),
            ("007s", 7_000_000_000, "7s"),
            ("366d", 31_622_400_000_000_000, "366d"),
        ];
        for (text, ns, shown) in cases {
            assert_eq!(parse(text), Ok(ns), "{text}");
            assert_eq!(display(ns), shown, "{text}");
        }
    }

    #[test]
    fn refuses_with_advice() {
        let cases = [
            ("", "the duration is blank", "a duration is"),
            ("  ", "the duration is blank", "a duration is"),
            ("60", "`60` has no unit", "a number needs a unit, e.g. 60s"),
            ("1M", "unknown unit `M`", "write 1m for minutes"),
            ("PT1M", "`PT1M` is not a duration", "a duration is"),
            ("1.5s", "not a whole number", "1500ms"),
            ("-1s", "has a sign", "a duration is"),
            ("10secnd", "unknown unit `secnd`", "did you mean `10s`?"),
            ("1 s", "unknown unit ` s`", "did you mean `1s`?"),
            ("1Ms", "unknown unit `Ms`", "did you mean `1ms`?"),
            ("1w", "unknown unit `w`", "7d"),
            ("30m1h", "out of order", "large to small"),
            ("1s1s", "out of order", "large to small"),
            ("1h30", "`1h30` has no unit", "needs a unit"),
            ("s", "is not a duration", "a duration is"),
            ("99999999999999999999s", "is too long", "366d"),
            ("300000d", "is too long", "366d"),
            ("18446744073709551615ns1", "no unit", "unit"),
            ("٣s", "is not a duration", "a duration is"),
        ];
        for (text, message, help) in cases {
            let fault = parse(text).expect_err(text);
            assert!(fault.message.contains(message), "{text}: {}", fault.message);
            assert!(fault.help.contains(help), "{text}: {}", fault.help);
        }
    }

    #[test]
    fn advice_is_short_whatever_it_is_about() {
        let digits = "9".repeat(10_000);
        for text in [digits.clone(), format!("{digits}M"), format!("{digits}secnd"), format!("1{}", "x".repeat(10_000))]
        {
            assert!(parse(&text).unwrap_err().to_string().len() < 500);
        }
    }

    #[test]
    fn display_reads_back() {
        let mut ns: u64 = 1;
        for step in 0..2000_u64 {
            assert_eq!(parse(&display(ns)), Ok(ns));
            ns = ns.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step) >> (step % 50);
        }
    }
}
