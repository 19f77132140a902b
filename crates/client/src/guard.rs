//! The circuit breaker around calls: a call that is dropped has no result, and does not block the next probe.

use std::sync::Arc;

use parking_lot::Mutex;
use tollgate_core::{Clock, Span};
use tollgate_overload::{BreakerConfig, BreakerPass, CircuitBreaker};

/// Five failures in a row, then a second without calls, doubled by each failed probe up to 30 s.
const BREAKER: BreakerConfig = BreakerConfig {
    failures: 5,
    percent: 100,
    calls_min: u32::MAX,
    window: Span::from_secs(10),
    open: Span::SECOND,
    open_max: Span::from_secs(30),
    probes: 1,
};

/// The breaker of one server.
pub(crate) struct ServerBreaker {
    breaker: Mutex<CircuitBreaker>,
    clock: Arc<dyn Clock>,
}

/// A call that may be made. Dropped without a result, it counts as abandoned.
pub(crate) struct CallPass<'a> {
    server: &'a ServerBreaker,
    pass: Option<BreakerPass>,
}

impl ServerBreaker {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> ServerBreaker {
        ServerBreaker { breaker: Mutex::new(CircuitBreaker::new(BREAKER, clock.now())), clock }
    }

    /// Whether a call may be made now.
    pub(crate) fn try_pass(&self) -> Option<CallPass<'_>> {
        let pass = self.breaker.lock().try_pass(self.clock.now())?;
        Some(CallPass { server: self, pass: Some(pass) })
    }
}

impl CallPass<'_> {
    pub(crate) fn succeeded(mut self) {
        if let Some(pass) = self.pass.take() {
            self.server.breaker.lock().succeeded(pass, self.server.clock.now());
        }
    }

    pub(crate) fn failed(mut self) {
        if let Some(pass) = self.pass.take() {
            // No jitter: the first call after the pause is one of this process alone.
            self.server.breaker.lock().failed(pass, self.server.clock.now(), 0);
        }
    }
}

impl Drop for CallPass<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.server.breaker.lock().abandoned(pass);
        }
    }
}
