//! The accept loop and the connections of a listener: admits connections up to the caps, survives every error, and serves
//! each admitted connection: PROXY header, TLS handshake, then the protocol.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};
use tollgate_core::Clock;
use tollgate_telemetry::LogThrottle;
use tracing::{debug, warn};

use super::connection_limiter::client_network;
use super::connection_metrics::RefusalReason;
use super::tls::Tls;
use super::{
    ByteBudget, ConnectionLimiter, ConnectionMetrics, ConnectionPermit, ConnectionRefusal, Drain, Listener, NetLimits,
    Peer, ProxyHeaders, Stream,
};

/// Pause after an accept error such as exhausted descriptors: without one the loop would spin until a connection
/// closes.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Time limit for sending a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Refusals sent at the same time; further connections are closed without one.
const REFUSALS_MAX: usize = 64;

/// The file that the spare descriptor is open on.
const SPARE_FILE: &str = "/dev/null";

/// Log lines of one kind per ten seconds: a flood of connections must not fill the disk.
const LINES_MAX: u32 = 5;

/// Context shared by all connections of a listener.
#[derive(Clone)]
pub struct ListenerContext {
    /// Caps and timeouts.
    pub limits: NetLimits,
    /// Announces and begins the shutdown.
    pub drain: Drain,
    /// Time for `Date` and expiry.
    pub clock: Arc<dyn Clock>,
    /// Memory for bodies and responses in transit.
    pub budget: ByteBudget,
}

/// A protocol on top of an accepted connection. Every transport implements it.
pub trait Protocol: Send + Sync + 'static {
    /// Serves one accepted connection until it closes.
    fn serve(&self, stream: Stream, peer: &Peer, context: &ListenerContext) -> impl Future<Output = ()> + Send;

    /// The bytes sent to a connection that exceeds a cap, before anything was read; empty if the client could not
    /// understand them.
    fn too_many_connections(&self) -> &'static [u8];
}

/// Accepts until the drain begins, then serves the connections that were still in the backlog.
pub fn accept(
    listener: Listener,
    connections: ConnectionLimiter,
    drain: Drain,
    handler: ConnectionHandler<impl Protocol>,
) -> impl Future<Output = ()> + Send {
    let running = drain.track(); // now, not when the loop first runs: an immediate drain waits for it too
    async move {
        accept_until(listener, connections, drain, handler).await;
        drop(running);
    }
}

async fn accept_until<P: Protocol>(
    listener: Listener,
    connections: ConnectionLimiter,
    drain: Drain,
    handler: ConnectionHandler<P>,
) {
    let mut spare = File::open(SPARE_FILE).ok();
    let refusals = ConnectionLimiter::new(REFUSALS_MAX, REFUSALS_MAX);
    let admit = |stream: Stream, address: Option<IpAddr>| match connections.acquire(address) {
        Ok(permit) => drain.spawn(handler.clone().serve(stream, permit)),
        Err(refusal) => {
            handler.refused(refusal, address);
            if let Ok(permit) = refusals.acquire(None) {
                tokio::spawn(refuse(stream, handler.too_many_connections(), permit));
            }
        }
    };
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = drain.begun() => break,
        };
        match accepted {
            Ok((stream, address)) => admit(stream, address),
            // The client closed before accept: not a failure of the server, so no pause.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                handler.failed(&error);
                if !(is_out_of_descriptors(&error) && close_next(&listener, &mut spare, &handler).await) {
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }
    for (stream, address) in listener.close() {
        admit(stream, address);
    }
}

/// Serves the connections of one listener with a protocol. Clones share everything.
pub struct ConnectionHandler<P>(Arc<Inner<P>>);

struct Inner<P> {
    protocol: P,
    metrics: Arc<ConnectionMetrics>,
    tls: Option<Arc<Tls>>,
    proxy_headers: ProxyHeaders,
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
        ConnectionHandler::behind(ProxyHeaders::default(), protocol, metrics, tls, context)
    }

    /// The same, behind load balancers that name the client in a PROXY header.
    pub fn behind(
        proxy_headers: ProxyHeaders,
        protocol: P,
        metrics: Arc<ConnectionMetrics>,
        tls: Option<Arc<Tls>>,
        context: ListenerContext,
    ) -> ConnectionHandler<P> {
        let log = LogThrottle::new(LINES_MAX);
        ConnectionHandler(Arc::new(Inner { protocol, metrics, tls, proxy_headers, context, log }))
    }

    /// Serves a connection until it closes, holding its permit.
    async fn serve(self, stream: Stream, permit: ConnectionPermit) {
        let Inner { protocol, metrics, tls, proxy_headers, context, .. } = &*self.0;
        let _open = OpenConnection::new(metrics.clone());
        let mut stream = stream;
        let from = proxy_headers.read(&mut stream, permit.address(), context.limits.tls_timeout).await;
        let Ok(client) = from else { return metrics.refused(RefusalReason::ProxyHeader) };
        let stream = match tls {
            None => stream,
            // Boxed: the handshake's future is large and short-lived.
            Some(tls) => match Box::pin(tls.accept(stream, context.limits.tls_timeout)).await {
                Some(stream) => stream,
                None => return metrics.refused(RefusalReason::Handshake),
            },
        };
        let certificate = stream.client_certificate().map(Arc::new);
        let peer = Peer { address: client.map(client_network), whole: client, certificate };
        protocol.serve(stream, &peer, context).await;
        drop(permit);
    }

    /// The bytes sent to a connection that exceeds a cap; empty over TLS, where nothing can be sent before the
    /// handshake.
    fn too_many_connections(&self) -> &'static [u8] {
        if self.0.tls.is_some() { b"" } else { self.0.protocol.too_many_connections() }
    }

    /// A connection exceeded a cap.
    fn refused(&self, refusal: ConnectionRefusal, address: Option<IpAddr>) {
        self.0.metrics.refused(match refusal {
            ConnectionRefusal::Full => RefusalReason::Full,
            ConnectionRefusal::PerAddress => RefusalReason::PerAddress,
        });
        if let Some(more) = self.0.log.admit(refusal.name()) {
            warn!(reason = refusal.name(), network = %masked_network(address), unsaid = more, "connection refused");
        }
    }

    /// Accepting failed.
    fn failed(&self, error: &io::Error) {
        if let Some(more) = self.0.log.admit("accept") {
            warn!(error = %error, unsaid = more, "cannot accept connections; trying again");
        }
    }
}

impl<P> Clone for ConnectionHandler<P> {
    fn clone(&self) -> ConnectionHandler<P> {
        ConnectionHandler(self.0.clone())
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

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Frees the spare descriptor to accept the next connection and close it: without descriptors it would otherwise hang
/// in the backlog until another connection closes. True if there was one.
async fn close_next<P: Protocol>(
    listener: &Listener,
    spare: &mut Option<File>,
    handler: &ConnectionHandler<P>,
) -> bool {
    *spare = None;
    let taken = timeout(Duration::ZERO, listener.accept()).await;
    if let Ok(Ok((stream, address))) = &taken {
        handler.refused(ConnectionRefusal::Full, *address);
        if let Stream::Tcp(stream) = stream {
            let _ = stream.try_write(handler.too_many_connections()); // best effort
        }
    }
    let closed = matches!(taken, Ok(Ok(_)));
    drop(taken);
    *spare = File::open(SPARE_FILE).ok();
    closed
}

async fn refuse(mut stream: Stream, message: &[u8], _permit: ConnectionPermit) {
    let send = async {
        stream.write_all(message).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would reset the connection and lose the message.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(REFUSAL_TIMEOUT, send).await; // best effort; dropping the stream closes it
}
