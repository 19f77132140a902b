//! Metrics of violations.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

/// Violations written to the database, waiting for it, and dropped.
#[derive(Debug, Default)]
pub struct ViolationMetrics {
    written: Counter,
    dropped: Counter,
    waiting: AtomicU64,
}

impl ViolationMetrics {
    /// Counts violations that are in the database.
    pub(crate) fn written(&self, count: u64) {
        self.written.add(count);
    }

    /// Counts violations that were lost.
    pub(crate) fn dropped(&self, count: u64) {
        self.dropped.add(count);
    }

    /// Notes how many rows wait for the database.
    pub(crate) fn waiting(&self, rows: usize) {
        self.waiting.store(rows as u64, Ordering::Relaxed);
    }

    /// How many were written and dropped.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.written.sum(), self.dropped.sum())
    }
}

impl MetricFamilies for ViolationMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        page.counter("tollgate_violations_written", "Refusals written down", self.written.sum())?;
        page.counter("tollgate_violations_dropped", "Refusals not written down", self.dropped.sum())?;
        let waiting = self.waiting.load(Ordering::Relaxed);
        page.gauge("tollgate_violations_waiting", "Rows of violations that wait for the database", waiting)
    }
}
