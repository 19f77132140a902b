//! Histogram of decision latency, from a microsecond to a second.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Span;

use crate::counter::{STRIPES, stripe};
use crate::histogram::HistogramFigures;

/// Upper bounds in nanoseconds; longer ones count under infinity.
const BOUNDS: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// Counts by bound, striped like the counters of the request path.
#[derive(Debug)]
pub(super) struct StripedHistogram(Box<[Stripe]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Default for StripedHistogram {
    fn default() -> StripedHistogram {
        StripedHistogram((0..*STRIPES).map(|_| Stripe::default()).collect())
    }
}

impl StripedHistogram {
    #[inline]
    pub(super) fn observe(&self, span: Span) {
        let place = BOUNDS.partition_point(|bound| *bound < span.nanos());
        let Some(stripe) = self.0.get(stripe()) else { return };
        if let Some(count) = stripe.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        stripe.nanos.fetch_add(span.nanos(), Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> HistogramFigures {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::INFINITY]);
        let at = |place: usize| {
            let counts = self.0.iter().filter_map(|stripe| stripe.counts.get(place));
            counts.map(|count| count.load(Ordering::Relaxed)).sum::<u64>()
        };
        let buckets: Vec<(f64, u64)> = bounds.enumerate().map(|(place, bound)| (bound, at(place))).collect();
        let nanos: u64 = self.0.iter().map(|stripe| stripe.nanos.load(Ordering::Relaxed)).sum();
        HistogramFigures { sum: nanos as f64 / 1e9, count: buckets.iter().map(|(_, count)| count).sum(), buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let latency = StripedHistogram::default();
        [1, 1_000, 1_001, 1_000_000_000, 1_000_000_001]
            .into_iter()
            .for_each(|ns| latency.observe(Span::from_nanos(ns)));
        let HistogramFigures { count, buckets, .. } = latency.snapshot();
        let filled: Vec<(f64, u64)> = buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!((count, filled), (5, vec![(1e-6, 2), (2e-6, 1), (1.0, 1), (f64::INFINITY, 1)]));
    }
}
