//! Metrics of the analytics themselves.

use std::fmt;

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

/// Decisions that were left out of the analytics.
#[derive(Debug, Default)]
pub struct TrafficMetrics {
    dropped: Counter,
}

impl TrafficMetrics {
    pub(super) fn drop_one(&self) {
        self.dropped.add_one();
    }

    /// Decisions that were left out.
    pub fn dropped(&self) -> u64 {
        self.dropped.sum()
    }
}

impl MetricFamilies for TrafficMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        page.counter("tollgate_analytics_dropped", "Decisions that analytics left out", self.dropped.sum())
    }
}
