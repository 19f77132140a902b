//! Configuration of the store.

use std::path::PathBuf;

use tollgate_core::Span;

use super::url::StoreUrl;

/// The settings of the store. [`RedisConfig::new`] has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisConfig {
    /// The servers.
    pub url: StoreUrl,
    /// How long a decision may wait for the store, unless its caller sets a limit: 25 ms.
    pub within: Span,
    /// How long connecting, the TLS handshake, authentication and loading the scripts may take together: 250 ms.
    pub connect_timeout: Span,
    /// Connections to each primary: 1. Requests that arrive while a call is in flight are batched in the next one, so
    /// one connection is enough until it keeps a core busy.
    pub connections: usize,
    /// Requests that may wait for each primary: 4096. Further ones are refused at once.
    pub max_waiting: usize,
    /// A PEM file with the certificate authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// The client certificate and its key: PEM files.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Do not verify the host name of certificates; the chain is still verified.
    pub skip_hostname: bool,
    /// Accept any certificate: for experiments only.
    pub insecure_tls: bool,
    /// The name of this node in `CLIENT LIST`.
    pub node: String,
    /// Number of nodes that share the store; `None` to count them by their heartbeats.
    pub nodes: Option<u64>,
    /// New buckets per second that each namespace may create while a server's memory is scarce; identities beyond that
    /// share an overflow bucket: 10,000. Zero removes the limit, until the server itself refuses.
    pub new_keys_per_second: u64,
    /// Refuse to start if the server may evict buckets.
    pub require_noeviction: bool,
}

impl RedisConfig {
    /// The defaults for this URL.
    pub fn new(url: StoreUrl) -> RedisConfig {
        RedisConfig {
            url,
            within: Span::from_millis(25),
            connect_timeout: Span::from_millis(250),
            connections: 1,
            max_waiting: 4096,
            ca: None,
            client_certificate: None,
            skip_hostname: false,
            insecure_tls: false,
            node: "node".to_owned(),
            nodes: None,
            new_keys_per_second: 10_000,
            require_noeviction: false,
        }
    }
}
