//! Calendars of quotas: texts become a calendar or an error with help, and every instant belongs to exactly one period.

use tollgate_calendar::{Anchor, Calendar, CalendarError, Every, TimeZone, bounds_at};
use tollgate_core::{Quota, Time};

/// Eight bytes of an instant, then lines: how often, the anchor, the zone.
pub fn calendars(data: &[u8]) {
    let mut number = [0; 8];
    let (head, rest) = data.split_at(data.len().min(8));
    number[..head.len()].copy_from_slice(head);
    let now = Time::from_nanos(u64::from_le_bytes(number));
    let text = String::from_utf8_lossy(rest);
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (every, anchor, zone) = (line(), line(), line());
    let zone = checked(TimeZone::parse(zone)).unwrap_or(TimeZone::UTC);
    let Some(every) = checked(Every::parse(every)) else { return };
    let Some(anchor) = checked(Anchor::parse(every, anchor)) else { return };
    assert_eq!(anchor.every(), every);
    check_periods(Calendar::new(anchor, zone), now);
}

/// The value; an error says what would be right, and repeats no control characters.
fn checked<T>(read: Result<T, CalendarError>) -> Option<T> {
    let error = match read {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    assert!(!error.code().is_empty() && !error.help().is_empty(), "{error:?}");
    let shown = error.to_string();
    assert!(shown.chars().count() < 1_000, "{} characters", shown.chars().count());
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    None
}

/// Periods contain their instants and follow each other without gap, and the bounds that are kept say the same.
fn check_periods(calendar: Calendar, now: Time) {
    let period = calendar.period_at(now);
    assert!(period.contains(now), "{calendar:?} {now:?} {period:?}");
    let after = calendar.period_after(period);
    if let (Some(end), Some(after)) = (period.end(), after) {
        assert_eq!(after.start(), end, "{calendar:?} {now:?}");
        assert_eq!(calendar.period_before(after), Some(period), "{calendar:?} {now:?}");
    }
    if let Some(before) = calendar.period_before(period) {
        assert_eq!(before.end(), Some(period.start()), "{calendar:?} {now:?}");
    }
    for _ in 0..2 {
        let bounds = bounds_at(calendar, now);
        let next_end = after.and_then(|after| after.end());
        assert_eq!((bounds.start, bounds.end), (period.start(), period.end().unwrap_or(Quota::FOREVER)));
        assert_eq!(bounds.next_end, next_end.unwrap_or(Quota::FOREVER));
    }
}
