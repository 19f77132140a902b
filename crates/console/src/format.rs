//! Numbers, times and durations as people read them.

use maud::{Markup, html};
use tollgate_rules::datetime;

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && place % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number in few characters: `999`, `12.3 k`, `4.5 M`.
pub(crate) fn short(number: u64) -> String {
    let (unit, letter) = match number {
        0..10_000 => return grouped(number),
        10_000..1_000_000 => (1_000, "k"),
        1_000_000..1_000_000_000 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    format!("{}.{} {letter}", grouped(number / unit), number % unit * 10 / unit)
}

/// A duration: its two largest units.
pub(crate) fn duration(ms: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    if ms < 10_000 {
        return format!("{}.{} s", ms / 1000, ms % 1000 / 100);
    }
    let Some(at) = UNITS.iter().position(|(unit, _)| ms >= *unit) else { return String::new() };
    let parts = UNITS.iter().skip(at).take(2).scan(ms, |rest, (unit, name)| {
        let part = *rest / unit;
        *rest %= unit;
        Some((part, name))
    });
    let parts: Vec<String> = parts.filter(|(part, _)| *part > 0).map(|(part, name)| format!("{part} {name}")).collect();
    parts.join(" ")
}

/// The nanoseconds of a duration of the rules language, such as `1m`.
pub(crate) fn duration_ns(text: &str) -> Option<u64> {
    tollgate_rules::duration::parse(text).ok()
}

/// A point in time: how far away it is; the whole date is its title.
pub(crate) fn when(timestamp: &str, now_ms: u64) -> Markup {
    let Some(at_ms) = millis(timestamp) else { return html! { span class="dim" { "–" } } };
    let shown = timestamp.get(..19).unwrap_or(timestamp).replace('T', " ");
    html! { time datetime=(timestamp) title={ (shown) " UTC" } { (distance(at_ms, now_ms)) } }
}

fn distance(at_ms: u64, now_ms: u64) -> String {
    match (now_ms.checked_sub(at_ms), at_ms.saturating_sub(now_ms)) {
        (Some(0..5_000), _) => "now".to_owned(),
        (Some(ago), _) => format!("{} ago", coarse(ago)),
        (None, ahead) => format!("in {}", coarse(ahead)),
    }
}

/// A duration in its largest unit.
fn coarse(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Milliseconds since 1970 of a timestamp.
pub(crate) fn millis(timestamp: &str) -> Option<u64> {
    datetime::parse(timestamp).ok().map(|nanos| nanos / 1_000_000)
}

/// A timestamp of the API.
pub(crate) fn timestamp(ms: u64) -> String {
    datetime::display(ms.saturating_mul(1_000_000))
}

/// A point of an axis, UTC: the time of day, with seconds on short axes; the date on one of days.
pub(crate) fn axis_time(ms: u64, span_ms: u64) -> String {
    let date = timestamp(ms);
    let day = || date.get(..10).unwrap_or_default().to_owned();
    match span_ms / 1000 {
        0..7_200 => clock_time(ms),
        7_200..172_800 => clock_time(ms).get(..5).unwrap_or_default().to_owned(),
        _ => day(),
    }
}

/// The time of day, UTC.
pub(crate) fn clock_time(ms: u64) -> String {
    let seconds = ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact_where_they_are_small() {
        let shown = [0, 999, 1_000, 9_999, 12_345, 999_999, 4_560_000, 7_000_000_000].map(short);
        assert_eq!(shown, ["0", "999", "1,000", "9,999", "12.3 k", "999.9 k", "4.5 M", "7.0 G"]);
        assert_eq!(grouped(18_446_744_073_709_551_615), "18,446,744,073,709,551,615");
    }

    #[test]
    fn durations_have_two_units() {
        let shown = [0, 999, 1_234, 59_900, 61_000, 3_600_000, 90_061_000].map(duration);
        assert_eq!(shown, ["0 ms", "999 ms", "1.2 s", "59 s", "1 min 1 s", "1 h", "1 d 1 h"]);
    }

    #[test]
    fn times_are_told_by_their_distance() {
        let now = millis("2026-11-18T18:30:50Z").unwrap();
        let shown = |text: &str| when(text, now).into_string();
        assert!(shown("2026-11-18T18:30:49Z").ends_with(">now</time>"));
        assert!(shown("2026-11-18T18:00:50.500000Z").ends_with(">29 min ago</time>"));
        assert!(shown("2026-11-18T20:30:51Z").ends_with(">in 2 h</time>"));
        assert!(shown("").contains("–"));
        assert_eq!(millis(&timestamp(now)), Some(now));
        assert_eq!(clock_time(now), "18:30:50");
        assert_eq!(
            [300, 86_400, 2_592_000].map(|span| axis_time(now, span * 1000)),
            ["18:30:50", "18:30", "2026-11-18"]
        );
    }
}
