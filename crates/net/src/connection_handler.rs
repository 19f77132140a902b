//! Between a listener and a protocol: the TLS handshake, metrics and logging of every connection.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tollgate_telemetry::LogThrottle;
use tracing::{debug, warn};

use super::connection_metrics::RefusalReason;
use super::tls::Tls;
use super::{Accept, ConnectionMetrics, ConnectionPermit, ConnectionRefusal, ListenerContext, Peer, Protocol, Stream};

/// Log lines of one kind per ten seconds: a flood of connections must not fill the disk.
const LINES_MAX: u32 = 5;

/// Serves the connections of one listener with a protocol. Clones share everything.
pub struct ConnectionHandler<P>(Arc<Inner<P>>);

struct Inner<P> {
    protocol: P,
    metrics: Arc<ConnectionMetrics>,
    tls: Option<Arc<Tls>>,
    context: ListenerContext,
    log: LogThrottle,
}

impl<P: Protocol> ConnectionHandler<P> {
    /// Serves `protocol`, behind a TLS handshake if there is a certificate.
    pub fn new(
        protocol: P,
        metrics: Arc<ConnectionMetrics>,
        tls: Option<Arc<Tls>>,
        context: ListenerContext,
    ) -> ConnectionHandler<P> {
        ConnectionHandler(Arc::new(Inner { protocol, metrics, tls, context, log: LogThrottle::new(LINES_MAX) }))
    }
}

impl<P> Clone for ConnectionHandler<P> {
    fn clone(&self) -> ConnectionHandler<P> {
        ConnectionHandler(self.0.clone())
    }
}

impl<P: Protocol> Accept for ConnectionHandler<P> {
    async fn serve(self, stream: Stream, permit: ConnectionPermit) {
        let Inner { protocol, metrics, tls, context, .. } = &*self.0;
        let _open = OpenConnection::new(metrics.clone());
        let stream = match tls {
            None => stream,
            // Boxed: the handshake's future is large and short-lived.
            Some(tls) => match Box::pin(tls.accept(stream, context.limits.tls_timeout)).await {
                Some(stream) => stream,
                None => return metrics.refused(RefusalReason::Handshake),
            },
        };
        let peer = Peer { address: permit.network(), whole: permit.address() };
        protocol.serve(stream, &peer, context).await;
        drop(permit);
    }

    fn too_many_connections(&self) -> &'static [u8] {
        if self.0.tls.is_some() { b"" } else { self.0.protocol.too_many_connections() }
    }

    fn refused(&self, refusal: ConnectionRefusal, address: Option<IpAddr>) {
        self.0.metrics.refused(match refusal {
            ConnectionRefusal::Full => RefusalReason::Full,
            ConnectionRefusal::PerAddress => RefusalReason::PerAddress,
        });
        if let Some(more) = self.0.log.admit(refusal.name()) {
            warn!(reason = refusal.name(), network = %masked_network(address), unsaid = more, "connection refused");
        }
    }

    fn failed(&self, error: &io::Error) {
        if let Some(more) = self.0.log.admit("accept") {
            warn!(error = %error, unsaid = more, "cannot accept connections; trying again");
        }
    }
}

/// Counts a connection as open while it lives.
struct OpenConnection(Arc<ConnectionMetrics>);

impl OpenConnection {
    fn new(metrics: Arc<ConnectionMetrics>) -> OpenConnection {
        metrics.opened();
        OpenConnection(metrics)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.closed();
        debug!("connection closed");
    }
}

/// An address as logs show it: the /24 or /48 network, which finds an attacker without naming a person.
pub fn masked_network(address: Option<IpAddr>) -> String {
    match address {
        Some(IpAddr::V4(address)) => {
            let [a, b, c, _] = address.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        Some(IpAddr::V6(address)) => {
            let [a, b, c, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}::/48")
        }
        None => "unix".to_owned(),
    }
}
