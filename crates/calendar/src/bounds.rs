//! The bounds of a period, kept per thread: a quota needs them for every request.

use std::cell::RefCell;

use tollgate_core::{Quota, Time};

use crate::calendar::Calendar;
use crate::period::Period;

/// The period that an instant belongs to, and the end of the one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodBounds {
    /// The first instant of the period.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
    /// The first instant after the next one.
    pub next_end: Time,
}

/// Sets of calendars whose bounds one thread keeps, 160 kB: a directory of a million clients has zones times anchors of
/// them, and computing a period costs as much as many checks.
const SETS: usize = 1024;
/// Calendars of one set, latest computed first.
const WAYS: usize = 4;

thread_local! {
    static BOUNDS: RefCell<Vec<Option<(Calendar, PeriodBounds)>>> = const { RefCell::new(Vec::new()) };
}

/// The bounds of `calendar` around `now`: computed once per thread, calendar and period.
pub fn bounds_at(calendar: Calendar, now: Time) -> PeriodBounds {
    BOUNDS.with_borrow_mut(|kept| {
        if kept.is_empty() {
            kept.resize(SETS * WAYS, None);
        }
        let first = calendar.mixed() % SETS * WAYS;
        let set = kept.get_mut(first..first + WAYS).unwrap_or_default();
        let found = set.iter().flatten().find(|(own, _)| *own == calendar).map(|(_, bounds)| *bounds);
        match found {
            Some(bounds) if bounds.start <= now && now < bounds.end => bounds,
            _ => {
                let bounds = PeriodBounds::of(calendar, now);
                // An earlier period of this calendar is replaced, else the entry that was computed first.
                let place = set.iter().position(|entry| entry.as_ref().is_some_and(|(other, _)| *other == calendar));
                let upto = place.map_or(set.len(), |place| place + 1);
                if let Some(moved) = set.get_mut(..upto) {
                    moved.rotate_right(1);
                }
                if let Some(place) = set.first_mut() {
                    *place = Some((calendar, bounds));
                }
                bounds
            }
        }
    })
}

impl PeriodBounds {
    fn of(calendar: Calendar, now: Time) -> PeriodBounds {
        let period = calendar.period_at(now);
        let end = period.end().unwrap_or(Quota::FOREVER);
        let next_end = calendar.period_after(period).and_then(Period::end).unwrap_or(Quota::FOREVER);
        PeriodBounds { start: period.start(), end, next_end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anchor, Every, TimeZone};

    #[test]
    fn more_calendars_than_are_kept_have_their_own_bounds_in_every_period() {
        let anchors: Vec<Anchor> = (1..=31).map(|day| Anchor::find(Every::Month, &day.to_string()).unwrap()).collect();
        let zones = || TimeZone::all().step_by(3);
        assert!(anchors.len() * zones().count() > SETS * WAYS);
        for days in [20_000, 20_000, 20_040, 20_000] {
            let now = Time::from_secs(days * 86_400);
            for calendar in zones().flat_map(|zone| anchors.iter().map(move |anchor| Calendar::new(*anchor, zone))) {
                assert_eq!(bounds_at(calendar, now), PeriodBounds::of(calendar, now), "{calendar:?}");
            }
        }
    }
}
