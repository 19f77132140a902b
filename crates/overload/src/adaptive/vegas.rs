//! Vegas: estimates the queue at the upstream from how much slower it answers than at its best.

use tollgate_core::Span;

use super::RttSample;
use crate::chance::between;

/// Requests per unit of the estimate between two renewals of the best time.
const PROBE_EVERY: f64 = 30.0;

/// Vegas, as TCP's congestion control of that name.
#[derive(Clone, Debug, PartialEq)]
pub struct Vegas {
    /// The largest limit.
    pub max: u32,
    /// The smallest limit.
    pub min: u32,
    /// The share of a new estimate in the next one; 1 takes it as it is.
    pub smoothing: f64,
    /// Whether the best time is renewed now and then, so that an upstream that became slower for good is noticed.
    pub probe: bool,
    estimate: f64,
    rtt_noload: Span,
    samples: u64,
    probe_at: u64,
}

impl Vegas {
    /// Starts with a limit of `initial`.
    pub fn new(initial: u32, min: u32, max: u32) -> Vegas {
        Vegas {
            max,
            min,
            smoothing: 1.0,
            probe: true,
            estimate: f64::from(initial),
            rtt_noload: Span::ZERO,
            samples: 0,
            probe_at: 0,
        }
    }

    /// The limit.
    pub fn limit(&self) -> u32 {
        self.estimate as u32
    }

    /// The limit before it is truncated.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// The best time seen: that of an upstream without load.
    pub fn rtt_noload(&self) -> Span {
        self.rtt_noload
    }

    /// Adds a sample; `random` spreads the renewals.
    pub fn record(&mut self, sample: RttSample, random: u64) {
        self.samples += 1;
        let first = self.rtt_noload.is_zero();
        if first || self.is_probe_due(random) || sample.rtt < self.rtt_noload {
            self.rtt_noload = sample.rtt;
            return;
        }
        if let Some(next) = self.next(sample) {
            let next = next.min(f64::from(self.max)).max(f64::from(self.min.max(1)));
            self.estimate = (1.0 - self.smoothing) * self.estimate + self.smoothing * next;
        }
    }

    fn is_probe_due(&mut self, random: u64) -> bool {
        if !self.probe {
            return false;
        }
        let is_due = self.probe_at > 0 && self.samples >= self.probe_at;
        if is_due || self.probe_at == 0 {
            let pause = between(0.5, 1.0, random) * PROBE_EVERY * self.estimate;
            self.probe_at = self.samples.saturating_add((pause as u64).max(1));
        }
        is_due
    }

    /// The estimate after a sample; `None` if it stays.
    fn next(&self, sample: RttSample) -> Option<f64> {
        let estimate = self.estimate;
        let step = estimate.trunc().log10().trunc().max(1.0);
        if sample.dropped {
            return Some(estimate - step);
        }
        if f64::from(sample.in_flight) * 2.0 < estimate {
            return None;
        }
        let slower = 1.0 - self.rtt_noload.nanos() as f64 / sample.rtt.nanos() as f64;
        let queue = (estimate * slower).ceil();
        let (alpha, beta) = (3.0 * step, 6.0 * step);
        match queue {
            _ if queue <= step => Some(estimate + beta),
            _ if queue < alpha => Some(estimate + step),
            _ if queue > beta => Some(estimate - step),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64) -> RttSample {
        RttSample { rtt: Span::from_millis(millis), in_flight: 1, dropped: false }
    }

    #[test]
    fn the_best_time_is_renewed_after_half_to_all_of_thirty_estimates() {
        for (random, samples) in [(0, 300), (u64::MAX, 600)] {
            let mut vegas = Vegas::new(20, 1, 1000);
            vegas.record(sample(10), random);
            let mut renewed = 0;
            for number in 2..1000 {
                vegas.record(sample(50), random);
                if vegas.rtt_noload() == Span::from_millis(50) {
                    renewed = number;
                    break;
                }
            }
            assert!((samples..=samples + 2).contains(&renewed), "{renewed}");
        }
    }

    #[test]
    fn a_time_of_zero_is_survived() {
        let mut vegas = Vegas::new(20, 1, 1000);
        for millis in [0, 0, 5, 0, 5] {
            vegas.record(sample(millis), 0);
        }
        assert_eq!(vegas.limit(), 20);
    }
}
