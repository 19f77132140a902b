//! Points in time and durations on the command line.

use anyhow::{Context, Result};
use tollgate_control::Instant;
use tollgate_core::{Clock, Span, Time};
use tollgate_rules::{datetime, duration};
use tollgate_store::MonotonicClock;

/// The current time of this machine.
pub fn now() -> Time {
    MonotonicClock::new().wall()
}

/// Parses a duration as in rules files: `90s`, `2h`, `30d`.
pub fn span(text: &str) -> Result<Span, String> {
    duration::parse(text).map(Span::from_nanos).map_err(|fault| fault.to_string())
}

/// Parses an instant: RFC 3339.
pub fn instant(text: &str) -> Result<Time, String> {
    datetime::parse(text).map(Time::from_nanos).map_err(|fault| fault.to_string())
}

/// Parses an instant in the past: RFC 3339, or how long ago (`2h`).
pub fn ago(text: &str) -> Result<Time, String> {
    match text.contains('-') {
        true => instant(text),
        false => span(text).map(|span| Time::from_nanos(now().nanos().saturating_sub(span.nanos()))),
    }
}

/// Parses an instant: RFC 3339, or whole seconds since 1970.
pub fn instant_or_seconds(text: &str) -> Result<Time, String> {
    match text.parse() {
        Ok(seconds) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Time::from_secs(seconds)),
        _ => instant(text),
    }
}

/// The instant `span` after `time`.
pub fn after(time: Time, span: Span) -> Result<Time> {
    let nanos = time.nanos().checked_add(span.nanos()).context("that is too far in the future")?;
    Ok(Time::from_nanos(nanos))
}

/// Formats an instant as the admin API takes it.
pub fn text(time: Time) -> String {
    Instant::from(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_a_date_or_a_duration_ago() {
        assert_eq!(text(instant("2026-12-01T01:00:00.5+01:00").unwrap()), "2026-12-01T00:00:00.500000Z");
        assert_eq!(ago("2026-12-01T00:00:00Z"), instant("2026-12-01T00:00:00Z"));
        let hour = now().nanos() - ago("1h").unwrap().nanos();
        assert!((3_599_000_000_000..=3_600_000_000_000).contains(&hour), "{hour}");
        assert!(ago("yesterday").unwrap_err().contains("duration"), "{:?}", ago("yesterday"));
        assert!(instant("2026-12-01").unwrap_err().contains("2026-12-01T00:00:00Z"));
        assert!(after(Time::from_nanos(u64::MAX), Span::SECOND).is_err());
    }
}
