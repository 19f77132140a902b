//! Metrics of connections, over all listeners.

use std::fmt;

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

/// Connections opened, closed and refused.
#[derive(Debug, Default)]
pub struct ConnectionMetrics {
    opened: Counter,
    closed: Counter,
    refused: [Counter; RefusalReason::ALL.len()],
}

/// Why a connection was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// `max_connections` is reached.
    Full,
    /// `max_connections_per_address` is reached.
    PerAddress,
    /// The TLS handshake failed.
    Handshake,
    /// A proxy sent no valid PROXY header.
    ProxyHeader,
}

impl RefusalReason {
    const ALL: [RefusalReason; 4] =
        [RefusalReason::Full, RefusalReason::PerAddress, RefusalReason::Handshake, RefusalReason::ProxyHeader];

    const fn name(self) -> &'static str {
        match self {
            RefusalReason::Full => "full",
            RefusalReason::PerAddress => "per_address",
            RefusalReason::Handshake => "handshake",
            RefusalReason::ProxyHeader => "proxy_header",
        }
    }
}

impl ConnectionMetrics {
    /// Counts an accepted connection.
    pub fn opened(&self) {
        self.opened.add_one();
    }

    /// Counts a closed connection.
    pub fn closed(&self) {
        self.closed.add_one();
    }

    /// Counts a refused connection.
    pub fn refused(&self, reason: RefusalReason) {
        if let Some(counter) = self.refused.get(reason as usize) {
            counter.add_one();
        }
    }

    /// Connections that are open now.
    fn open(&self) -> u64 {
        let closed = self.closed.sum(); // read first, so that a connection opened meanwhile is not missed
        self.opened.sum().saturating_sub(closed)
    }
}

impl MetricFamilies for ConnectionMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        page.gauges("tollgate_connections", "Connections", std::iter::once(([("state", "open")], self.open())))?;
        let refused = RefusalReason::ALL.iter().zip(&self.refused);
        let refused = refused.map(|(reason, counter)| ([("reason", reason.name())], counter.sum()));
        page.counters("tollgate_connections_refused", "Connections refused", refused)
    }
}
