//! Whether a request that failed is sent once more.
//!
//! Only where nothing is done twice by it: a request of which nothing was sent, or one that is idempotent and has no body
//! and whose connection broke before a response. A response is passed on whatever its status, and a server that is late
//! may still be at work: neither is tried again. Retries are bounded per request, over all requests by a budget, and by
//! the time for the whole exchange.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request};
use hyper::body::Body;
use tollgate_overload::RetryBudget;
use tollgate_overload::spec::RetrySpec;
use tollgate_service::random;

use super::error::UpstreamError;
use super::sent_body::SentRequestBody;

/// A server that just failed gets this much time on average before it is asked again, twice as much each time.
const PAUSE: Duration = Duration::from_millis(25);

/// Retries of one upstream.
pub(super) struct Retries {
    attempts: u32,
    budget: RetryBudget,
    retried: AtomicU64,
    refused: AtomicU64,
}

impl Retries {
    pub(super) fn new(spec: &RetrySpec) -> Retries {
        Retries {
            attempts: spec.attempts,
            budget: RetryBudget::new(spec.budget),
            retried: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// A request is sent for the first time.
    pub(super) fn record_request(&self) {
        if self.attempts > 0 {
            self.budget.record_request();
        }
    }

    /// Whether a request that was retried so often may be once more.
    pub(super) const fn has_left(&self, retries: u32) -> bool {
        retries < self.attempts
    }

    /// Takes one retry from the budget.
    pub(super) fn try_again(&self) -> bool {
        let is_granted = self.budget.try_retry();
        let count = if is_granted { &self.retried } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        is_granted
    }

    /// Requests that were sent again, and those that the budget had no room for.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.retried.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }
}

/// How long to wait before the same server is asked again: random, so that requests that failed together do not return
/// together.
pub(super) fn pause(retries: u32) -> Duration {
    let most = (PAUSE.as_micros() as u64 * 2) << retries.min(5);
    Duration::from_micros(random::fast() % most)
}

/// Why an attempt failed, and the request if it may be sent again.
pub(super) struct FailedAttempt {
    pub(super) error: UpstreamError,
    /// Boxed: an error is moved up through every caller.
    pub(super) again: Option<Box<Request<SentRequestBody>>>,
}

impl From<UpstreamError> for FailedAttempt {
    fn from(error: UpstreamError) -> FailedAttempt {
        FailedAttempt { error, again: None }
    }
}

/// A copy of a request that may be sent twice: idempotent (RFC 9110, 9.2.2) and without a body.
pub(super) fn copy_of(request: &Request<SentRequestBody>) -> Option<Request<SentRequestBody>> {
    let idempotent = [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE, Method::TRACE];
    if !idempotent.contains(request.method()) || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(SentRequestBody::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}
