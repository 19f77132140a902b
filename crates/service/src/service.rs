//! The service, which every transport calls, and its decisions: at once where the store answers at once, otherwise in two
//! steps, so that a transport pays for a future only when there is something to wait for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tollgate_core::{Charge, Clock, Enforcement, Request, Span, Time};
use tollgate_engine::{Decision, Engine, Undecided};
use tollgate_store::{Store, StoreError};
use tollgate_telemetry::{DecisionMetrics, RlsStats};

use crate::CheckRequest;
use crate::data_tokens::{DataTokens, TokenScope};
use crate::join::join;
use crate::receipt_sealer::Sealer;
use crate::render::RenderConfig;
use crate::rls_cache::RlsLocalCache;
use crate::rls_config::RlsConfig;
use crate::store::{ConfiguredStore, StoreProbe};
use crate::trace::{DecisionTracer, TraceContext};

/// Checks of batches that may wait for the store at the same time, over all connections: each takes a few kilobytes. A
/// batch without permission is decided all the same, one check after the other.
pub const IN_BATCHES_MAX: usize = 8192;

/// What a [`Service`] is made of.
pub struct ServiceConfig {
    /// Rules and store.
    pub engine: Arc<Engine<ConfiguredStore>>,
    /// The clock of the engine's store.
    pub clock: Arc<dyn Clock>,
    /// How decisions are rendered.
    pub render: RenderConfig,
    /// The tokens that callers must present; `None` if the data API is open.
    pub tokens: Option<Arc<DataTokens>>,
    /// Signs receipts.
    pub sealer: Sealer,
    /// Counts decisions; the engine's observer counts into the same.
    pub metrics: Arc<DecisionMetrics>,
    /// How domains of envoyproxy/ratelimit's files are answered.
    pub rls: RlsConfig,
}

/// Answers every question of every transport.
pub struct Service {
    /// Rules and store. Transports do not call it: they ask [`Service`].
    pub(crate) engine: Arc<Engine<ConfiguredStore>>,
    /// The clock of the engine's store.
    pub clock: Arc<dyn Clock>,
    /// How decisions are rendered.
    pub render: RenderConfig,
    /// The tokens that callers must present; `None` if the data API is open.
    pub tokens: Option<Arc<DataTokens>>,
    /// How domains of envoyproxy/ratelimit's files are answered.
    pub rls: RlsConfig,
    /// Counts of these domains, by the names of envoyproxy/ratelimit.
    pub rls_stats: Arc<RlsStats>,
    /// Refusals of envoyproxy/ratelimit's domains that this node remembers, if that is configured.
    pub rls_cache: Option<RlsLocalCache>,
    pub(crate) sealer: Sealer,
    pub(crate) metrics: Arc<DecisionMetrics>,
    /// One explanation at a time: with many rules it is the work of a thousand checks.
    pub(crate) explaining: Semaphore,
    pub(crate) in_batches: Arc<Semaphore>,
    pub(crate) probe: StoreProbe,
    tracer: Option<Arc<DecisionTracer>>,
}

/// A check that waits for the store. Nothing was charged yet.
#[derive(Debug)]
pub struct PendingCheck {
    undecided: Undecided,
    /// What the attempt to decide at once took. Until the check goes on, its latency does not count: a wait for a
    /// permit or a task is no part of the decision.
    spent: Span,
}

impl Service {
    /// A service over an engine.
    pub fn new(config: ServiceConfig) -> Service {
        let ServiceConfig { engine, clock, render, tokens, sealer, metrics, rls } = config;
        Service {
            engine,
            clock,
            render,
            tokens,
            rls_cache: RlsLocalCache::new(rls.local_cache_bytes),
            rls,
            rls_stats: Arc::default(),
            sealer,
            metrics,
            explaining: Semaphore::new(1),
            in_batches: Arc::new(Semaphore::new(IN_BATCHES_MAX)),
            probe: StoreProbe::default(),
            tracer: None,
        }
    }

