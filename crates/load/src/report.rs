//! The result of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::clock::SECOND;

/// Everything that was counted in the measured time, without the warm-up.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// The measured time.
    pub duration: Duration,
    /// Requests written.
    pub sent: u64,
    /// Replies read, including those that arrived after the measured time.
    pub answered: u64,
    /// Replies that allowed the request.
    pub allowed: u64,
    /// Replies that denied the request.
    pub denied: u64,
    /// Open loop: requests that were due and not sent, because no connection had room in time.
    pub unsent: u64,
    /// Connections reopened after the server closed them, or after an error.
    pub reconnects: u64,
    /// Errors, by kind.
    pub errors: Errors,
    /// Replies per second of the measured time.
    pub rate: f64,
    /// Time from the request (in the open loop: from its due time) to the reply.
    pub latency: LatencyHistogram,
    /// The same, of replies that allowed the request only: what is refused at once says nothing about the others.
    pub allowed_latency: LatencyHistogram,
    /// CPU time of the generator's thread.
    pub cpu: Duration,
    /// One entry per second of the measured time; the last may be shorter.
    pub seconds: Vec<Second>,
}

/// One second of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// Measured time at its end, in seconds.
    pub at: f64,
    /// Replies per second.
    pub rate: f64,
    /// Replies that allowed the request.
    pub allowed: u64,
    /// Replies that denied the request.
    pub denied: u64,
    /// Number of errors of all kinds.
    pub errors: u64,
    /// Median latency.
    pub p50: Duration,
    /// 99th percentile of the latency.
    pub p99: Duration,
}

/// Errors of a run, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Connections that could not be opened.
    pub connect: u64,
    /// Requests lost with a connection that the server closed.
    pub closed: u64,
    /// Requests whose reply timed out.
    pub timeout: u64,
    /// Requests lost because the server sent something that is not a reply.
    pub malformed: u64,
    /// Replies without a decision, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Text of the first error.
    pub first: Option<String>,
}

impl Errors {
    /// Number of replies without a decision.
    pub fn status(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Number of all errors.
    pub fn total(&self) -> u64 {
        self.connect + self.closed + self.timeout + self.malformed + self.status()
    }
}

/// A histogram of latencies, to three significant digits.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    nanos: Histogram<u64>,
}

/// Smallest latency that the histogram can represent, in nanoseconds.
const LEAST: u64 = 100;
/// Largest latency: longer than any reasonable timeout.
const MOST: u64 = 600 * SECOND;

impl LatencyHistogram {
    /// An empty histogram.
    pub(crate) fn new() -> LatencyHistogram {
        let nanos = Histogram::new_with_bounds(LEAST, MOST, 3).expect("these bounds make a histogram");
        LatencyHistogram { nanos }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.nanos.saturating_record(nanos.clamp(LEAST, MOST));
    }

    /// Adds the latencies of another histogram.
    pub fn add(&mut self, other: &LatencyHistogram) {
        self.nanos.add(&other.nanos).expect("all histograms have the same bounds");
    }

    pub(crate) fn clear(&mut self) {
        self.nanos.clear();
    }

    /// Number of recorded latencies.
    pub fn len(&self) -> u64 {
        self.nanos.len()
    }

    /// True if no latency was recorded.
    pub fn is_empty(&self) -> bool {
        self.nanos.is_empty()
    }

    /// The latency at a quantile; `0.99` for p99.
    pub fn quantile(&self, part: f64) -> Duration {
        Duration::from_nanos(self.nanos.value_at_quantile(part))
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.nanos.max())
    }

    /// The shortest.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.is_empty() { 0 } else { self.nanos.min() })
    }

    /// The average.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.nanos.mean() as u64)
    }

    /// Number of latencies above `from` and up to `to`.
    pub fn between(&self, from: Duration, to: Duration) -> u64 {
        // Not the histogram's own count, which includes the whole bucket at both ends: adjacent ranges would overlap.
        let within = |nanos: u64| Duration::from_nanos(nanos) > from && Duration::from_nanos(nanos) <= to;
        let steps = self.nanos.iter_recorded().filter(|step| within(step.value_iterated_to()));
        steps.map(|step| step.count_at_value()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_ranges_do_not_overlap() {
        let mut latency = LatencyHistogram::new();
        (1..2_000).for_each(|number| latency.record(number * 997));
        let edges = [0, 100, 5_000, 70_000, 300_000, 1_000_000, 2_000_000].map(Duration::from_nanos);
        let counts = edges.array_windows().map(|[from, to]| latency.between(*from, *to));
        assert_eq!(counts.sum::<u64>(), latency.len());
    }
}
