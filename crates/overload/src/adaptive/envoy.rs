//! Envoy's gradient controller: measures the best time itself, by pinning the limit for a moment.
//!
//! Two phases take turns. While measuring, the limit is the minimum, until fifty requests have shown how fast the
//! upstream answers without a queue. Then each interval compares its median with that time.
//!
//! [`GradientMode::Paced`] is the same without three properties that hurt an upstream of unknown speed (decision 86).

use tollgate_core::{Span, Time};

use super::RttSample;
use crate::chance::between;

/// Requests that make up a measurement of the best time.
const MEASURED: usize = 50;
/// Paced: so many are enough after [`MEASURED_FOR`].
const MEASURED_MIN: usize = 10;
const MEASURED_FOR: Span = Span::SECOND;
/// Most samples of an interval: more do not change its median.
const KEPT_MAX: usize = 1_000;
/// Intervals at the minimum in a row after which the best time is measured at once.
const AT_MIN_MAX: u32 = 5;
/// A dropped request counts as so many times the best time.
const DROPPED_AS: u64 = 4;
/// The pause between measurements varies by this share.
const JITTER: f64 = 0.15;

/// Which controller it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientMode {
    /// Envoy's.
    Published,
    /// The limit grows only while half of it is used: otherwise it floats up while little is asked, and lets a surge in
    /// whole. It is pinned to half of itself, for a second at most if ten requests ended: with a minimum of 3 and
    /// answers that take a second, fifty requests are seventeen seconds. It moves once per round trip: sooner, nothing
    /// shows yet what the last move did.
    Paced,
}

/// Envoy's gradient controller.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvoyGradient {
    /// Which controller it is.
    pub mode: GradientMode,
    /// The smallest limit; as published, the one while the best time is measured.
    pub min: u32,
    /// The largest limit.
    pub max: u32,
    /// How much slower than at its best the upstream may be, as a share.
    pub buffer: f64,
    /// How often the limit is computed.
    pub update_every: Span,
    /// How often the best time is measured.
    pub measure_every: Span,
    limit: u32,
    rtt_min: Span,
    phase: Phase,
    /// Samples of requests that started earlier belong to another phase.
    epoch: Time,
    rtts: Vec<Span>,
    /// The most of this interval.
    in_flight: u32,
    /// Drops of this measurement.
    dropped: usize,
    /// The limit after the measurement.
    deferred: u32,
    at_min: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Measuring,
    Updating { next: Time, measure_at: Time },
}

impl EnvoyGradient {
    /// Starts with a measurement, and after it with a limit of `initial`.
    pub fn new(mode: GradientMode, initial: u32, min: u32, max: u32) -> EnvoyGradient {
        let mut envoy = EnvoyGradient {
            mode,
            min,
            max,
            buffer: 0.25,
            update_every: Span::from_millis(100),
            measure_every: Span::from_secs(60),
            limit: initial,
            rtt_min: Span::ZERO,
            phase: Phase::Measuring,
            epoch: Time::ZERO,
            rtts: Vec::new(),
            in_flight: 0,
            dropped: 0,
            deferred: initial,
            at_min: 0,
        };
        envoy.pin();
        envoy
    }

    /// The limit.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The best time; zero before the first measurement.
    pub fn rtt_min(&self) -> Span {
        self.rtt_min
    }

    /// The gradient and the next limit, for a limit and two times.
    pub fn step(&self, limit: u32, rtt_min: Span, rtt: Span) -> (f64, u32) {
        let best = rtt_min.nanos() as f64;
        let gradient = ((best + best * self.buffer) / (rtt.nanos() as f64).max(1.0)).clamp(0.5, 2.0);
        let next = f64::from(limit) * gradient;
        let next = (next + next.sqrt()) as u32;
        (gradient, next.min(self.max).max(self.min))
    }

    /// Adds a sample of a request that ended now.
    pub fn record(&mut self, now: Time, sample: RttSample, random: u64) {
        if self.epoch == Time::ZERO {
            self.epoch = now.before(sample.rtt);
        }
        if now.before(sample.rtt) >= self.epoch
            && self.rtts.len() < KEPT_MAX
            && let Some(rtt) = self.rtt_of(sample)
        {
            self.rtts.push(rtt);
            self.in_flight = self.in_flight.max(sample.in_flight);
        }
        match self.phase {
            Phase::Measuring if sample.dropped => self.back_off(),
            Phase::Measuring => self.measure(now, random),
            Phase::Updating { next, .. } if now < next => {}
            Phase::Updating { measure_at, .. } => self.update(now, measure_at),
        }
    }

