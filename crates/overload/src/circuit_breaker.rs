//! A circuit breaker per upstream: stops sending when calls fail, tries again now and then.
//!
//! Closed: all calls pass; failures in a row, or a share of recent calls, open it. Open: none passes, for a time that
//! doubles with each opening and varies, so that gateways do not return in step. Half-open: one probe at a time; enough
//! successes close it, one failure opens it again. A probe without a result does not block the next for ever.

use tollgate_core::{Span, Time};

use crate::chance::below;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Failures in a row that open it.
    pub failures: u32,
    /// The share of failed calls within the window that opens it, in percent.
    pub percent: u32,
    /// Fewest calls in the window for that share to count.
    pub calls_min: u32,
    /// The time over which that share is taken.
    pub window: Span,
    /// How long it is open the first time; up to half as long again, at random.
    pub open: Span,
    /// The longest time.
    pub open_max: Span,
    /// Probes in a row that must succeed.
    pub probes: u32,
}

impl Default for BreakerConfig {
    fn default() -> BreakerConfig {
        BreakerConfig {
            failures: 10,
            percent: 50,
            calls_min: 20,
            window: Span::from_secs(10),
            open: Span::SECOND,
            open_max: Span::from_secs(30),
            probes: 3,
        }
    }
}

/// What passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerPhase {
    /// All calls.
    Closed,
    /// One probe at a time.
    HalfOpen,
    /// Nothing.
    Open,
}

/// A call that passed; its result is reported with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct BreakerPass {
    /// The results of calls that passed in an earlier state do not count.
    generation: u64,
}

/// The breaker of one upstream.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    config: BreakerConfig,
    state: State,
    generation: u64,
    /// Openings since the last calm time.
    openings: u32,
    in_a_row: u32,
    current: Counts,
    previous: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Closed { since: Time },
    Open { until: Time },
    HalfOpen { good: u32, probing_until: Option<Time> },
}

/// The calls of one window.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    number: u64,
    calls: u32,
    failed: u32,
}

impl CircuitBreaker {
    /// A closed breaker.
    pub fn new(config: BreakerConfig, now: Time) -> CircuitBreaker {
        CircuitBreaker {
            config,
            state: State::Closed { since: now },
            generation: 0,
            openings: 0,
            in_a_row: 0,
            current: Counts::default(),
            previous: Counts::default(),
        }
    }

    /// What passes now.
    pub fn phase(&self, now: Time) -> BreakerPhase {
        match self.state {
            State::Closed { .. } => BreakerPhase::Closed,
            State::Open { until } if now < until => BreakerPhase::Open,
            State::Open { .. } | State::HalfOpen { .. } => BreakerPhase::HalfOpen,
        }
    }

    /// Whether a call may be sent. Report how it ended.
    pub fn try_pass(&mut self, now: Time) -> Option<BreakerPass> {
        match self.state {
            State::Closed { .. } => {}
            State::Open { until } if now < until => return None,
            State::Open { .. } => self.probe(now, 0),
            State::HalfOpen { probing_until: Some(until), .. } if now < until => return None,
            State::HalfOpen { good, .. } => self.probe(now, good),
        }
        Some(BreakerPass { generation: self.generation })
    }

    /// A call was answered: any answer that does not blame the upstream.
    pub fn succeeded(&mut self, pass: BreakerPass, now: Time) {
        if pass.generation != self.generation {
            return;
        }
        self.in_a_row = 0;
        match self.state {
            State::HalfOpen { good, .. } if good + 1 >= self.config.probes => {
                self.enter(State::Closed { since: now });
            }
            State::HalfOpen { good, .. } => self.enter(State::HalfOpen { good: good + 1, probing_until: None }),
            State::Closed { .. } | State::Open { .. } => self.count(now, false),
        }
    }

