//! Slowing down before a limit is reached.
//!
//! A caller that runs into a limit is stopped for the rest of the window, and all its work at once. A courteous one
//! spreads what is left over the time that is left: below a share of the limit, the pause before each call is the time
//! until the reset, divided by the calls that remain.

use http::HeaderMap;
use parking_lot::Mutex;
use tollgate_core::{Clock, Span, Time};

/// Pauses between calls, by what the last response said.
#[derive(Debug)]
pub struct Courtesy {
    /// The share of the limit, in percent, below which calls are slowed down.
    below_percent: u64,
    /// The longest pause.
    pause_max: Span,
    state: Mutex<CourtesyState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CourtesyState {
    limit: u64,
    remaining: u64,
    reset: Time,
    /// When the next call may start.
    next: Time,
}

impl Default for Courtesy {
    /// Below a tenth of the limit, pauses of at most five seconds.
    fn default() -> Courtesy {
        Courtesy::new(10, Span::from_secs(5))
    }
}

impl Courtesy {
    /// Slows down below `below_percent` of the limit, by at most `pause_max` for one call.
    pub fn new(below_percent: u64, pause_max: Span) -> Courtesy {
        Courtesy { below_percent, pause_max, state: Mutex::default() }
    }

    /// What a response said: the limit, what is left of it, and how long until there is more.
    pub fn observe(&self, limit: u64, remaining: u64, reset_after: Span, now: Time) {
        let mut state = self.state.lock();
        (state.limit, state.remaining, state.reset) = (limit, remaining, now.after(reset_after));
    }

    /// The same from header fields (`X-RateLimit-Limit`, `-Remaining`, `-Reset`; or those without `X-`). Responses without
    /// them change nothing.
    pub fn observe_fields(&self, fields: &HeaderMap, clock: &dyn Clock) {
        let now = clock.now();
        let number = |names: [&str; 2]| {
            let value = names.iter().find_map(|name| fields.get(*name))?;
            value.to_str().ok()?.trim().parse::<u64>().ok()
        };
        let limit = number(["x-ratelimit-limit", "ratelimit-limit"]);
        let remaining = number(["x-ratelimit-remaining", "ratelimit-remaining"]);
        let reset = number(["x-ratelimit-reset", "ratelimit-reset"]);
        if let (Some(limit), Some(remaining), Some(reset)) = (limit, remaining, reset) {
            const EPOCH_SECONDS_MIN: u64 = 1_000_000_000;
            let after = match reset {
                ..EPOCH_SECONDS_MIN => Span::from_secs(reset),
                _ => Time::from_secs(reset).since(clock.wall_at(now)),
            };
            self.observe(limit, remaining, after, now);
        }
    }

    /// How long the next call should wait, and takes its place: calls that ask at the same time are spread too.
    pub fn delay(&self, now: Time) -> Span {
        let mut state = self.state.lock();
        let is_low = u128::from(state.remaining) * 100 < u128::from(state.limit) * u128::from(self.below_percent);
        if !is_low || state.reset <= now {
            state.next = now;
            return Span::ZERO;
        }
        let gap = Span::from_nanos(state.reset.since(now).nanos() / (state.remaining + 1));
        let start = state.next.max(now).after(gap.min(self.pause_max));
        // A queue of callers that wait longer than the reset takes is no courtesy: then the new window decides.
        let start = start.min(state.reset).min(now.after(self.pause_max));
        state.next = start;
        state.remaining = state.remaining.saturating_sub(1);
        start.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_800_000_000);

    #[test]
    fn calls_are_slowed_down_as_the_limit_comes_closer() {
        let courtesy = Courtesy::default();
        assert_eq!(courtesy.delay(NOW), Span::ZERO, "nothing is known");
        courtesy.observe(100, 10, Span::from_secs(10), NOW);
        assert_eq!(courtesy.delay(NOW), Span::ZERO, "a tenth is left");
        courtesy.observe(100, 9, Span::from_secs(10), NOW);
        assert_eq!(courtesy.delay(NOW), Span::SECOND);
        courtesy.observe(100, 1, Span::from_secs(8), NOW);
        assert_eq!(Courtesy::default().delay(NOW), Span::ZERO);
        assert!(courtesy.delay(NOW) > Span::SECOND);
        assert_eq!(courtesy.delay(NOW.after(Span::from_secs(8))), Span::ZERO, "the reset has passed");
    }

    #[test]
    fn callers_at_the_same_time_are_spread_and_bounded() {
        let courtesy = Courtesy::new(50, Span::from_secs(5));
        courtesy.observe(10, 3, Span::from_secs(4), NOW);
        let pauses: Vec<Span> = (0..6).map(|_| courtesy.delay(NOW)).collect();
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]), "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= Span::from_secs(4)), "{pauses:?}");
        courtesy.observe(u64::MAX, 0, Span::from_nanos(u64::MAX), NOW);
        assert!(courtesy.delay(NOW) <= Span::from_secs(5));
    }

    #[test]
    fn fields_are_read_as_seconds_or_dates() {
        let clock = tollgate_core::ManualClock::at(NOW);
        let mut fields = HeaderMap::new();
        for (name, value) in [("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "4"), ("x-ratelimit-reset", "10")]
        {
            fields.insert(name, value.parse().unwrap());
        }
        let courtesy = Courtesy::default();
        courtesy.observe_fields(&fields, &clock);
        assert_eq!(courtesy.delay(NOW), Span::from_secs(2));
        fields.insert("x-ratelimit-reset", "1800000005".parse().unwrap());
        let courtesy = Courtesy::default();
        courtesy.observe_fields(&fields, &clock);
        assert_eq!(courtesy.delay(NOW), Span::SECOND);
    }
}
