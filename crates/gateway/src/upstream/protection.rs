//! What keeps an upstream from more work than it can do: a limit of requests in flight that follows it, a queue by
//! priority, and three ways to stop calling one that fails. The state machines are `tollgate-overload`; this file asks them
//! in order, cheapest first, and tells them how each request ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use parking_lot::Mutex;
use tollgate_core::Clock;
use tollgate_overload::{
    AdmissionController, AdmissionPermit, AdmissionStats, BreakerPass, BreakerPhase, CircuitBreaker, ClientThrottle,
    Priority, ShedLadder, UtilisationShedder,
};
use tollgate_service::random;

use super::error::UpstreamError;
use crate::spec::ProtectionSpec;

/// Health checks that are admitted at once beside all limits. More of them are no checks any more: they are requests
/// of the highest class, so that a path for checks is no way around the limits.
const HEALTH_CHECKS_MAX: usize = 8;

/// The protection of one upstream.
pub(crate) struct Protection {
    clock: Arc<dyn Clock>,
    /// Requests in flight, over all servers, without health checks.
    in_flight: AtomicUsize,
    health_checks: AtomicUsize,
    max_in_flight: Option<u32>,
    admission: Option<AdmissionController>,
    shedder: Option<(Mutex<UtilisationShedder>, ShedLadder)>,
    throttle: Option<Mutex<ClientThrottle>>,
    breaker: Option<Mutex<CircuitBreaker>>,
    /// Requests that were not sent, by class and reason.
    shed: Mutex<BTreeMap<(Priority, &'static str), u64>>,
}

impl Protection {
    pub(crate) fn new(spec: &ProtectionSpec, clock: Arc<dyn Clock>) -> Protection {
        let now = clock.now();
        let controller = |config| AdmissionController::new(config, clock.clone(), random::fast());
        Protection {
            in_flight: AtomicUsize::new(0),
            health_checks: AtomicUsize::new(0),
            max_in_flight: spec.max_in_flight,
            admission: spec.admission().map(controller),
            shedder: spec
                .shed
                .map(|shed| (Mutex::new(UtilisationShedder::new(shed.utilisation)), ShedLadder::new(&spec.priorities))),
            throttle: spec.throttle.map(|config| Mutex::new(ClientThrottle::new(config))),
            breaker: spec.breaker.map(|config| Mutex::new(CircuitBreaker::new(config, now))),
            shed: Mutex::default(),
            clock,
        }
    }

    /// Admits a request, or does not; `None` if it may have to wait for its turn.
    pub(crate) fn admit_at_once(
        self: &Arc<Protection>,
        priority: Priority,
        method: &Method,
    ) -> Option<Result<ProtectedPermit, UpstreamError>> {
        self.admission.is_none().then(|| self.counted(priority, self.admit_by_load(priority, method)))
    }

    /// Admits a request in its turn. The queue bounds how long it waits.
    pub(crate) async fn admit_in_turn(
        self: &Arc<Protection>,
        priority: Priority,
        method: &Method,
    ) -> Result<ProtectedPermit, UpstreamError> {
        let admitted = match self.admit_by_load(priority, method) {
            Ok(permit) => self.wait_for_turn(permit, priority).await,
            Err(error) => Err(error),
        };
        self.counted(priority, admitted)
    }

    fn counted(
        &self,
        priority: Priority,
        admitted: Result<ProtectedPermit, UpstreamError>,
    ) -> Result<ProtectedPermit, UpstreamError> {
        if let Err(error) = &admitted {
            *self.shed.lock().entry((priority, error.label())).or_default() += 1;
        }
        admitted
    }

    /// Requests that were not sent, by class and reason.
    pub(crate) fn shed(&self) -> Vec<(Priority, &'static str, u64)> {
        self.shed.lock().iter().map(|((priority, reason), count)| (*priority, *reason, *count)).collect()
    }

    /// All checks but the one for which requests wait.
    fn admit_by_load(
        self: &Arc<Protection>,
        priority: Priority,
        method: &Method,
    ) -> Result<ProtectedPermit, UpstreamError> {
        if priority == Priority::HEALTH
            && let Some(permit) = self.permit(ServedAs::HealthCheck, HEALTH_CHECKS_MAX)
        {
            return self.pass_breaker(permit);
        }
        let max = self.max_in_flight.map_or(usize::MAX, |max| max as usize);
        let permit = self.permit(ServedAs::Request, max).ok_or(UpstreamError::Full)?;
        let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if let Some((shedder, ladder)) = &self.shedder
            && shedder.lock().sheds(ladder, priority, is_read, random::fast())
        {
            return Err(UpstreamError::Shed("utilisation"));
        }
        if let Some(throttle) = &self.throttle
            && !throttle.lock().admits(self.clock.now(), random::fast())
        {
            return Err(UpstreamError::Shed("throttled"));
        }
        match self.admission {
            Some(_) => Ok(permit),
            None => self.pass_breaker(permit),
        }
    }

