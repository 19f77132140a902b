//! An adaptive limit that threads share: permits that release their slot however the request ends.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tollgate_core::{Clock, Time};

use crate::adaptive::{AdaptiveConfig, AdaptiveLimit, RttSample};
use crate::chance::mix;

/// Hands out permits, never more than the limit. Clones share it.
///
/// One short mutex: a permit costs two locks of a few dozen instructions, and a limit that is read and counted under one
/// lock cannot be exceeded by a race.
#[derive(Clone)]
pub struct ConcurrencyLimiter {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    limit: AdaptiveLimit,
    in_flight: u32,
    random: u64,
}

impl ConcurrencyLimiter {
    /// A limiter without requests in flight; `seed` spreads what algorithms do now and then.
    pub fn new(config: AdaptiveConfig, clock: Arc<dyn Clock>, seed: u64) -> ConcurrencyLimiter {
        let state = State { limit: AdaptiveLimit::new(config), in_flight: 0, random: seed };
        ConcurrencyLimiter { shared: Arc::new(Shared { clock, state: Mutex::new(state) }) }
    }

    /// A permit, if fewer requests than the limit are in flight.
    pub fn try_acquire(&self) -> Option<LimiterPermit> {
        self.try_acquire_below(0)
    }

    /// A permit, if there would still be one after it for each of `percent` of the limit, rounded up; so much is left
    /// to others. At least one slot is for everyone.
    pub fn try_acquire_below(&self, reserved_percent: u32) -> Option<LimiterPermit> {
        self.try_acquire_at(self.now(), reserved_percent)
    }

    /// The same, for a request that starts now.
    pub(crate) fn try_acquire_at(&self, started: Time, reserved_percent: u32) -> Option<LimiterPermit> {
        let mut state = self.shared.state.lock();
        if state.in_flight >= usable(state.limit.limit(), reserved_percent) {
            return None;
        }
        state.in_flight += 1;
        let in_flight = state.in_flight;
        drop(state);
        Some(LimiterPermit { shared: self.shared.clone(), started, in_flight, result: Some(false) })
    }

    /// How many requests may be in flight.
    pub fn limit(&self) -> u32 {
        self.shared.state.lock().limit.limit()
    }

    /// How many requests are in flight. More than the limit after it shrank: none is taken back.
    pub fn in_flight(&self) -> u32 {
        self.shared.state.lock().in_flight
    }

    /// Whether all slots are taken.
    pub fn is_full(&self) -> bool {
        let state = self.shared.state.lock();
        state.in_flight >= state.limit.limit()
    }

    /// The clock that times requests.
    pub(crate) fn now(&self) -> Time {
        self.shared.clock.now()
    }
}

/// The slots for callers without a reserve: at least one.
fn usable(limit: u32, reserved_percent: u32) -> u32 {
    let reserved = (u64::from(limit) * u64::from(reserved_percent.min(100))).div_ceil(100);
    limit.saturating_sub(u32::try_from(reserved).unwrap_or(limit)).max(1)
}

impl fmt::Debug for ConcurrencyLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("ConcurrencyLimiter").field("limit", &state.limit).field("in_flight", &state.in_flight).finish()
    }
}

/// One request in flight. Dropping it frees the slot and records a sample.
#[must_use]
pub struct LimiterPermit {
    shared: Arc<Shared>,
    started: Time,
    in_flight: u32,
    /// Whether the request was dropped; `None` if there is no sample to record.
    result: Option<bool>,
}

impl LimiterPermit {
    /// When the permit was given.
    pub fn started(&self) -> Time {
        self.started
    }

    /// The upstream refused the request for load, or did not answer in time.
    pub fn mark_dropped(&mut self) {
        if self.result.is_some() {
            self.result = Some(true);
        }
    }

    /// The end of this request says nothing about the upstream: the caller hung up, or no connection was open.
    pub fn ignore(&mut self) {
        self.result = None;
    }

    /// Records the sample now and keeps the slot: the head of the response is there, and its body may stream for hours.
    pub fn record_now(&mut self) {
        let result = self.result.take();
        self.shared.end(result.map(|dropped| (self.started, self.in_flight, dropped)), false);
    }
}

impl Drop for LimiterPermit {
    fn drop(&mut self) {
        self.shared.end(self.result.map(|dropped| (self.started, self.in_flight, dropped)), true);
    }
}

impl Shared {
    /// Records a sample, and frees the slot.
    fn end(&self, sample: Option<(Time, u32, bool)>, frees: bool) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        if frees {
            state.in_flight = state.in_flight.saturating_sub(1);
        }
        let Some((started, in_flight, dropped)) = sample else { return };
        state.random = mix(state.random);
        let random = state.random;
        state.limit.record(now, RttSample { rtt: now.since(started), in_flight, dropped }, random);
    }
}

impl fmt::Debug for LimiterPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimiterPermit").field("started", &self.started).field("result", &self.result).finish()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{ManualClock, Span};

    use super::*;
    use crate::adaptive::AdaptiveAlgorithm;

    fn limiter(config: AdaptiveConfig) -> (ConcurrencyLimiter, ManualClock) {
        let clock = ManualClock::at(Time::from_secs(100));
        (ConcurrencyLimiter::new(config, Arc::new(clock.clone()), 1), clock)
    }

    #[test]
    fn never_more_than_the_limit() {
        let (limiter, _) = limiter(AdaptiveConfig::fixed(2));
        let first = limiter.try_acquire().unwrap();
        let _second = limiter.try_acquire().unwrap();
        assert!(limiter.try_acquire().is_none() && limiter.is_full());
        drop(first);
        assert_eq!(limiter.in_flight(), 1);
        let _third = limiter.try_acquire().unwrap();
    }

    #[test]
    fn a_reserve_is_left_to_others() {
        let (limiter, _) = limiter(AdaptiveConfig::fixed(5));
        let held: Vec<_> = std::iter::from_fn(|| limiter.try_acquire_below(20)).collect();
        assert_eq!(held.len(), 4);
        assert!(limiter.try_acquire().is_some());
        assert_eq!([usable(3, 20), usable(1, 20), usable(100, 100), usable(u32::MAX, 0)], [2, 1, 1, u32::MAX]);
    }

    #[test]
    fn a_drop_shrinks_the_limit_once() {
        let config = AdaptiveConfig { initial: 100, min: 10, ..AdaptiveConfig::of(AdaptiveAlgorithm::Aimd) };
        let (limiter, clock) = limiter(config);
        let mut permit = limiter.try_acquire().unwrap();
        permit.mark_dropped();
        permit.record_now();
        assert_eq!((limiter.limit(), limiter.in_flight()), (90, 1));
        clock.advance(Span::from_secs(60));
        permit.mark_dropped();
        drop(permit);
        assert_eq!((limiter.limit(), limiter.in_flight()), (90, 0), "one sample per request");
    }

    #[test]
    fn a_request_that_says_nothing_records_nothing() {
        let config = AdaptiveConfig { initial: 100, min: 10, ..AdaptiveConfig::of(AdaptiveAlgorithm::Aimd) };
        let (limiter, clock) = limiter(config);
        let mut permit = limiter.try_acquire().unwrap();
        permit.ignore();
        clock.advance(Span::from_secs(60));
        drop(permit);
        assert_eq!(limiter.limit(), 100);
        let permit = limiter.try_acquire().unwrap();
        clock.advance(Span::from_secs(60));
        drop(permit);
        assert_eq!(limiter.limit(), 90, "slower than the timeout");
    }
}
