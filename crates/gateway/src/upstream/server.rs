//! One server: its connections, its load, and whether it is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use tokio::time::Instant;
use tollgate_overload::ServerLoad;

use super::pool::ConnectionPool;
use super::tls::UpstreamTls;
use crate::spec::{EjectionSpec, UpstreamSpec, UpstreamUrl};

/// A server is left out for at most this many times its first ejection.
const EJECTION_FACTOR_MAX: u32 = 32;

/// One server of an upstream.
pub(crate) struct UpstreamServer {
    pub(crate) url: UpstreamUrl,
    /// Host and port, for requests that do not keep the caller's.
    pub(crate) authority: HeaderValue,
    /// Of its URL, for the choice by a key.
    pub(crate) hash: u64,
    pool: ConnectionPool,
    in_flight: AtomicUsize,
    ejection: EjectionSpec,
    /// Failures in a row.
    failures: AtomicU32,
    /// Ejections in a row.
    ejections: AtomicU32,
    /// Left out until then, in milliseconds after `start`.
    ejected_until: AtomicU64,
    start: Instant,
    /// What the active checks say.
    is_healthy: AtomicBool,
    requests: AtomicU64,
    errors: AtomicU64,
}

impl UpstreamServer {
    pub(crate) fn new(url: &UpstreamUrl, upstream: &UpstreamSpec, tls: Option<UpstreamTls>) -> UpstreamServer {
        let authority = HeaderValue::from_str(&url.authority()).unwrap_or(HeaderValue::from_static(""));
        UpstreamServer {
            authority,
            hash: ServerLoad::hash_of(url.to_string().as_bytes()),
            pool: ConnectionPool::new(url.clone(), tls, upstream.timeouts.connect, upstream.max_idle),
            url: url.clone(),
            in_flight: AtomicUsize::new(0),
            ejection: match upstream.servers.len() {
                1 => EjectionSpec { after: 0, ..upstream.ejection }, // there is no other server to turn to
                _ => upstream.ejection,
            },
            failures: AtomicU32::new(0),
            ejections: AtomicU32::new(0),
            ejected_until: AtomicU64::new(0),
            start: Instant::now(),
            is_healthy: AtomicBool::new(true),
            requests: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }

    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    /// Counts a request from now until the permit is dropped.
    pub(crate) fn enter(self: &Arc<UpstreamServer>) -> ServerPermit {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        ServerPermit(self.clone())
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Requests that were sent, and those that failed.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.errors.load(Ordering::Relaxed))
    }

    /// True if it is healthy and not left out.
    pub(crate) fn is_available(&self) -> bool {
        self.is_healthy.load(Ordering::Relaxed) && !self.is_ejected()
    }

    /// True while it is left out because it failed.
    pub(crate) fn is_ejected(&self) -> bool {
        let until = self.ejected_until.load(Ordering::Relaxed);
        until > 0 && self.now() < until
    }

    /// The verdict of the active checks.
    pub(crate) fn set_healthy(&self, is_healthy: bool) {
        self.is_healthy.store(is_healthy, Ordering::Relaxed);
    }

    /// What the active checks say.
    pub(crate) fn is_healthy(&self) -> bool {
        self.is_healthy.load(Ordering::Relaxed)
    }

    /// Counts an answer: 5xx but 501 is a failure.
    pub(crate) fn judge(&self, status: StatusCode) {
        match status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED {
            true => self.failed(),
            false => self.succeeded(),
        }
    }

    /// A request succeeded.
    pub(crate) fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        if self.ejections.load(Ordering::Relaxed) > 0 {
            self.ejections.store(0, Ordering::Relaxed);
        }
    }

    /// A request failed. Enough of them in a row leave the server out, for twice as long each time.
    pub(crate) fn failed(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if self.ejection.after == 0 || failures < self.ejection.after || self.is_ejected() {
            return;
        }
        let ejections = self.ejections.fetch_add(1, Ordering::Relaxed).min(EJECTION_FACTOR_MAX.ilog2());
        let duration = self.ejection.duration * 2_u32.pow(ejections);
        let until = self.now() + u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 2);
        self.ejected_until.store(until, Ordering::Relaxed);
        self.failures.store(0, Ordering::Relaxed);
        tracing::warn!(server = %self.url, seconds = duration.as_secs_f64(), "a server fails and is left out");
    }

    fn now(&self) -> u64 {
        // At least 1: 0 means that it was never left out.
        u64::try_from((self.start.elapsed() + Duration::from_millis(1)).as_millis()).unwrap_or(u64::MAX)
    }
}

/// A request in flight at a server.
pub(crate) struct ServerPermit(Arc<UpstreamServer>);

impl ServerPermit {
    pub(crate) fn server(&self) -> &Arc<UpstreamServer> {
        &self.0
    }
}

impl Drop for ServerPermit {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