    async fn wait_for_turn(
        &self,
        mut permit: ProtectedPermit,
        priority: Priority,
    ) -> Result<ProtectedPermit, UpstreamError> {
        let Some(admission) = self.admission.as_ref().filter(|_| permit.served_as == ServedAs::Request) else {
            return Ok(permit);
        };
        let admitted = admission.acquire(priority).await;
        permit.admission = Some(admitted.map_err(|reason| UpstreamError::Shed(reason.name()))?);
        self.pass_breaker(permit)
    }

    /// A place among those that are served at once; `None` if there are `max` of them.
    fn permit(self: &Arc<Protection>, served_as: ServedAs, max: usize) -> Option<ProtectedPermit> {
        let before = self.count(served_as).fetch_add(1, Ordering::Relaxed);
        let protection = self.clone();
        // Its drop takes the place back.
        let permit = ProtectedPermit { protection, served_as, admission: None, pass: None, has_ended: false };
        (before < max).then_some(permit)
    }

    fn count(&self, served_as: ServedAs) -> &AtomicUsize {
        match served_as {
            ServedAs::Request => &self.in_flight,
            ServedAs::HealthCheck => &self.health_checks,
        }
    }

    /// An open breaker says that the upstream fails, which is what a health check asks.
    fn pass_breaker(&self, mut permit: ProtectedPermit) -> Result<ProtectedPermit, UpstreamError> {
        if let Some(breaker) = &self.breaker {
            match breaker.lock().try_pass(self.clock.now()) {
                Some(pass) => permit.pass = Some(pass),
                None => {
                    permit.ignore();
                    return Err(UpstreamError::BreakerOpen);
                }
            }
        }
        Ok(permit)
    }

    /// Samples how busy the upstream is; called every second.
    pub(crate) fn sample(&self) {
        let Some((shedder, _)) = &self.shedder else { return };
        let (in_flight, capacity) = match (&self.admission, self.max_in_flight) {
            (Some(admission), _) => {
                let AdmissionStats { limit, in_flight, .. } = admission.stats();
                (in_flight as usize, limit)
            }
            (None, Some(max)) => (self.in_flight.load(Ordering::Relaxed), max),
            (None, None) => return,
        };
        let share = in_flight as f64 / f64::from(capacity.max(1));
        shedder.lock().record(self.clock.now(), share.min(1.0));
    }

    /// Figures of the queue, if there is one.
    pub(crate) fn stats(&self) -> Option<AdmissionStats> {
        self.admission.as_ref().map(AdmissionController::stats)
    }

    /// True while the circuit breaker lets nothing through.
    pub(crate) fn is_open(&self) -> bool {
        let is_open = |breaker: &Mutex<CircuitBreaker>| breaker.lock().phase(self.clock.now()) == BreakerPhase::Open;
        self.breaker.as_ref().is_some_and(is_open)
    }
}

/// How a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServedAs {
    Request,
    /// Beside all limits.
    HealthCheck,
}

/// One admitted request. Dropping it frees its place, however the request ended.
pub(crate) struct ProtectedPermit {
    protection: Arc<Protection>,
    served_as: ServedAs,
    admission: Option<AdmissionPermit>,
    pass: Option<BreakerPass>,
    /// There was a response, or it is known why there is none.
    has_ended: bool,
}

impl ProtectedPermit {
    /// The head of a response is there, or there will be none. The rest may stream for hours and says nothing about load.
    pub(crate) fn ended(&mut self, result: Result<StatusCode, &UpstreamError>) {
        self.has_ended = true;
        match result {
            Ok(status) => self.answered(status),
            Err(error) => self.failed(error),
        }
    }

    fn answered(&mut self, status: StatusCode) {
        let refuses = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        match refuses {
            true => self.mark_dropped(),
            false => self.accepted(),
        }
        self.end_pass(status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED);
    }

    fn failed(&mut self, error: &UpstreamError) {
        match error.blames_server() {
            true => {
                self.mark_dropped();
                self.end_pass(true);
            }
            false => self.ignore(),
        }
    }

    fn accepted(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.record_now();
        }
        // Of health checks the throttle does not know that they were sent.
        if let Some(throttle) = self.protection.throttle.as_ref().filter(|_| self.served_as == ServedAs::Request) {
            throttle.lock().accepted(self.protection.clock.now());
        }
    }

    fn mark_dropped(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.mark_dropped();
        }
    }

    /// The end says nothing about the upstream.
    fn ignore(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.ignore();
        }
    }

    fn end_pass(&mut self, has_failed: bool) {
        let (Some(pass), Some(breaker)) = (self.pass.take(), &self.protection.breaker) else { return };
        let now = self.protection.clock.now();
        match has_failed {
            true => _ = breaker.lock().failed(pass, now, random::fast()),
            false => breaker.lock().succeeded(pass, now),
        }
    }
}

impl Drop for ProtectedPermit {
    fn drop(&mut self) {
        self.protection.count(self.served_as).fetch_sub(1, Ordering::Relaxed);
        if !self.has_ended {
            self.ignore(); // the caller hung up: how long that took says nothing about the upstream
        }
        if let (Some(pass), Some(breaker)) = (self.pass.take(), &self.protection.breaker) {
            breaker.lock().abandoned(pass);
        }
    }
}
