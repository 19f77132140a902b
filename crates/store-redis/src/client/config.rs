//! How to reach the store, and how long to wait for it.

use std::path::PathBuf;

use tollgate_core::Span;

use super::url::StoreUrl;

/// Everything about the store that can be set. [`RedisConfig::new`] has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisConfig {
    /// Which servers.
    pub url: StoreUrl,
    /// How long a decision may wait for the store when its caller does not say: 25 ms.
    pub within: Span,
    /// How long it may take to connect, shake hands over TLS, log in and load the scripts, all together: 250 ms.
    pub connect_timeout: Span,
    /// Connections to each primary: 1. Questions that come while one is under way join the next call, so one is enough
    /// until a core is busy with it.
    pub connections: usize,
    /// Questions that may wait for each primary: 4096. The next one is refused at once.
    pub max_waiting: usize,
    /// A PEM file with the authorities to trust instead of those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate that servers are shown, and its key: PEM files.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Do not compare the name in a certificate with the host; who signed it is still checked.
    pub skip_hostname: bool,
    /// Accept any certificate, from anybody: for experiments only.
    pub insecure_tls: bool,
    /// What this node calls itself in `CLIENT LIST`.
    pub node: String,
    /// How many nodes share the store, if that is known; otherwise they are counted by their heartbeats.
    pub nodes: Option<u64>,
    /// New buckets a second that each namespace may make while a server's memory is scarce; beyond that, identities
    /// without a bucket share one: 10,000. Zero for any number, until the server itself refuses.
    pub new_keys_per_second: u64,
    /// Refuse to start on a server that may evict buckets.
    pub require_noeviction: bool,
}

impl RedisConfig {
    /// The defaults, for this store.
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
