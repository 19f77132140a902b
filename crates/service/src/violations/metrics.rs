//! Metrics of violations.

use std::fmt;

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

/// Violations written to the database, and dropped.
#[derive(Debug, Default)]
pub struct ViolationMetrics {
    written: Counter,
    dropped: Counter,
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

    /// How many were written and dropped.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.written.sum(), self.dropped.sum())
    }
}

impl MetricFamilies for ViolationMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        page.counter("tollgate_violations_written", "Refusals written down", self.written.sum())?;
        page.counter("tollgate_violations_dropped", "Refusals not written down", self.dropped.sum())
    }
}
