//! What came of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::clock::SECOND;

/// Everything that was counted in the measured time, warm-up left out.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// The measured time.
    pub duration: Duration,
    /// Requests written.
    pub sent: u64,
    /// Replies read, also those that came after the last request was sent.
    pub answered: u64,
    /// Replies that let the request pass.
    pub allowed: u64,
    /// Replies that did not.
    pub denied: u64,
    /// Open loop: requests that were due and never sent, because no connection had room in time.
    pub unsent: u64,
    /// Connections opened again after the server had closed them, or after an error.
    pub reconnects: u64,
    /// What went wrong.
    pub errors: Errors,
    /// Replies per second of the measured time.
    pub rate: f64,
    /// From request (in the open loop: from when it was due) to reply.
    pub latency: LatencyHistogram,
    /// What the generator's own thread spent.
    pub cpu: Duration,
    /// One entry per second of the measured time; the last may be shorter.
    pub seconds: Vec<Second>,
}

/// One second of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// Seconds of measured time at its end.
    pub at: f64,
    /// Replies per second in it.
    pub rate: f64,
    /// Replies that let the request pass.
    pub allowed: u64,
    /// Replies that did not.
    pub denied: u64,
    /// What went wrong, all kinds.
    pub errors: u64,
    /// The middle of the latencies.
    pub p50: Duration,
    /// All but one in a hundred were faster.
    pub p99: Duration,
}

/// What went wrong, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Connections that could not be opened.
    pub connect: u64,
    /// Requests lost with a connection that the server closed.
    pub closed: u64,
    /// Requests whose reply did not come in time.
    pub timeout: u64,
    /// Requests lost because what came back was no reply.
    pub malformed: u64,
    /// Replies that were no decision, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// What the first of them said.
    pub first: Option<String>,
}

impl Errors {
    /// Replies that were no decision.
    pub fn status(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.connect + self.closed + self.timeout + self.malformed + self.status()
    }
}

/// All latencies, to three digits.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    nanos: Histogram<u64>,
}

/// What a histogram can tell apart: from here on.
const LEAST: u64 = 100;
/// And up to here: longer than any timeout that makes sense.
const MOST: u64 = 600 * SECOND;

impl LatencyHistogram {
    /// None so far.
    pub(crate) fn new() -> LatencyHistogram {
        let nanos = Histogram::new_with_bounds(LEAST, MOST, 3).expect("these bounds make a histogram");
        LatencyHistogram { nanos }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.nanos.saturating_record(nanos.clamp(LEAST, MOST));
    }

    pub(crate) fn add(&mut self, other: &LatencyHistogram) {
        self.nanos.add(&other.nanos).expect("all histograms have the same bounds");
    }

    pub(crate) fn clear(&mut self) {
        self.nanos.clear();
    }

    /// How many were recorded.
    pub fn len(&self) -> u64 {
        self.nanos.len()
    }

    /// True if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.nanos.is_empty()
    }

    /// The latency that this part of all replies kept within; `0.99` for p99.
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

    /// How many took longer than `from` and no longer than `to`.
    pub fn between(&self, from: Duration, to: Duration) -> u64 {
        // Not the histogram's own count, which takes in the whole step around either end: neighbours would overlap.
        let within = |nanos: u64| Duration::from_nanos(nanos) > from && Duration::from_nanos(nanos) <= to;
        let steps = self.nanos.iter_recorded().filter(|step| within(step.value_iterated_to()));
        steps.map(|step| step.count_at_value()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_stretches_do_not_overlap() {
        let mut latency = LatencyHistogram::new();
        (1..2_000).for_each(|number| latency.record(number * 997));
        let edges = [0, 100, 5_000, 70_000, 300_000, 1_000_000, 2_000_000].map(Duration::from_nanos);
        let counts = edges.array_windows().map(|[from, to]| latency.between(*from, *to));
        assert_eq!(counts.sum::<u64>(), latency.len());
    }
}
