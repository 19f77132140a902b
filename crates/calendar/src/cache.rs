//! The period that was computed last, for callers that ask again and again.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Time;

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
