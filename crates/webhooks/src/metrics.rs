//! Metrics of webhooks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

/// Counts of messages to webhooks.
#[derive(Debug, Default)]
pub struct WebhookMetrics {
    delivered: Counter,
    retried: Counter,
    failed: Counter,
    dropped: Counter,
    waiting: AtomicU64,
}

impl WebhookMetrics {
    /// A message arrived.
    pub(crate) fn delivered(&self) {
        self.delivered.add_one();
    }

    /// An attempt failed, and there will be another.
    pub(crate) fn retried(&self) {
        self.retried.add_one();
    }

    /// A message was given up.
    pub(crate) fn failed(&self) {
        self.failed.add_one();
    }

    /// Events were lost before they were written down.
    pub(crate) fn dropped(&self, events: u64) {
        self.dropped.add(events);
    }

    /// How many messages wait, of all nodes.
    pub(crate) fn waiting(&self, messages: u64) {
        self.waiting.store(messages, Ordering::Relaxed);
    }
}

impl MetricFamilies for WebhookMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let outcomes = [("delivered", &self.delivered), ("retried", &self.retried), ("failed", &self.failed)];
        let attempts = outcomes.into_iter().map(|(outcome, count)| ([("outcome", outcome)], count.sum()));
        page.counters("tollgate_webhook_attempts", "Messages to webhooks, by how the attempt ended", attempts)?;
        page.counter("tollgate_webhook_events_dropped", "Events that no webhook was told of", self.dropped.sum())?;
        let waiting = self.waiting.load(Ordering::Relaxed);
        page.gauge("tollgate_webhook_deliveries_waiting", "Messages to webhooks that wait", waiting)
    }
}
