//! Envoy's rate limit service: a `RateLimitRequest` becomes requests, their decision a `RateLimitResponse`.
//!
//! Knows nothing of sockets: [`crate::grpc`] carries it, and `POST /json` does.

use tollgate_proto::rls::{RateLimitRequest, RateLimitResponse};

use crate::api::Shared;

/// Why there is no answer: the caller's fault, and nothing was charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// Decides. What needs nobody else is decided at once; `Err(…)` is INVALID_ARGUMENT.
pub async fn should_rate_limit(_shared: &Shared, _request: &RateLimitRequest) -> Result<RateLimitResponse, Refused> {
    Err(Refused("not yet".to_owned()))
}