    /// A dropped request counts as a very late one, however fast it was refused; it is no measure of the best time.
    fn rtt_of(&self, sample: RttSample) -> Option<Span> {
        match (sample.dropped, self.phase) {
            (false, _) => Some(sample.rtt),
            (true, Phase::Measuring) => None,
            (true, Phase::Updating { .. }) => {
                let late = Span::from_nanos(self.rtt_min.nanos().saturating_mul(DROPPED_AS));
                Some(sample.rtt.max(late))
            }
        }
    }

    /// Nothing is learned from drops while measuring; an upstream that only fails is asked for less.
    fn back_off(&mut self) {
        self.dropped += 1;
        if self.mode == GradientMode::Paced && self.dropped >= MEASURED_MIN {
            (self.limit, self.dropped) = ((self.limit / 2).max(self.min), 0);
            self.deferred = self.limit;
        }
    }

    fn measure(&mut self, now: Time, random: u64) {
        let is_long = self.mode == GradientMode::Paced && now >= self.epoch.after(MEASURED_FOR);
        if self.rtts.len() < if is_long { MEASURED_MIN } else { MEASURED } {
            return;
        }
        (self.rtt_min, self.limit) = (self.median(), self.deferred);
        let pause = self.measure_every.nanos() as f64 * between(1.0 - JITTER, 1.0 + JITTER, random);
        let measure_at = now.after(Span::from_nanos(pause as u64));
        self.phase = Phase::Updating { next: now.after(self.interval()), measure_at };
        self.start_interval(now);
    }

    fn update(&mut self, now: Time, measure_at: Time) {
        if !self.rtts.is_empty() {
            let rtt = self.median();
            let (_, next) = self.step(self.limit, self.rtt_min, rtt);
            let is_used = u64::from(self.in_flight) * 2 >= u64::from(self.limit);
            if next < self.limit || is_used || self.mode == GradientMode::Published {
                self.limit = next;
            }
        }
        self.at_min = if self.limit <= self.min { self.at_min + 1 } else { 0 };
        if now >= measure_at || self.at_min >= AT_MIN_MAX {
            (self.phase, self.at_min) = (Phase::Measuring, 0);
            self.pin();
        } else {
            self.phase = Phase::Updating { next: now.after(self.interval()), measure_at };
        }
        self.start_interval(now);
    }

    /// The limit of a measurement.
    fn pin(&mut self) {
        self.deferred = self.limit;
        self.limit = match self.mode {
            GradientMode::Published => self.min,
            GradientMode::Paced => (self.limit / 2).max(self.min),
        };
    }

    fn interval(&self) -> Span {
        match self.mode {
            GradientMode::Published => self.update_every,
            GradientMode::Paced => self.update_every.max(self.rtt_min),
        }
    }

    fn start_interval(&mut self, now: Time) {
        if self.phase == Phase::Measuring {
            self.epoch = now;
        }
        self.rtts.clear();
        (self.in_flight, self.dropped) = (0, 0);
    }

