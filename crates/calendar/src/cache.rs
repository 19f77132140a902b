//! The period that was computed last, for callers that ask again and again.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Quota, Time};

use crate::calendar::Calendar;
use crate::period::Period;

/// The last period of one calendar at a time, for one owner. Twenty-four bytes.
///
/// It answers while the calendar is the same and the time is in the period: never with an old period, also after the
/// clock was set back.
#[derive(Clone, Copy, Debug)]
pub struct PeriodCache {
    calendar: Calendar,
    period: Period,
}

impl PeriodCache {
    /// The period of `calendar` at `now`, for later calls.
    pub fn new(calendar: Calendar, now: Time) -> PeriodCache {
        PeriodCache { calendar, period: calendar.period_at(now) }
    }

    /// The period of `calendar` at `now`; computed only if it is not the one of the last call.
    #[inline]
    pub fn period_at(&mut self, calendar: Calendar, now: Time) -> Period {
        if self.calendar != calendar || !self.period.contains(now) {
            *self = PeriodCache::new(calendar, now);
        }
        self.period
    }
}

/// The last period of one calendar, for all threads: a calendar beside a number that is read and replaced whole. A rule
/// that is shared and immutable can keep it.
#[derive(Debug)]
pub struct SharedPeriodCache {
    calendar: Calendar,
    bits: AtomicU64,
}

impl SharedPeriodCache {
    /// A cache with the period of the epoch: the first call of any other time computes.
    pub fn new(calendar: Calendar) -> SharedPeriodCache {
        SharedPeriodCache { calendar, bits: AtomicU64::new(calendar.period_at(Time::ZERO).to_bits()) }
    }

    /// The calendar whose periods these are.
    pub fn calendar(&self) -> Calendar {
        self.calendar
    }

    /// The period at `now`; computed only if it is not the one of the last call.
    #[inline]
    pub fn period_at(&self, now: Time) -> Period {
        // Relaxed: the number is complete in itself, and any that contains `now` is right.
        let cached = Period::from_bits(self.bits.load(Ordering::Relaxed));
        if cached.contains(now) {
            return cached;
        }
        let period = self.calendar.period_at(now);
        self.bits.store(period.to_bits(), Ordering::Relaxed);
        period
    }
}

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
