//! Is this store fit for us? Looked at before it is trusted, and told in words for people.

pub(crate) mod layout;
mod rights;
pub(crate) mod server;

use std::fmt;
use std::sync::Arc;

use tollgate_core::Span;
use tollgate_store::MonotonicClock;

pub use rights::{COMMANDS, acl_user};

use crate::client::config::RedisConfig;
use crate::client::context::Shared;
use crate::client::url::Layout;

/// A check has time: a server that is slow should be called slow, not absent.
pub(crate) const PATIENCE: Span = Span::from_secs(2);

/// How a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, and somebody should know this.
    Warning,
    /// It does not work, or must not be relied on.
    Problem,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How it weighs.
    pub level: Level,
    /// What was found.
    pub what: String,
    /// What to do about it; empty if nothing.
    pub help: String,
}

impl Finding {
    fn ok(what: impl Into<String>) -> Finding {
        Finding { level: Level::Ok, what: what.into(), help: String::new() }
    }

    fn warning(what: impl Into<String>, help: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, what: what.into(), help: help.into() }
    }

    pub(crate) fn problem(what: impl Into<String>, help: impl Into<String>) -> Finding {
        Finding { level: Level::Problem, what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { level, what, help } = self;
        let level = match level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        };
        write!(f, "{level}: {what}")?;
        if help.is_empty() { Ok(()) } else { write!(f, "; {help}") }
    }
}

/// Looks at the store: reachable, trusted, logged in, new enough, safe from eviction, rights, clock, speed, and how its
/// servers belong together. Runs the real scripts on keys of its own, which expire at once.
pub async fn check(config: &RedisConfig) -> Vec<Finding> {
    let connect_timeout = config.connect_timeout.max(PATIENCE);
    let config = RedisConfig { connect_timeout, ..config.clone() };
    let layout = config.url.layout.clone();
    let hosts = config.url.hosts.clone();
    let shared = Shared::new(config, Arc::new(MonotonicClock::new()));
    let mut findings = Vec::new();
    match layout {
        Layout::Single => {
            if let Some(host) = hosts.first() {
                server::look(&shared, host, 0, &mut findings).await;
            }
        }
        Layout::Sentinel { master } => layout::sentinels(&shared, &hosts, &master, &mut findings).await,
        Layout::Cluster => layout::cluster(&shared, &hosts, &mut findings).await,
    }
    findings
}
