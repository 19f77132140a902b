//! The units of time that the protocol knows.

use tollgate_core::Span;
use tollgate_proto::rls::rate_limit_response::rate_limit::Unit;

/// Unit, its name, its seconds. Months and years are not those of a calendar.
const UNITS: [(Unit, u64); 7] = [
    (Unit::Second, 1),
    (Unit::Minute, 60),
    (Unit::Hour, 3600),
    (Unit::Day, 86_400),
    (Unit::Week, 7 * 86_400),
    (Unit::Month, 30 * 86_400),
    (Unit::Year, 365 * 86_400),
];

/// The unit that a window is exactly one of.
pub(super) fn unit_of(window: Span) -> Unit {
    UNITS.into_iter().find(|(_, seconds)| Span::from_secs(*seconds) == window).map_or(Unit::Unknown, |(unit, _)| unit)
}

/// The window of a number as overrides send it. Their enumeration has no weeks; 7 is taken for one all the same.
pub(super) fn window_of(number: i32) -> Option<Span> {
    let unit = Unit::try_from(number).ok()?;
    UNITS.into_iter().find(|(own, _)| *own == unit).map(|(_, seconds)| Span::from_secs(seconds))
}
