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

/// Calendars whose bounds one thread keeps, 40 kB: a directory of a million clients has zones times anchors of them.
const KEPT: usize = 1024;

thread_local! {
    static BOUNDS: RefCell<Vec<Option<(Calendar, PeriodBounds)>>> = const { RefCell::new(Vec::new()) };
}

/// The bounds of `calendar` around `now`: computed once per thread, calendar and period.
pub fn bounds_at(calendar: Calendar, now: Time) -> PeriodBounds {
    BOUNDS.with_borrow_mut(|kept| {
        if kept.is_empty() {
            kept.resize(KEPT, None);
        }
        let slot = kept.get_mut(calendar.mixed() % KEPT);
        match &slot {
            Some(Some((own, bounds))) if *own == calendar && bounds.start <= now && now < bounds.end => *bounds,
            _ => {
                let bounds = PeriodBounds::of(calendar, now);
                if let Some(slot) = slot {
                    *slot = Some((calendar, bounds));
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
