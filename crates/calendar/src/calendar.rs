//! Which period an instant belongs to.

use tollgate_core::{Span, Time};

use crate::anchor::Anchor;
use crate::boundary::Boundaries;
use crate::every::Every;
use crate::period::Period;
use crate::zone::TimeZone;

/// When a quota starts anew: how often, from where on, by the clocks of which zone. Six bytes.
///
/// Every instant belongs to exactly one period, and the end of a period is the start of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Calendar {
    anchor: Anchor,
    zone: TimeZone,
}

impl Calendar {
    /// One period that never ends.
    pub const NEVER: Calendar = Calendar { anchor: Anchor::NEVER, zone: TimeZone::UTC };

    /// Periods that start where the anchor says, by the clocks of the zone.
    pub const fn new(anchor: Anchor, zone: TimeZone) -> Calendar {
        Calendar { anchor, zone }
    }

    /// How often the quota starts anew.
    pub const fn every(self) -> Every {
        self.anchor.every()
    }

    /// Where in the day, week, month or year.
    pub const fn anchor(self) -> Anchor {
        self.anchor
    }

    /// By the clocks of which zone.
    pub const fn zone(self) -> TimeZone {
        self.zone
    }

    /// A number that differs between most calendars, for tables of them.
    pub(crate) fn mixed(self) -> usize {
        let packed = u64::from(self.anchor.0.packed()) << 16 | u64::from(self.zone.number());
        (packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }

    /// The period that `now` is in.
    pub fn period_at(self, now: Time) -> Period {
        let Some(boundaries) = Boundaries::of(self.anchor.0) else { return Period::FOREVER };
        let instant = i64::try_from(now.nanos() / Span::SECOND.nanos()).unwrap_or(i64::MAX);
        let mut start_local = boundaries.last(instant + self.zone.offset_at(instant));
        let mut start = self.zone.first_instant(start_local);
        // The clocks went forward over the start and then back, or the local date is that of an earlier pass.
        while start > instant {
            start_local = boundaries.before(start_local);
            start = self.zone.first_instant(start_local);
        }
        // A period can be empty, where a zone skipped a day, or begun although the clocks show the day before again.
        loop {
            start_local = boundaries.after(start_local);
            let end = self.zone.first_instant(start_local);
            if end > instant {
                return Period::from_secs(start, end);
            }
            start = end;
        }
    }

    /// The period that starts at the end of this one. `None` if it has no end.
    pub fn period_after(self, period: Period) -> Option<Period> {
        period.end().map(|end| self.period_at(end))
    }

    /// The period that ends at the start of this one. `None` for the first, which starts at the epoch.
    pub fn period_before(self, period: Period) -> Option<Period> {
        let before = period.start().before(Span::from_nanos(1));
        (before < period.start()).then(|| self.period_at(before))
    }
}
