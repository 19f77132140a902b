//! Checks whether a store is suitable, and reports it in words.

pub(crate) mod finding;
pub(crate) mod layout;
mod persistence;
mod rights;
pub(crate) mod server;

use std::sync::Arc;

use tollgate_store::MonotonicClock;

use self::finding::PATIENCE;
pub use self::finding::{Finding, FindingLevel};
pub use self::rights::{COMMANDS, acl_user};

use crate::client::config::RedisConfig;
use crate::client::context::RedisContext;
use crate::client::url::Layout;

/// Checks the store: reachability, TLS, authentication, version, eviction, permissions, clock, round-trip time and
/// topology. Runs the real scripts on keys of its own, which expire at once.
pub async fn check(config: &RedisConfig) -> Vec<Finding> {
    let connect_timeout = config.connect_timeout.max(PATIENCE);
    let config = RedisConfig { connect_timeout, ..config.clone() };
    let layout = config.url.layout.clone();
    let hosts = config.url.hosts.clone();
    let context = RedisContext::new(config, Arc::new(MonotonicClock::new()));
    let mut findings = Vec::new();
    match layout {
        Layout::Single => {
            if let Some(host) = hosts.first() {
                server::look(&context, host, 0, &mut findings).await;
            }
        }
        Layout::Sentinel { master } => layout::sentinels(&context, &hosts, &master, &mut findings).await,
        Layout::Cluster => layout::cluster(&context, &hosts, &mut findings).await,
    }
    findings
}
