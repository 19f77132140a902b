//! One server: its connections, its load, and whether it is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use tollgate_core::{Clock, Time};
use tollgate_overload::{OutlierDetector, ServerLoad};
use tollgate_telemetry::LogThrottle;
use tracing::warn;

use super::pool::ConnectionPool;
use super::tls::UpstreamTls;
use crate::spec::{UpstreamSpec, UpstreamUrl};

/// The servers of an upstream that fail, by their index.
pub(crate) struct Outliers {
    detector: Mutex<OutlierDetector>,
    clock: Arc<dyn Clock>,
}

impl Outliers {
    pub(crate) fn new(spec: &UpstreamSpec, clock: Arc<dyn Clock>) -> Outliers {
        Outliers { detector: Mutex::new(OutlierDetector::new(spec.ejection, spec.servers.len())), clock }
    }

    fn now(&self) -> Time {
        self.clock.now()
    }
}

/// One server of an upstream.
pub(crate) struct UpstreamServer {
    pub(crate) url: UpstreamUrl,
    /// Host and port, for requests that do not keep the caller's.
    pub(crate) authority: HeaderValue,
    /// Of its URL, for the choice by a key.
    pub(crate) hash: u64,
    pool: ConnectionPool,
    in_flight: AtomicUsize,
    index: usize,
    outliers: Arc<Outliers>,
    /// It failed last, or was left out: otherwise the detector need not be asked.
    is_suspect: AtomicBool,
    /// What the active checks say.
    is_healthy: AtomicBool,
    requests: AtomicU64,
    errors: AtomicU64,
    throttle: LogThrottle,
}

impl UpstreamServer {
    pub(crate) fn new(
        url: &UpstreamUrl,
        index: usize,
        upstream: &UpstreamSpec,
        outliers: &Arc<Outliers>,
        tls: Option<UpstreamTls>,
    ) -> UpstreamServer {
        let authority = HeaderValue::from_str(&url.authority()).unwrap_or(HeaderValue::from_static(""));
        UpstreamServer {
            authority,
            hash: ServerLoad::hash_of(url.to_string().as_bytes()),
            pool: ConnectionPool::new(url.clone(), tls, upstream.timeouts.connect, upstream.max_idle),
            url: url.clone(),
            in_flight: AtomicUsize::new(0),
            index,
            outliers: outliers.clone(),
            is_suspect: AtomicBool::new(false),
            is_healthy: AtomicBool::new(true),
            requests: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            throttle: LogThrottle::by_the_minute(),
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
        self.is_suspect.load(Ordering::Relaxed)
            && self.outliers.detector.lock().is_ejected(self.index, self.outliers.now())
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
        if self.is_suspect.load(Ordering::Relaxed) {
            let mut detector = self.outliers.detector.lock();
            detector.succeeded(self.index);
            let is_ejected = detector.is_ejected(self.index, self.outliers.now());
            self.is_suspect.store(is_ejected, Ordering::Relaxed);
        }
    }

    /// A request failed. Enough of them in a row leave the server out, for twice as long each time, and never most servers.
    pub(crate) fn failed(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut detector = self.outliers.detector.lock();
        self.is_suspect.store(true, Ordering::Relaxed);
        if detector.failed(self.index, self.outliers.now()) {
            warn!(server = %self.url, "a server fails and is left out");
        } else if let Some(unsaid) = self.throttle.admit("failed") {
            // The only server of an upstream is never left out.
            warn!(server = %self.url, unsaid, "a request to a server failed: no answer, or a status from 500 on");
        }
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
