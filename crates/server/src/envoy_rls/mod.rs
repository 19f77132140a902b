//! Envoy's rate limit service: a `RateLimitRequest` becomes requests, their decision a `RateLimitResponse`.
//!
//! Knows nothing of sockets: [`crate::grpc`] carries it, and `POST /json` does. Every descriptor is one request, its
//! entries are attributes, its domain is the namespace; all of them are decided together, all or nothing. Descriptors with
//! negative hits give units back and are no part of the decision.

mod domain;
mod json;
pub(crate) mod read;
pub(crate) mod write;

pub use domain::Domains;
pub use json::{Unreadable, read as read_json, write as write_json};
pub use read::{DESCRIPTORS_MAX, ENTRIES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};

use std::fmt;

use tollgate_core::Time;
use tollgate_engine::{Decision, Verdict};
use tollgate_proto::rls::{RateLimitRequest, RateLimitResponse};

use self::read::Asked;
use crate::api::Shared;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The caller's mistake; nothing was charged.
    Invalid(String),
    /// Units could not be given back: the store is away.
    StoreAway,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Invalid(why) => f.write_str(why),
            Refused::StoreAway => f.write_str("the store did not answer; nothing was given back"),
        }
    }
}

impl std::error::Error for Refused {}

/// Answers what can be decided at once; `None` if somebody has to be waited for, and nothing was charged yet.
pub fn try_now(shared: &Shared, request: &RateLimitRequest) -> Option<Result<RateLimitResponse, Refused>> {
    let asked = match Asked::read(request, &shared.engine.rules()) {
        Ok(asked) if asked.gives_back() => return None,
        Ok(asked) => asked,
        Err(refused) => return Some(Err(refused)),
    };
    let start = shared.clock.now();
    let decision = shared.engine.try_decide(&asked.requests()).ok()?;
    lap(shared, start);
    Some(conclude(shared, &asked, &decision, None))
}

/// Answers, whoever has to be waited for.
pub async fn should_rate_limit(shared: &Shared, request: &RateLimitRequest) -> Result<RateLimitResponse, Refused> {
    let asked = Asked::read(request, &shared.engine.rules())?;
    let start = shared.clock.now();
    let decision = shared.engine.decide_all(&asked.requests()).await;
    lap(shared, start);
    if let Verdict::Invalid(_) = decision.verdict {
        return conclude(shared, &asked, &decision, None);
    }
    let given = match asked.gives_back() {
        true => Some(shared.engine.refund(&asked.refunds()).await.map_err(|_| Refused::StoreAway)?),
        false => None,
    };
    conclude(shared, &asked, &decision, given.as_ref())
}

fn conclude(
    shared: &Shared,
    asked: &Asked<'_>,
    decision: &Decision,
    given: Option<&Decision>,
) -> Result<RateLimitResponse, Refused> {
    for decision in [Some(decision), given].into_iter().flatten() {
        if let Verdict::Invalid(error) = &decision.verdict {
            return Err(Refused::Invalid(error.to_string()));
        }
    }
    let mut response = write::response(asked, decision, given);
    match asked.is_domain {
        true => shared.envoy.complete(shared, asked, decision, &mut response),
        false => write::add_headers(&shared.answer, decision, &mut response),
    }
    Ok(response)
}

fn lap(shared: &Shared, start: Time) {
    shared.metrics.observe_latency(shared.clock.now().since(start));
}
