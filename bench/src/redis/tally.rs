//! Counts and latencies of one stretch of load.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The range of the histogram: 100 ns to a minute, three digits.
const LEAST: u64 = 100;
const MOST: u64 = 60_000_000_000;

/// Checks and how long each took.
#[derive(Clone, Debug)]
pub struct CheckTally {
    /// Checks that were answered.
    pub checks: u64,
    pub denied: u64,
    /// Errors of the server, and decisions made without the store.
    pub errors: u64,
    latency: Histogram<u64>,
}

impl Default for CheckTally {
    fn default() -> CheckTally {
        let latency = Histogram::new_with_bounds(LEAST, MOST, 3).expect("these bounds make a histogram");
        CheckTally { checks: 0, denied: 0, errors: 0, latency }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckAnswer {
    Allowed,
    Denied,
    Failed,
}

impl CheckTally {
    #[inline]
    pub fn enter(&mut self, answer: CheckAnswer, nanos: u64) {
        self.enter_many(answer, 1, nanos);
    }

    /// Records several checks of the same duration.
    #[inline]
    pub fn enter_many(&mut self, answer: CheckAnswer, number: u64, nanos: u64) {
        self.checks += number;
        self.denied += u64::from(answer == CheckAnswer::Denied) * number;
        self.errors += u64::from(answer == CheckAnswer::Failed) * number;
        self.latency.saturating_record_n(nanos.clamp(LEAST, MOST), number);
    }

    pub fn add(&mut self, other: &CheckTally) {
        self.checks += other.checks;
        self.denied += other.denied;
        self.errors += other.errors;
        self.latency.add(&other.latency).expect("all histograms have the same bounds");
    }

    /// In microseconds; `0.99` for p99.
    pub fn micros(&self, part: f64) -> f64 {
        Duration::from_nanos(self.latency.value_at_quantile(part)).as_secs_f64() * 1e6
    }
}
