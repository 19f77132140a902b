//! Metrics of the history of usage.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

/// What was written to the history of usage, and what was not.
#[derive(Debug, Default)]
pub struct UsageHistoryMetrics {
    written: Counter,
    failed: Counter,
    dropped: Counter,
    waiting: AtomicU64,
}

impl UsageHistoryMetrics {
    /// Counts rows that are in the database.
    pub(super) fn written(&self, rows: u64) {
        self.written.add(rows);
    }

    /// Counts a write or a read that failed and is repeated.
    pub(super) fn failed(&self) {
        self.failed.add(1);
    }

    /// Counts changes of usage that were not noted: the next charge of the bucket writes them.
    pub(super) fn dropped(&self, changes: u64) {
        self.dropped.add(changes);
    }

    /// Notes how many buckets wait to be read or written.
    pub(super) fn waiting(&self, buckets: usize) {
        self.waiting.store(buckets as u64, Ordering::Relaxed);
    }

    /// How many rows were written, calls failed and changes dropped.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        (self.written.sum(), self.failed.sum(), self.dropped.sum())
    }
}

impl MetricFamilies for UsageHistoryMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        page.counter("tollgate_usage_history_rows", "Rows of usage written to the database", self.written.sum())?;
        page.counter(
            "tollgate_usage_history_errors",
            "Reads of the store and writes of the database that failed and are repeated",
            self.failed.sum(),
        )?;
        page.counter(
            "tollgate_usage_history_dropped",
            "Changes of usage that were not noted; the next charge of the bucket writes them",
            self.dropped.sum(),
        )?;
        let waiting = self.waiting.load(Ordering::Relaxed);
        page.gauge("tollgate_usage_history_waiting", "Buckets whose usage is not in the database yet", waiting)
    }
}
