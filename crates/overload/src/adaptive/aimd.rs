//! Additive increase, multiplicative decrease: reacts to refusals and timeouts only.

use tollgate_core::Span;

use super::RttSample;

/// AIMD. Grows by one while at least half of the limit is used; shrinks by a tenth with each drop.
#[derive(Clone, Debug, PartialEq)]
pub struct Aimd {
    /// The smallest limit.
    pub min: u32,
    /// The largest limit.
    pub max: u32,
    /// What is left of the limit after a drop.
    pub backoff: f64,
    /// A slower answer counts as dropped.
    pub timeout: Span,
    limit: u32,
}

impl Aimd {
    /// Starts with a limit of `initial`.
    pub fn new(initial: u32, min: u32, max: u32) -> Aimd {
        Aimd { min, max, backoff: 0.9, timeout: Span::from_secs(5), limit: initial }
    }

    /// The limit.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Adds a sample.
    pub fn record(&mut self, sample: RttSample) {
        if sample.dropped || sample.rtt > self.timeout {
            self.limit = (f64::from(self.limit) * self.backoff) as u32;
        } else if u64::from(sample.in_flight) * 2 >= u64::from(self.limit) {
            self.limit = self.limit.saturating_add(1);
        }
        self.limit = self.limit.min(self.max).max(self.min);
    }
}
