//! Whether this node itself is slow: how late its own timers fire.
//!
//! A reply that comes too late says that the store is slow, or that this node did not get to read it. A node whose own
//! timers are late cannot tell, so it must not conclude that the store is away: other nodes would go on without it, and
//! every one of them with a share of the limit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tollgate_core::{Span, Time};

/// Between two measurements.
pub(crate) const TICK: Span = Span::from_millis(20);
/// How long a late timer is remembered: about as long as the breaker remembers failures.
const REMEMBERED: Span = Span::SECOND;
/// A timer that is late by this part of the time that a decision may wait for the store explains a late reply: a round
/// trip waits for this node twice, and for the server's own turn between.
const PART: u64 = 5;
const LATE_MIN: Span = Span::from_millis(2);

/// The pace of this node.
#[derive(Debug, Default)]
pub(crate) struct TimerLag {
    measured: AtomicBool,
    /// When the timer that runs should fire, in nanoseconds; zero before the first.
    due: AtomicU64,
    /// Until when the last late timer is remembered.
    behind_until: AtomicU64,
}

impl TimerLag {
    /// True for the first call: that caller has to measure.
    pub(crate) fn begin(&self) -> bool {
        !self.measured.swap(true, Ordering::Relaxed)
    }

    /// True if timers are late, or were a moment ago; `within` is how long a decision may wait for the store.
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
