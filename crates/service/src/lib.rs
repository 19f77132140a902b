//! The application layer: every question that a transport can ask, answered without sockets.
//!
//! A transport turns bytes into a [`CheckRequest`], calls [`Service`], and renders the decision with [`render`]. It
//! never calls the engine and never touches the metrics of another transport.
//!
//! | question | method |
//! |---|---|
//! | may this request pass? | [`Service::try_decide`], [`Service::decide_pending`], [`Service::decide`] |
//! | may each of these? | [`Service::decide_each`] |
//! | reserve an estimate, hold a slot | [`Service::reserve`], [`Service::settle`], [`Service::renew`], [`Service::release`] |
//! | the same for a request that runs in this process | [`Service::hold`], [`Service::hold_estimates`] |
//! | Envoy's `ShouldRateLimit` | [`Service::try_rate_limit`], [`Service::rate_limit_pending`], [`Service::rate_limit`] |
//! | a limit that comes with the request (`CL.THROTTLE`) | [`Service::try_throttle`], [`Service::throttle_all`] |
//! | why would it pass? | [`Service::explain`] |
//! | which token is this? | [`data_tokens`], [`admin_tokens`] |
//! | which rules are active? | [`Service::generation`], [`Service::enforcement`], [`Service::rls_limits`] |
//! | is the store reachable? | [`Service::store_health`], [`Service::store_was_reachable`] |

pub mod admin_tokens;
pub mod api_keys;
pub mod auth_throttle;
pub mod check_request;
pub mod data_tokens;
mod events;
pub mod explain;
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod held;
mod join;
pub mod mask;
mod observer;
pub mod penalties;
pub mod plans;
mod quota_marks;
pub mod receipt_sealer;
pub mod refusal;
mod reported_marks;
mod reservations;
pub mod rls;
mod rls_cache;
mod rls_config;
pub mod secrets;
mod service;
mod steady_refusals;
pub mod store;
mod throttle;
pub mod trace;
pub mod traffic;
mod usage;
pub mod usage_history;
pub mod violations;

pub use check_request::CheckRequest;
pub use events::{EventKind, EventQueue, OperatorEvent};
pub use explain::Unexplained;
pub use health::HealthDetail;
pub use held::{HeldAmounts, HeldRequest};
pub use observer::ServiceObserver;
pub use quota_marks::QuotaMarks;
pub use receipt_sealer::Sealer;
pub use refusal::ApiError;
pub use reservations::{Extended, SignedReceipt};
pub use rls_cache::RlsLocalCache;
pub use service::{IN_BATCHES_MAX, PendingCheck, Service, ServiceConfig};
pub use steady_refusals::SteadyRefusals;
pub use throttle::PipelinedCharge;
/// Renders decisions.
pub use tollgate_render as render;
pub use tollgate_render::{HeaderFields, Reply};
pub use usage::UsageRejection;

/// What decisions are made of. Transports take these types from here: they do not depend on the engine.
pub use tollgate_engine::{
    DecidedBy, Decision, DecisionId, Ruling, Settled, SingleDecision, UnchargedUnits, Verdict, random, with_deadline,
};
