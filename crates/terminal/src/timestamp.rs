//! Points in time as text: the instant, and its distance from now.

use tollgate_core::Time;
use tollgate_rules::datetime;

/// `2026-12-01T00:00:00Z (in 2 h)` for an RFC 3339 timestamp; other text unchanged.
pub fn timestamp(text: &str, now: Time) -> String {
    match datetime::parse(text) {
        Ok(nanos) => format!("{} ({})", to_the_second(text), relative(Time::from_nanos(nanos), now)),
        Err(_) => text.to_owned(),
    }
}

/// The timestamp without fractions of a second.
fn to_the_second(text: &str) -> String {
    match text.split_once('.') {
        Some((whole, fraction)) => {
            format!("{whole}{}", fraction.trim_start_matches(|digit: char| digit.is_ascii_digit()))
        }
        None => text.to_owned(),
    }
}

/// `in 2 h`, `3 d ago`, `now`: in one unit, rounded.
fn relative(time: Time, now: Time) -> String {
    let nanos = time.nanos().abs_diff(now.nanos());
    let round = |unit: u64| (nanos / 1_000_000_000 + unit / 2) / unit;
    let distance = match nanos.div_ceil(1_000_000_000) {
        0..=2 => return "now".to_owned(),
        _ if round(1) < 120 => format!("{} s", round(1)),
        _ if round(60) < 120 => format!("{} min", round(60)),
        _ if round(3600) < 48 => format!("{} h", round(3600)),
        _ => format!("{} d", round(86_400)),
    };
    if time > now { format!("in {distance}") } else { format!("{distance} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_instant_and_the_distance() {
        let now = Time::from_nanos(datetime::parse("2026-11-15T12:00:00Z").unwrap());
        for (text, shown) in [
            ("2026-11-15T12:00:01.5Z", "2026-11-15T12:00:01Z (now)"),
            ("2026-11-15T12:01:30Z", "2026-11-15T12:01:30Z (in 90 s)"),
            ("2026-11-15T13:59:59.999999Z", "2026-11-15T13:59:59Z (in 2 h)"),
            ("2026-11-15T11:15:00Z", "2026-11-15T11:15:00Z (45 min ago)"),
            ("2026-11-12T12:00:00+00:00", "2026-11-12T12:00:00+00:00 (3 d ago)"),
            ("tomorrow", "tomorrow"),
        ] {
            assert_eq!(timestamp(text, now), shown);
        }
    }
}
