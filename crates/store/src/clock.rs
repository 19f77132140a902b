//! The real clock of this process: monotonic for decisions, following the wall clock for dates.
//!
//! [`now`](Clock::now) is for decisions: it starts at the wall time, never steps back, and follows a step of the wall
//! clock only by slewing, half a millisecond per second, so a step neither refills a bucket nor blocks it.
//! [`wall`](Clock::wall) is for dates (`Date`, `reset_at`, expiry of tokens and overrides): it follows the system's
//! clock within [`LOOK_EVERY`], steps included.
//!
//! The system's clock is read a few times a second, by a call of this clock; there is no thread and no timer. All
//! clocks of a process share one [`Timeline`].

mod timeline;

use std::sync::OnceLock;
use std::time::SystemTime;

use tollgate_core::{Clock, Span, Time};

#[cfg(not(target_os = "linux"))]
use self::instant::InstantTicker as Ticker;
use self::timeline::{ClockReading, Timeline};
#[cfg(target_os = "linux")]
use self::vdso::VdsoTicker as Ticker;

/// How often the system's clock is read: the longest time until a step is noticed.
const LOOK_EVERY: Span = Span::from_millis(250);

/// Wall time based on the monotonic clock: it never steps back, and slews towards a wall clock that was set.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    process: &'static Process,
}

/// The clocks of the process, and the relation between them.
#[derive(Debug)]
struct Process {
    ticker: Ticker,
    timeline: Timeline,
}

impl MonotonicClock {
    /// The clock of this process, anchored to the wall time at its first use.
    pub fn new() -> MonotonicClock {
        static PROCESS: OnceLock<Process> = OnceLock::new();
        let process = PROCESS.get_or_init(|| {
            let ticker = Ticker::new();
            Process { ticker, timeline: Timeline::new(look(ticker), LOOK_EVERY) }
        });
        MonotonicClock { process }
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
        let Process { ticker, timeline } = self.process;
        timeline.now(|| ticker.read(), || look(*ticker))
    }

    #[inline]
    fn wall_at(&self, now: Time) -> Time {
        self.process.timeline.wall_at(now)
    }
}

/// Reads all clocks of the system, the wall clock between two reads of the ticker.
#[cold]
fn look(ticker: Ticker) -> ClockReading {
    let before = ticker.read();
    let wall = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let asleep = ticker.asleep();
    let after = ticker.read();
    ClockReading { monotonic: after, spread: after.minus(before), wall: Time::ZERO.after(Span::from(wall)), asleep }
}

/// The monotonic clock through the vDSO, without the checks of `Instant`: a third of its cost, on a path where the
/// clock is a third of the total.
#[cfg(target_os = "linux")]
mod vdso {
    use rustix::time::{ClockId, clock_gettime};
    use tollgate_core::Span;

    #[derive(Clone, Copy, Debug)]
    pub(super) struct VdsoTicker;

    impl VdsoTicker {
        pub(super) fn new() -> VdsoTicker {
            VdsoTicker
        }

        #[inline]
        pub(super) fn read(self) -> Span {
            of(ClockId::Monotonic)
        }

        /// How long the machine has been suspended since boot: time that the monotonic clock does not count.
        pub(super) fn asleep(self) -> Span {
            let running = self.read();
            of(ClockId::Boottime).minus(running)
        }
    }

    #[inline]
    fn of(clock: ClockId) -> Span {
        let now = clock_gettime(clock);
        Span::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64) // both are positive
    }
}

#[cfg(not(target_os = "linux"))]
mod instant {
    use std::time::Instant;

    use tollgate_core::Span;

    #[derive(Clone, Copy, Debug)]
    pub(super) struct InstantTicker(Instant);

    impl InstantTicker {
        #[expect(clippy::disallowed_methods, reason = "the home of the real clock")]
        pub(super) fn new() -> InstantTicker {
            InstantTicker(Instant::now())
        }

        pub(super) fn read(self) -> Span {
            Span::from(self.0.elapsed())
        }

        /// Unknown on this system: a suspend is handled as a step of the wall clock.
        pub(super) fn asleep(self) -> Span {
            Span::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_monotonic_and_follows_the_wall_clock() {
        let clock = MonotonicClock::new();
        let (first, second) = (clock.now(), clock.now());
        let wall = Time::ZERO.after(Span::from(SystemTime::UNIX_EPOCH.elapsed().unwrap()));
        assert!(first <= second);
        assert!(wall.since(second) < Span::from_secs(5) && second.since(wall) < Span::from_secs(5));
        assert!(wall.since(clock.wall()) < Span::SECOND && clock.wall().since(wall) < Span::SECOND);
    }
}