    fn median(&mut self) -> Span {
        self.rtts.sort_unstable();
        self.rtts.get(self.rtts.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(envoy: &mut EnvoyGradient, now: &mut Time, count: u32, rtt: Span) {
        for _ in 0..count {
            *now = now.after(Span::from_millis(1));
            envoy.record(*now, RttSample { rtt, in_flight: envoy.limit(), dropped: false }, u64::MAX / 2);
        }
    }

    #[test]
    fn fifty_requests_measure_the_best_time_and_then_the_limit_grows() {
        let (mut envoy, mut now) = (EnvoyGradient::new(GradientMode::Published, 3, 3, 1000), Time::from_secs(1_000));
        run(&mut envoy, &mut now, 49, Span::from_millis(10));
        assert_eq!((envoy.limit(), envoy.rtt_min()), (3, Span::ZERO), "still pinned");
        run(&mut envoy, &mut now, 1, Span::from_millis(10));
        assert_eq!(envoy.rtt_min(), Span::from_millis(10));
        run(&mut envoy, &mut now, 100, Span::from_millis(10));
        assert_eq!(envoy.limit(), 5, "trunc(3 × 1.25 + √3.75)");
    }

    #[test]
    fn the_limit_is_pinned_for_a_measurement_and_comes_back() {
        let (mut envoy, mut now) = (EnvoyGradient::new(GradientMode::Published, 3, 3, 100), Time::from_secs(1_000));
        run(&mut envoy, &mut now, 59_000, Span::from_millis(10));
        assert_eq!(envoy.limit(), 100);
        let mut pinned = 0;
        for _ in 0..2_000 {
            run(&mut envoy, &mut now, 1, Span::from_millis(20));
            pinned += u32::from(envoy.limit() == 3);
        }
        // Requests that started before the pin do not count: twenty milliseconds of them.
        assert!((50..=75).contains(&pinned), "{pinned}");
        assert_eq!((envoy.rtt_min(), envoy.limit() > 50), (Span::from_millis(20), true));
    }

    #[test]
    fn a_limit_that_is_not_used_does_not_grow() {
        for (mode, limit) in [(GradientMode::Paced, 5), (GradientMode::Published, 1000)] {
            let (mut envoy, mut now) = (EnvoyGradient::new(mode, 3, 3, 1000), Time::from_secs(1_000));
            for _ in 0..5_000 {
                now = now.after(Span::from_millis(1));
                envoy.record(now, RttSample { rtt: Span::from_millis(10), in_flight: 2, dropped: false }, 0);
            }
            assert_eq!(envoy.limit(), limit);
        }
    }

    #[test]
    fn paced_measures_at_half_of_the_limit_for_a_second_and_moves_once_per_round_trip() {
        let (mut envoy, mut now) = (EnvoyGradient::new(GradientMode::Paced, 40, 3, 1000), Time::from_secs(1_000));
        assert_eq!(envoy.limit(), 20);
        let mut limits = Vec::new();
        for _ in 0..55 {
            now = now.after(Span::from_millis(100));
            envoy.record(now, RttSample { rtt: Span::SECOND, in_flight: envoy.limit(), dropped: false }, 0);
            limits.push(envoy.limit());
        }
        limits.dedup();
        assert_eq!(limits, [20, 40, 57, 79, 108, 146], "10 requests, then once a second");
    }

    #[test]
    fn an_upstream_that_only_fails_is_asked_for_less_while_it_is_measured() {
        let (mut envoy, mut now) = (EnvoyGradient::new(GradientMode::Paced, 200, 3, 1000), Time::from_secs(1_000));
        for _ in 0..100 {
            now = now.after(Span::from_millis(10));
            let rtt = Span::from_millis(5);
            envoy.record(now, RttSample { rtt, in_flight: envoy.limit(), dropped: true }, 0);
        }
        assert_eq!(envoy.limit(), 3);
        run(&mut envoy, &mut now, 50, Span::from_millis(5));
        assert_eq!((envoy.limit(), envoy.rtt_min()), (3, Span::from_millis(5)), "and grows from there");
    }

    #[test]
    fn a_best_time_that_was_measured_under_load_corrects_itself() {
        let (mut envoy, mut now) = (EnvoyGradient::new(GradientMode::Paced, 40, 1, 1000), Time::from_secs(1_000));
        let mut limits = Vec::new();
        for finished in 0..60_000 {
            now = now.after(Span::from_millis(10)); // one worker: the others wait
            let in_flight = envoy.limit();
            let rtt = Span::from_millis(10 * u64::from(in_flight));
            envoy.record(now, RttSample { rtt, in_flight, dropped: false }, u64::MAX / 2);
            if finished % 12_000 == 11_999 {
                limits.push(envoy.limit());
            }
        }
        assert!(limits.is_sorted_by(|before, after| before >= after), "{limits:?}");
        assert!(limits.last().is_some_and(|limit| *limit <= 5), "{limits:?}");
    }

    #[test]
    fn refusals_and_timeouts_shrink_the_limit() {
        for rtt in [Span::from_millis(1), Span::from_secs(1)] {
            let (mut envoy, mut now) =
                (EnvoyGradient::new(GradientMode::Published, 3, 3, 1000), Time::from_secs(1_000));
            run(&mut envoy, &mut now, 2_000, Span::from_millis(10));
            let before = envoy.limit();
            now = now.after(Span::from_secs(2));
            for _ in 0..350 {
                now = now.after(Span::from_millis(1));
                envoy.record(now, RttSample { rtt, in_flight: envoy.limit(), dropped: true }, 0);
            }
            assert!(envoy.limit() < before / 4, "{before} → {}", envoy.limit());
        }
    }

    #[test]
    fn five_intervals_at_the_minimum_measure_again() {
        let (mut envoy, mut now) = (EnvoyGradient::new(GradientMode::Published, 3, 3, 1000), Time::from_secs(1_000));
        run(&mut envoy, &mut now, 50, Span::from_millis(10));
        run(&mut envoy, &mut now, 700, Span::from_millis(100));
        assert_eq!(envoy.rtt_min(), Span::from_millis(100), "the slower upstream is the new normal");
    }
}