    /// A call failed. True if that opened the breaker.
    pub fn failed(&mut self, pass: BreakerPass, now: Time, random: u64) -> bool {
        if pass.generation != self.generation {
            return false;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.count(now, true);
        let opens = match self.state {
            State::Closed { .. } => self.in_a_row >= self.config.failures || self.too_many_failed(),
            State::HalfOpen { .. } => true,
            State::Open { .. } => false,
        };
        if opens {
            self.open(now, random);
        }
        opens
    }

    /// A call ended without a result: its caller hung up. The next probe may be sent.
    pub fn abandoned(&mut self, pass: BreakerPass) {
        if let State::HalfOpen { good, .. } = self.state
            && pass.generation == self.generation
        {
            self.enter(State::HalfOpen { good, probing_until: None });
        }
    }

    fn probe(&mut self, now: Time, good: u32) {
        self.enter(State::HalfOpen { good, probing_until: Some(now.after(self.config.open_max)) });
    }

    fn open(&mut self, now: Time, random: u64) {
        if let State::Closed { since } = self.state
            && now.since(since) >= self.config.open_max
        {
            self.openings = 0;
        }
        let doubled = 1u64.checked_shl(self.openings).unwrap_or(u64::MAX);
        let open = Span::from_nanos(self.config.open.nanos().saturating_mul(doubled)).min(self.config.open_max);
        let jitter = Span::from_nanos(below(open.nanos() / 2 + 1, random));
        self.openings = (self.openings + 1).min(63);
        self.enter(State::Open { until: now.after(open).after(jitter) });
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.generation += 1;
        self.in_a_row = 0;
        (self.current, self.previous) = (Counts::default(), Counts::default());
    }

    fn count(&mut self, now: Time, failed: bool) {
        let number = now.nanos() / (self.config.window.nanos() / 2).max(1);
        if number != self.current.number {
            let is_next = number == self.current.number + 1;
            self.previous = if is_next { self.current } else { Counts::default() };
            self.current = Counts { number, ..Counts::default() };
        }
        self.current.calls = self.current.calls.saturating_add(1);
        self.current.failed = self.current.failed.saturating_add(u32::from(failed));
    }

    fn too_many_failed(&self) -> bool {
        let calls = u64::from(self.current.calls) + u64::from(self.previous.calls);
        let failed = u64::from(self.current.failed) + u64::from(self.previous.failed);
        calls >= u64::from(self.config.calls_min.max(1)) && failed * 100 >= calls * u64::from(self.config.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_secs(1_000);

    fn breaker() -> CircuitBreaker {
        CircuitBreaker::new(BreakerConfig::default(), START)
    }

    fn fail(breaker: &mut CircuitBreaker, now: Time) -> bool {
        let pass = breaker.try_pass(now).expect("passes");
        breaker.failed(pass, now, 0)
    }

    fn fail_ten_times(breaker: &mut CircuitBreaker) {
        for _ in 0..10 {
            fail(breaker, START);
        }
    }

    fn succeed(breaker: &mut CircuitBreaker, now: Time) {
        let pass = breaker.try_pass(now).expect("passes");
        breaker.succeeded(pass, now);
    }

    #[test]
    fn failures_in_a_row_open_it() {
        let mut breaker = breaker();
        for _ in 0..9 {
            assert!(!fail(&mut breaker, START));
        }
        succeed(&mut breaker, START);
        for _ in 0..9 {
            assert!(!fail(&mut breaker, START));
        }
        assert!(fail(&mut breaker, START));
        assert_eq!((breaker.phase(START), breaker.try_pass(START)), (BreakerPhase::Open, None));
    }

    #[test]
    fn half_of_twenty_recent_calls_open_it() {
        let mut breaker = breaker();
        for _ in 0..9 {
            succeed(&mut breaker, START);
            assert!(!fail(&mut breaker, START));
        }
        let much_later = START.after(Span::from_secs(60));
        succeed(&mut breaker, much_later);
        assert!(!fail(&mut breaker, much_later), "earlier failures are forgotten");
        for _ in 0..8 {
            succeed(&mut breaker, much_later);
            assert!(!fail(&mut breaker, much_later));
        }
        succeed(&mut breaker, much_later);
        assert!(fail(&mut breaker, much_later));
    }

    #[test]
    fn one_probe_at_a_time_and_three_successes_close_it() {
        let mut breaker = breaker();
        fail_ten_times(&mut breaker);
        let later = START.after(Span::SECOND);
        assert_eq!(breaker.phase(later), BreakerPhase::HalfOpen);
        for _ in 0..3 {
            let probe = breaker.try_pass(later).unwrap();
            assert_eq!(breaker.try_pass(later), None, "one at a time");
            breaker.succeeded(probe, later);
        }
        assert_eq!(breaker.phase(later), BreakerPhase::Closed);
    }

    #[test]
    fn a_failed_probe_opens_it_for_twice_as_long_up_to_a_bound() {
        let mut breaker = breaker();
        fail_ten_times(&mut breaker);
        let (mut now, mut spans) = (START, Vec::new());
        for _ in 0..7 {
            let opened = now;
            while breaker.phase(now) == BreakerPhase::Open {
                now = now.after(Span::from_millis(500));
            }
            spans.push(now.since(opened).secs_ceil());
            assert!(fail(&mut breaker, now));
        }
        assert_eq!(spans, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn jitter_only_adds() {
        for random in [0, u64::MAX / 3, u64::MAX] {
            let mut breaker = breaker();
            for _ in 0..10 {
                let pass = breaker.try_pass(START).unwrap();
                breaker.failed(pass, START, random);
            }
            assert_eq!(breaker.phase(START.after(Span::from_millis(999))), BreakerPhase::Open);
            assert_eq!(breaker.phase(START.after(Span::from_millis(1501))), BreakerPhase::HalfOpen);
        }
    }

    #[test]
    fn results_of_another_state_do_not_count() {
        let mut breaker = breaker();
        let old = breaker.try_pass(START).unwrap();
        fail_ten_times(&mut breaker);
        let later = START.after(Span::from_secs(2));
        let probe = breaker.try_pass(later).unwrap();
        assert!(!breaker.failed(old, later, 0), "it began before the breaker opened");
        breaker.succeeded(probe, later);
        assert_eq!(breaker.phase(later), BreakerPhase::HalfOpen);
    }

    #[test]
    fn a_lost_probe_does_not_block_for_ever() {
        let mut breaker = breaker();
        fail_ten_times(&mut breaker);
        let later = START.after(Span::from_secs(2));
        let probe = breaker.try_pass(later).unwrap();
        breaker.abandoned(probe);
        let lost = breaker.try_pass(later).unwrap();
        assert_eq!(breaker.try_pass(later), None);
        let much_later = later.after(Span::from_secs(30));
        assert!(breaker.try_pass(much_later).is_some_and(|pass| pass != lost));
    }
}
