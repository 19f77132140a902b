//! How long exchanges take, as metrics show it: from a millisecond to five minutes, because streams last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_telemetry::HistogramFigures;

/// Upper bounds in milliseconds; longer ones count under infinity.
const BOUNDS: [u64; 16] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000];

/// Counts by bound. Not striped: what it measures takes long enough.
#[derive(Debug, Default)]
pub(crate) struct DurationHistogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl DurationHistogram {
    pub(crate) fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS.partition_point(|bound| bound * 1_000 < micros);
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> HistogramFigures {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e3).chain([f64::INFINITY]);
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let sum = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        HistogramFigures { sum, count: buckets.iter().map(|(_, count)| count).sum(), buckets }
    }
}

/// The values of both.
pub(crate) fn add(sum: &mut HistogramFigures, more: HistogramFigures) {
    if sum.buckets.is_empty() {
        *sum = more;
        return;
    }
    sum.sum += more.sum;
    sum.count += more.count;
    for ((_, count), (_, more)) in sum.buckets.iter_mut().zip(more.buckets) {
        *count += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_under_the_bound_that_covers_them() {
        let histogram = DurationHistogram::default();
        for micros in [0, 1_000, 1_001, 300_000_000, 300_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let figures = histogram.snapshot();
        let used: Vec<(f64, u64)> = figures.buckets.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(used, [(0.001, 2), (0.002, 1), (300.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((figures.count, figures.sum), (5, 600.002_002));
        let mut sum = HistogramFigures::default();
        add(&mut sum, figures.clone());
        add(&mut sum, figures);
        assert_eq!((sum.count, sum.buckets.first()), (10, Some(&(0.001, 4))));
    }
}
