//! Gradient2: compares the present time with its long average, and lets the limit grow only while both agree.

use super::RttSample;

/// Samples whose plain mean is the first long average.
pub(super) const WARMUP: u32 = 10;

/// Gradient2.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient2 {
    /// The smallest limit.
    pub min: u32,
    /// The largest limit.
    pub max: u32,
    /// The share of a new estimate in the next one.
    pub smoothing: f64,
    /// Requests that may queue at the upstream: the room to grow.
    pub queue: u32,
    /// How much slower than its average the upstream may be before the limit shrinks.
    pub tolerance: f64,
    /// Samples in the long average.
    pub long_window: u32,
    estimate: f64,
    long: f64,
    sum: f64,
    samples: u32,
}

impl Gradient2 {
    /// Starts with a limit of `initial`.
    pub fn new(initial: u32, min: u32, max: u32) -> Gradient2 {
        Gradient2 {
            min,
            max,
            smoothing: 0.2,
            queue: 4,
            tolerance: 1.5,
            long_window: 600,
            estimate: f64::from(initial),
            long: 0.0,
            sum: 0.0,
            samples: 0,
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

    /// The long average, in nanoseconds.
    pub fn long_rtt_nanos(&self) -> f64 {
        self.long
    }

    /// Adds a sample. Drops are ignored: a refusal says nothing about time.
    pub fn record(&mut self, sample: RttSample) {
        let short = (sample.rtt.nanos() as f64).max(1.0);
        let long = self.add_to_average(short);
        if long / short > 2.0 {
            // After a long slow time the average would take its whole window to recover.
            self.long *= 0.95;
        }
        if f64::from(sample.in_flight) < self.estimate / 2.0 {
            return;
        }
        let gradient = (self.tolerance * long / short).clamp(0.5, 1.0);
        let next = self.estimate * gradient + f64::from(self.queue);
        let next = self.estimate * (1.0 - self.smoothing) + next * self.smoothing;
        self.estimate = next.min(f64::from(self.max)).max(f64::from(self.min));
    }

    fn add_to_average(&mut self, rtt: f64) -> f64 {
        if self.samples < WARMUP {
            self.samples += 1;
            self.sum += rtt;
            self.long = self.sum / f64::from(self.samples);
        } else {
            let factor = 2.0 / (f64::from(self.long_window) + 1.0);
            self.long = self.long * (1.0 - factor) + rtt * factor;
        }
        self.long
    }
}
