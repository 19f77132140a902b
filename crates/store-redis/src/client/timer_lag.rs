//! Whether this node itself is slow: how late its timers fire.
//!
//! A late reply means that the store is slow, or that this node did not read the reply in time. A node whose own timers
//! are late cannot distinguish the two and must not conclude that the store is down: it would decide by its share of
//! the limit while the other nodes still use the whole limit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tollgate_core::{Span, Time};

/// Interval between measurements.
pub(crate) const TICK: Span = Span::from_millis(20);
/// How long a late timer is remembered: about as long as the breaker remembers failures.
const REMEMBERED: Span = Span::SECOND;
/// A timer that is late by this fraction of the store timeout explains a late reply: a round trip waits twice for this
/// node, and once for the server.
const PART: u64 = 5;
const LATE_MIN: Span = Span::from_millis(2);

/// The lag of this node's timers.
#[derive(Debug, Default)]
pub(crate) struct TimerLag {
    measured: AtomicBool,
    /// When the running timer is due, in nanoseconds; zero before the first.
    due: AtomicU64,
    /// Until when the last late timer is remembered.
    behind_until: AtomicU64,
}

impl TimerLag {
    /// True for the first caller, which must start the measurement.
    pub(crate) fn begin(&self) -> bool {
        !self.measured.swap(true, Ordering::Relaxed)
    }

    /// True if timers are late, or were within the last second; `within` is the store timeout.
    pub(crate) fn is_behind(&self, now: Time, within: Span) -> bool {
        let due = Time::from_nanos(self.due.load(Ordering::Relaxed));
        let overdue = due > Time::ZERO && now.since(due) >= late(within);
        overdue || now.nanos() < self.behind_until.load(Ordering::Relaxed)
    }

    pub(crate) fn expect(&self, due: Time) {
        self.due.store(due.nanos(), Ordering::Relaxed);
    }

    pub(crate) fn fired(&self, now: Time, within: Span) {
        let due = Time::from_nanos(self.due.load(Ordering::Relaxed));
        if now.since(due) >= late(within) {
            self.behind_until.store(now.after(REMEMBERED).nanos(), Ordering::Relaxed);
        }
    }
}

fn late(within: Span) -> Span {
    Span::from_nanos(within.nanos() / PART).max(LATE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Span = Span::from_millis(25);

    #[test]
    fn a_late_timer_is_noticed_while_it_is_late_and_remembered_for_a_second() {
        let (lag, start) = (TimerLag::default(), Time::from_secs(1_800_000_000));
        let after = |millis| start.after(Span::from_millis(millis));
        assert!(!lag.is_behind(start, WITHIN), "nothing is known yet");
        lag.expect(after(20));
        assert!(!lag.is_behind(after(24), WITHIN) && lag.is_behind(after(25), WITHIN));
        lag.fired(after(24), WITHIN);
        lag.expect(after(44));
        assert!(!lag.is_behind(after(26), WITHIN), "a millisecond or four are nothing");
        lag.fired(after(60), WITHIN);
        lag.expect(after(2000));
        assert!(lag.is_behind(after(1059), WITHIN) && !lag.is_behind(after(1060), WITHIN));
    }
}
