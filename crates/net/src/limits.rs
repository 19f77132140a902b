//! Caps and timeouts of connections.
//!
//! Every one has a default, so that no client can hold a resource for ever on an unconfigured server.

use std::time::Duration;

/// Bounds on connections and on what they send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetLimits {
    /// Connections open at once, over all listeners.
    pub max_connections: usize,
    /// Of these, from one address.
    pub max_connections_per_address: usize,
    /// From the first byte of a request to the end of its head.
    pub head_timeout: Duration,
    /// From the end of the head to the end of the body.
    pub body_timeout: Duration,
    /// How long a response may wait for a client that does not read.
    pub write_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long the TLS handshake may take.
    pub tls_timeout: Duration,
    /// Longest head, in bytes: request line and header fields.
    pub max_head: usize,
    /// Most header fields.
    pub max_headers: usize,
    /// Longest body of a request, in bytes.
    pub max_body: usize,
    /// Longest body of a batch, in bytes.
    pub max_batch_body: usize,
    /// Bytes of bodies and responses in transit, over all connections.
    pub max_in_transit: usize,
    /// Time between SIGTERM and the drain: health checks fail, requests are still served.
    pub drain_delay: Duration,
    /// How long requests in flight may take to finish after the drain began.
    pub drain_timeout: Duration,
}

impl Default for NetLimits {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_connections_per_address: 1_024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            tls_timeout: Duration::from_secs(5),
            max_head: 16 << 10,
            max_headers: 100,
            max_body: 64 << 10,
            max_batch_body: 1 << 20,
            max_in_transit: 64 << 20,
            drain_delay: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(10),
        }
    }
}
