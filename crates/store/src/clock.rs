//! The real clock of this process: anchored once to the wall, then monotonic.
//!
//! Windows align to the wall and answers speak of it, but a step of the wall clock must not decide anything. So the
//! wall is read once, at start; everything after is the monotonic clock's elapsed time on top.

use std::time::SystemTime;

use tollgate_core::{Clock, Span, Time};

/// Wall time at its making plus monotonic time since. Never steps.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    /// Wall time when the ticker showed zero.
    zero: Time,
    ticker: Ticker,
}

impl MonotonicClock {
    /// A clock anchored to the present wall time.
    pub fn new() -> MonotonicClock {
        let ticker = Ticker::new();
        let wall = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        MonotonicClock { zero: Time::ZERO.after(Span::from(wall)).before(ticker.read()), ticker }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        MonotonicClock::new()
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Time {
        self.zero.after(self.ticker.read())
    }
}

use ticker::Ticker;

/// The monotonic clock by way of the vDSO, without the checks `Instant` puts around it: a third of its price, on a path
/// where the clock is a third of the whole.
#[cfg(target_os = "linux")]
mod ticker {
    use rustix::time::{ClockId, clock_gettime};
    use tollgate_core::Span;

    #[derive(Clone, Copy, Debug)]
    pub(super) struct Ticker;

    impl Ticker {
        pub(super) fn new() -> Ticker {
            Ticker
        }

        #[inline]
        pub(super) fn read(self) -> Span {
            let now = clock_gettime(ClockId::Monotonic);
            Span::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64) // both are positive
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod ticker {
    use std::time::Instant;

    use tollgate_core::Span;

    #[derive(Clone, Copy, Debug)]
    pub(super) struct Ticker(Instant);

    impl Ticker {
        #[expect(clippy::disallowed_methods, reason = "the home of the real clock")]
        pub(super) fn new() -> Ticker {
            Ticker(Instant::now())
        }

        pub(super) fn read(self) -> Span {
            Span::from(self.0.elapsed())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_forward_and_stays_with_the_wall() {
        let clock = MonotonicClock::new();
        let (first, second) = (clock.now(), clock.now());
        let wall = Time::ZERO.after(Span::from(SystemTime::UNIX_EPOCH.elapsed().unwrap()));
        assert!(first <= second);
        assert!(wall.since(second) < Span::from_secs(5) && second.since(wall) < Span::from_secs(5));
    }
}
