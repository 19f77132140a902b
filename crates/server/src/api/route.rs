//! Which paths there are, and what may be done with each.

use crate::answer::Dialect;

/// What is asked of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// May this request pass?
    Check(Dialect),
    /// May each of these?
    Batch,
    /// The same at an estimated cost, to be settled.
    Reserve,
    /// The real cost of what was reserved.
    Settle,
    /// The same, holding slots.
    Acquire,
    /// A heartbeat for slots.
    Renew,
    /// Slots come back.
    Release,
    /// Why would it pass?
    Explain,
    /// Envoy's rate limit service, as JSON.
    EnvoyJson,
    /// How envoyproxy/ratelimit says that it is well.
    EnvoyHealth,
    /// Its counts, under its names.
    EnvoyStats,
    /// The rules of its files, as it prints them.
    EnvoyRules,
    /// Is the process alive?
    Live,
    /// May requests be sent here?
    Ready,
    /// Figures for Prometheus.
    Metrics,
}

/// Which listener a call came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The data API.
    Data,
    /// What operators look at and change.
    Admin,
    /// What only tells how things are.
    Metrics,
    /// gRPC, by a protocol of its own.
    Grpc,
    /// RESP, likewise.
    Resp,
}

impl Route {
    /// Every name, for metrics.
    pub const NAMES: &[&str] = &[
        "/v1/check",
        "/v1/check/batch",
        "/v1/reserve",
        "/v1/settle",
        "/v1/slots/acquire",
        "/v1/slots/renew",
        "/v1/slots/release",
        "/v1/explain",
        crate::forward_auth::PREFIX,
        "/json",
        "/healthcheck",
        "/stats",
        "/rlconfig",
        "/live",
        "/ready",
        "/metrics",
    ];

    /// The route of a path.
    pub fn find(surface: Surface, path: &str) -> Option<Route> {
        Some(match (surface, path) {
            (Surface::Data, "/v1/check" | "/rate-limit/check") => Route::Check(Dialect::V1),
            (Surface::Data, "/check") => Route::Check(Dialect::Alias),
            (Surface::Data, "/v1/check/batch") => Route::Batch,
            (Surface::Data, "/v1/reserve") => Route::Reserve,
            (Surface::Data, "/v1/settle") => Route::Settle,
            (Surface::Data, "/v1/slots/acquire") => Route::Acquire,
            (Surface::Data, "/v1/slots/renew") => Route::Renew,
            (Surface::Data, "/v1/slots/release") => Route::Release,
            (Surface::Data, "/v1/explain") => Route::Explain,
            (Surface::Data, "/json") => Route::EnvoyJson,
            (Surface::Data, "/healthcheck") => Route::EnvoyHealth,
            (Surface::Metrics, "/stats") => Route::EnvoyStats,
            (Surface::Metrics, "/rlconfig") => Route::EnvoyRules,
            (Surface::Admin | Surface::Metrics, "/metrics") => Route::Metrics,
            (_, "/live") => Route::Live,
            (_, "/ready") => Route::Ready,
            _ => return None,
        })
    }

    /// The name in metrics: one per route, whatever was sent.
    pub const fn name(self) -> &'static str {
        match self {
            Route::Check(_) => "/v1/check",
            Route::Batch => "/v1/check/batch",
            Route::Reserve => "/v1/reserve",
            Route::Settle => "/v1/settle",
            Route::Acquire => "/v1/slots/acquire",
            Route::Renew => "/v1/slots/renew",
            Route::Release => "/v1/slots/release",
            Route::Explain => "/v1/explain",
            Route::EnvoyJson => "/json",
            Route::EnvoyHealth => "/healthcheck",
            Route::EnvoyStats => "/stats",
            Route::EnvoyRules => "/rlconfig",
            Route::Live => "/live",
            Route::Ready => "/ready",
            Route::Metrics => "/metrics",
        }
    }

    /// True for what is asked by GET: it changes nothing.
    pub const fn only_reads(self) -> bool {
        matches!(
            self,
            Route::Live | Route::Ready | Route::Metrics | Route::EnvoyHealth | Route::EnvoyStats | Route::EnvoyRules
        )
    }

    /// True for what anybody may ask, token or not.
    pub const fn is_public(self) -> bool {
        matches!(self, Route::Live | Route::Ready | Route::EnvoyHealth)
    }
}
