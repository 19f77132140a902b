//! The paths of the check API.

use tollgate_service::render::Dialect;

/// A data endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Decides one request.
    Check(Dialect),
    /// Decides each request of a list.
    Batch,
    /// Decides at an estimated cost, to be settled later.
    Reserve,
    /// Takes the next step of a reservation.
    Extend,
    /// Settles a reservation at its real amounts.
    Settle,
    /// Decides, and holds slots.
    Acquire,
    /// Renews slots: their heartbeat.
    Renew,
    /// Releases slots.
    Release,
    /// Explains how each rule evaluates a request.
    Explain,
    /// What a client has used.
    Usage,
    /// Envoy's rate limit service as JSON.
    RlsJson,
    /// The health check of envoyproxy/ratelimit.
    RlsHealth,
    /// Liveness: the process runs.
    Live,
    /// Readiness: this node accepts requests.
    Ready,
    /// The description of this API.
    OpenApi,
}

impl Route {
    /// Every path, for metrics.
    pub const PATHS: &[&str] = &[
        "/v1/check",
        "/v1/check/batch",
        "/v1/reserve",
        "/v1/extend",
        "/v1/settle",
        "/v1/slots/acquire",
        "/v1/slots/renew",
        "/v1/slots/release",
        "/v1/explain",
        "/v1/usage",
        "/json",
        "/healthcheck",
        "/live",
        "/ready",
        "/openapi.json",
    ];

    /// The route of a path.
    pub fn find(path: &str) -> Option<Route> {
        Some(match path {
            "/v1/check" | "/rate-limit/check" => Route::Check(Dialect::V1),
            "/check" => Route::Check(Dialect::Alias),
            "/v1/check/batch" => Route::Batch,
            "/v1/reserve" => Route::Reserve,
            "/v1/extend" => Route::Extend,
            "/v1/settle" => Route::Settle,
            "/v1/slots/acquire" => Route::Acquire,
            "/v1/slots/renew" => Route::Renew,
            "/v1/slots/release" => Route::Release,
            "/v1/explain" => Route::Explain,
            "/v1/usage" => Route::Usage,
            "/json" => Route::RlsJson,
            "/healthcheck" => Route::RlsHealth,
            "/live" => Route::Live,
            "/ready" => Route::Ready,
            "/openapi.json" => Route::OpenApi,
            _ => return None,
        })
    }

    /// The path in metrics: one per route; aliases share it.
    pub const fn path(self) -> &'static str {
        match self {
            Route::Check(_) => "/v1/check",
            Route::Batch => "/v1/check/batch",
            Route::Reserve => "/v1/reserve",
            Route::Extend => "/v1/extend",
            Route::Settle => "/v1/settle",
            Route::Acquire => "/v1/slots/acquire",
            Route::Renew => "/v1/slots/renew",
            Route::Release => "/v1/slots/release",
            Route::Explain => "/v1/explain",
            Route::Usage => "/v1/usage",
            Route::RlsJson => "/json",
            Route::RlsHealth => "/healthcheck",
            Route::Live => "/live",
            Route::Ready => "/ready",
            Route::OpenApi => "/openapi.json",
        }
    }

    /// True for GET routes, which change nothing.
    pub const fn is_read_only(self) -> bool {
        matches!(self, Route::Live | Route::Ready | Route::RlsHealth | Route::Usage | Route::OpenApi)
    }

    /// True for routes that need no token.
    pub const fn is_public(self) -> bool {
        matches!(self, Route::Live | Route::Ready | Route::RlsHealth | Route::OpenApi)
    }
}