    /// The same service, whose decisions are traced.
    pub fn with_tracer(self, tracer: Arc<DecisionTracer>) -> Service {
        Service { tracer: Some(tracer), ..self }
    }

    /// The trace of a request with these values of `traceparent`; `None` while tracing is off.
    pub fn trace<'a, I: Iterator<Item = &'a [u8]>>(&self, sent: impl FnOnce() -> I) -> Option<TraceContext> {
        self.tracer.as_ref().map(|tracer| tracer.context(sent()))
    }

    /// The scope of an `Authorization` value; `None` if a token is required and this one is not accepted.
    pub fn authorize(&self, authorization: Option<&[u8]>) -> Option<TokenScope> {
        self.tokens.as_ref().map_or(Some(TokenScope::ALL), |tokens| tokens.authorize(authorization))
    }

    /// True if a scope covers a namespace.
    pub fn may_ask(&self, scope: TokenScope, namespace: &str) -> bool {
        scope.is_for_all() || self.tokens.as_ref().is_none_or(|tokens| tokens.covers(scope, namespace))
    }

    /// Decides at once, all or nothing; `Err` if the store has to be waited for.
    pub fn try_decide(&self, requests: &[Request<'_>]) -> Result<Decision, PendingCheck> {
        let start = self.clock.now();
        match self.engine.try_decide(requests) {
            Ok(decision) => {
                self.record_latency(start);
                Ok(decision)
            }
            Err(undecided) => Err(self.pending(undecided, start)),
        }
    }

    /// The same for pipelined requests: latency counts from `start`, and the time of the decision is the next one's
    /// start.
    pub fn try_decide_from(&self, start: Time, requests: &[Request<'_>]) -> Result<(Decision, Time), PendingCheck> {
        match self.engine.try_decide(requests) {
            Ok(decision) => {
                let now = self.record_latency_until(start, decision.now);
                Ok((decision, now))
            }
            Err(undecided) => Err(self.pending(undecided, start)),
        }
    }

    /// Finishes what [`Service::try_decide`] began for the same requests.
    pub async fn decide_pending(&self, requests: &[Request<'_>], pending: PendingCheck) -> Decision {
        let PendingCheck { undecided, spent } = pending;
        let start = self.clock.now();
        let decision = self.engine.decide_later(requests, undecided).await;
        self.metrics.observe_latency(self.clock.now().since(start).plus(spent));
        decision
    }

    #[cold]
    pub(crate) fn pending(&self, undecided: Undecided, start: Time) -> PendingCheck {
        PendingCheck { undecided, spent: self.clock.now().since(start) }
    }

    /// Decides one request, waiting for the store up to the engine's deadline.
    pub async fn decide(&self, request: &CheckRequest<'_>) -> Decision {
        let lists = request.lists();
        let start = self.clock.now();
        let decision = self.engine.decide(&request.request(&lists)).await;
        self.record_latency(start);
        decision
    }

    /// Decides each request by itself and reports the decisions in order. Requests that wait for a shared store wait
    /// together.
    pub async fn decide_each(&self, requests: &[CheckRequest<'_>], mut report: impl FnMut(&Decision)) {
        let decided = match self.engine.store().is_shared() {
            true => 0,
            false => self.decide_each_now(requests, &mut report),
        };
        if let Some(rest) = requests.get(decided..).filter(|rest| !rest.is_empty()) {
            self.decide_concurrently(rest).await.iter().for_each(report);
        }
    }

    /// Decides one after the other until one has to wait; returns how many were decided.
    fn decide_each_now(&self, requests: &[CheckRequest<'_>], report: &mut impl FnMut(&Decision)) -> usize {
        let mut start = self.clock.now();
        for (index, request) in requests.iter().enumerate() {
            let lists = request.lists();
            match self.try_decide_from(start, &[request.request(&lists)]) {
                Ok((decision, now)) => {
                    report(&decision);
                    start = now;
                }
                Err(_) => return index,
            }
        }
        requests.len()
    }

    async fn decide_concurrently(&self, requests: &[CheckRequest<'_>]) -> Vec<Decision> {
        let width = self.batch_width(requests.len());
        Box::pin(join(requests.iter().map(|request| self.decide(request)), width.checks())).await
    }

    /// Gives back what requests were charged, as far as the buckets still owe it.
    pub async fn refund(&self, start: Time, within: Duration, requests: &[Request<'_>]) -> Option<Decision> {
        let decision = timeout(within, self.engine.refund(requests)).await;
        self.record_latency(start);
        decision.ok()?.ok()
    }

    /// Permission for up to `wanted` checks of one batch to wait for the store at the same time.
    pub(crate) fn batch_width(&self, wanted: usize) -> BatchWidth<'_> {
        BatchWidth::take(&self.in_batches, wanted)
    }

    /// The permits of checks in batches and streams: a stream takes one for each check while it waits for the store.
    pub fn batch_permits(&self) -> Arc<Semaphore> {
        self.in_batches.clone()
    }

    /// Ends the penalties of a bucket, and forgets them. False if none was in force.
    pub async fn lift_penalty(&self, bucket: &Charge) -> Result<bool, StoreError> {
        self.engine.lift_penalty(bucket).await
    }

    /// The generation of the active rules.
    pub fn generation(&self) -> u64 {
        self.engine.rules().number
    }

    /// True if there is a rule in the namespace.
    pub fn has_rules(&self, namespace: &str) -> bool {
        self.engine.rules().rules.has_rules(namespace)
    }

    /// True if a rule of the namespace counts the meter.
    pub fn counts(&self, namespace: &str, meter: &str) -> bool {
        self.engine.rules().rules.counts(namespace, meter)
    }

    /// Whether the rules are enforced, only watched, or off.
    pub fn enforcement(&self) -> Enforcement {
        self.engine.enforcement()
    }

    /// Records the latency of a decision that began at `start`; returns the time.
    pub(crate) fn record_latency(&self, start: Time) -> Time {
        let now = self.clock.now();
        self.metrics.observe_latency(now.since(start));
        now
    }

    /// The same for a decision at `decided`, by the store's clock. That is this node's clock if the store is: reading it
    /// again is saved.
    #[inline]
    pub(crate) fn record_latency_until(&self, start: Time, decided: Time) -> Time {
        if self.engine.store().is_shared() {
            return self.record_latency(start);
        }
        self.metrics.observe_latency(decided.since(start));
        decided
    }
}

/// How many checks of a batch run at once.
#[derive(Debug)]
pub(crate) struct BatchWidth<'a> {
    checks: usize,
    _permit: Option<SemaphorePermit<'a>>,
}

impl BatchWidth<'_> {
    fn take(permits: &Semaphore, wanted: usize) -> BatchWidth<'_> {
        let wanted = wanted.min(permits.available_permits());
        let permit = u32::try_from(wanted).ok().and_then(|wanted| permits.try_acquire_many(wanted).ok());
        BatchWidth { checks: if permit.is_some() { wanted.max(1) } else { 1 }, _permit: permit }
    }

    /// How many run at once; at least one.
    pub(crate) fn checks(&self) -> usize {
        self.checks
    }
}

#[cfg(test)]
mod tests {
    use tollgate_engine::Engine;

    use super::*;
    use crate::store::ConfiguredStore;

    /// Size of the future that a call would return.
    fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    /// The future is copied to the heap for every check that waits for a shared store.
    #[test]
    fn the_future_of_a_waiting_check_is_small() {
        let later = size(|(engine, undecided): (&'static Engine<ConfiguredStore>, Undecided)| {
            engine.decide_later(&[], undecided)
        });
        assert!(later <= 2560, "{later} bytes");
    }

    /// A decision in memory carries nothing of what a network call needs.
    #[test]
    fn the_future_of_a_decision_in_memory_is_smaller() {
        let decide = size(|engine: &'static Engine<ConfiguredStore>| engine.decide_all(&[]));
        assert!(decide <= 640, "{decide} bytes");
    }
}
