//! The service: what every transport calls.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tollgate_core::{Clock, Enforcement, Time};
use tollgate_engine::Engine;
use tollgate_store::Store;
use tollgate_telemetry::{DecisionMetrics, RlsStats};

use crate::data_tokens::{DataTokens, TokenScope};
use crate::receipt_sealer::Sealer;
use crate::render::RenderConfig;
use crate::rls_config::RlsConfig;
use crate::store::{ConfiguredStore, StoreProbe};

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
    pub(crate) sealer: Sealer,
    pub(crate) metrics: Arc<DecisionMetrics>,
    /// One explanation at a time: with many rules it is the work of a thousand checks.
    pub(crate) explaining: Semaphore,
    pub(crate) in_batches: Semaphore,
    pub(crate) probe: StoreProbe,
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
            rls,
            rls_stats: Arc::default(),
            sealer,
            metrics,
            explaining: Semaphore::new(1),
            in_batches: Semaphore::new(IN_BATCHES_MAX),
            probe: StoreProbe::default(),
        }
    }

    /// The scope of an `Authorization` value; `None` if a token is required and this one is not accepted.
    pub fn authorize(&self, authorization: Option<&[u8]>) -> Option<TokenScope> {
        self.tokens.as_ref().map_or(Some(TokenScope::ALL), |tokens| tokens.authorize(authorization))
    }

    /// True if a scope covers a namespace.
    pub fn may_ask(&self, scope: TokenScope, namespace: &str) -> bool {
        scope.is_for_all() || self.tokens.as_ref().is_none_or(|tokens| tokens.covers(scope, namespace))
    }

    /// The generation of the active rules.
    pub fn generation(&self) -> u64 {
        self.engine.rules().number
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
