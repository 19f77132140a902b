//! Durations, instants and numbers: parsing and printing are inverse, and nothing else is accepted.

use tollgate_rules::{check, datetime, duration, read};

/// A text that is tried as every kind of single value; its first eight bytes are also a number.
pub fn durations(data: &[u8]) {
    let mut number = [0; 8];
    let length = data.len().min(8);
    number[..length].copy_from_slice(&data[..length]);
    let number = u64::from_le_bytes(number);
    let days = number % 213_503 * 86_400_000_000_000;
    let whole = number / 1_000_000_000 * 1_000_000_000;
    [number, number >> 16, number >> 40, whole, days].into_iter().for_each(check_number);
    let text = String::from_utf8_lossy(data);
    let text = text.trim_end_matches('\n');
    check_duration(text);
    check_instant(text);
    check_fields(text);
}

fn check_number(ns: u64) {
    let shown = duration::display(ns);
    assert_eq!(duration::parse(&shown), Ok(ns), "{shown}");
    let shown = instant(ns);
    let read = datetime::parse(&shown);
    // Years have four digits and end in 2553, a little before the numbers do.
    assert_eq!(read.ok(), (!shown.starts_with("2554")).then_some(ns), "{shown}");
}

fn check_duration(text: &str) {
    let found = duration::parse(text);
    assert_eq!(found.as_ref().ok(), sum(text).as_ref(), "{text:?}: {found:?}");
    match found {
        Ok(ns) => assert_eq!(duration::parse(&duration::display(ns)), Ok(ns), "{text:?}"),
        Err(fault) => check_size(&fault.to_string()),
    }
}

/// A duration by its grammar: each unit at most once, from large to small.
fn sum(text: &str) -> Option<u64> {
    const UNITS: [(&str, u128); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let (mut rest, mut total) = (text, 0_u128);
    for (unit, size) in UNITS {
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        if digits > 0 && &after[..letters] == unit {
            total = total.checked_add(number.parse::<u64>().ok().map(u128::from)?.checked_mul(size)?)?;
            rest = &after[letters..];
        }
    }
    if rest.is_empty() && !text.is_empty() { u64::try_from(total).ok() } else { None }
}

fn check_instant(text: &str) {
    match datetime::parse(text) {
        Err(fault) => check_size(&fault.to_string()),
        Ok(ns) => {
            let shown = instant(ns);
            assert_eq!(datetime::parse(&shown), Ok(ns), "{text:?}");
            if text.ends_with(['Z', 'z']) {
                assert_eq!(text[..19].to_ascii_uppercase(), shown[..19], "the same clock face");
            }
        }
    }
}

/// RFC 3339 text of an instant, counted year by year and month by month.
fn instant(ns: u64) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (mut days, clock) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let (mut year, mut month) = (1970, 0);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z", month + 1, days + 1)
}

/// The text as a plain value of fields that want a number, a share or a duration (RELIABILITY Y04).
fn check_fields(text: &str) {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._+-%".contains(letter);
    let odd_start = |letter: char| matches!(letter, '%' | '-');
    // A leading `-` may be a list, a leading `%` a directive; all other text of these letters is one plain value.
    if !text.chars().all(is_plain) || text.starts_with(odd_start) && text.len() < 2 || text.starts_with('%') {
        return;
    }
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    let percent = |text: &str| text.strip_suffix('%').and_then(number);
    let within = |range: std::ops::RangeInclusive<u64>| move |number: &u64| range.contains(number);
    let rule = |field: &str| format!("rules: [{{ limit: {{ requests: 1, window: 1s }}, {field}: {text} }}]\n");
    let limit = |requests: &str, window: &str| {
        format!(
            "allow_block_all: true\nrules:\n  - limit:\n      algorithm: fixed_window\n      requests: {requests}\n      window: {window}\n"
        )
    };
    accepts(&limit(text, "1s"), number(text).filter(within(0..=check::REQUESTS_MAX)).is_some());
    accepts(&limit("1", text), sum(text).filter(within(check::WINDOW_NS)).is_some());
    accepts(&rule("soft"), percent(text).filter(within(1..=1000)).is_some());
    accepts(&rule("max_memory"), percent(text).filter(within(1..=100)).is_some());
}

fn accepts(yaml: &str, expected: bool) {
    let found = read("rules.yaml", yaml);
    assert_eq!(found.is_ok(), expected, "{yaml}\n{found:?}");
    if let Err(report) = found {
        assert!(report.problems.iter().all(|problem| problem.help.is_some()), "{report}");
        report.problems.iter().for_each(|problem| check_size(&problem.message));
    }
}

/// Messages quote the input, and never all of it.
fn check_size(message: &str) {
    assert!(message.chars().count() < 600, "a message of {} characters: {message:.200}", message.chars().count());
}
