//! What becomes of usage when the period changes, by the passing of time or because the calendar was changed.
//!
//! A bucket records the period that its usage was counted in. A change of the zone or the anchor, or a new release of
//! the time zone database, moves the periods of the calendar under it. Usage must neither vanish, or a change would be a
//! free refill, nor count for ever. So the recorded period, while it lasts, is relabelled: its usage counts as usage of
//! the calendar's current period, and ends with that. Recording the start alone would not do: after a change of the
//! anchor from 1 to 17 on the 20th, the recorded start lies before the current period's, as it does when a period has
//! ended.
//!
//! The consequences, for a change at some instant:
//! - Usage does not start anew at that instant.
//! - It starts anew at the end of the new calendar's current period, and from then on at the ends of its periods. One
//!   period may thus be shorter or longer than others, and at most one start per change comes early.
//! - If no request came between the change and the end of the recorded period, usage starts anew at that end, as it was
//!   told, and again at the end of the new calendar's period.
//!
//! A change of the amount does not change periods: usage stays, and what is left is the new amount without it.

use tollgate_core::Time;

use crate::period::Period;

/// What to do with recorded usage, and the period to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageCarry {
    /// The usage still counts, in this period. If it is not the one recorded, record it with this request, also if the
    /// request is refused: answers name its end.
    Keep(Period),
    /// The recorded period is over: usage starts anew in this period.
    StartAnew(Period),
}

impl UsageCarry {
    /// What becomes at `now` of usage recorded in the period `recorded`, by a calendar whose period at `now` is
    /// `current`.
    ///
    /// A recorded period that lies in the future is kept: the clock that recorded it was ahead of this one, and usage
    /// must not start anew twice at one boundary.
    pub fn of(recorded: Period, current: Period, now: Time) -> UsageCarry {
        if now < recorded.start() {
            UsageCarry::Keep(recorded)
        } else if recorded.contains(now) {
            UsageCarry::Keep(current)
        } else {
            UsageCarry::StartAnew(current)
        }
    }

    /// The period to record.
    pub fn period(self) -> Period {
        match self {
            UsageCarry::Keep(period) | UsageCarry::StartAnew(period) => period,
        }
    }
}
