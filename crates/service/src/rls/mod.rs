//! Envoy's rate limit service: a `RateLimitRequest` becomes requests, their decision a `RateLimitResponse`.
//!
//! Without sockets: gRPC and `POST /json` call it. Every descriptor is one request; its entries are attributes, the
//! domain is the namespace. All descriptors are decided together, all or nothing. Descriptors that ask different things
//! of one bucket are decided in separate rounds. Descriptors with negative hits refund units and are not part of the
//! decision.

mod domain;
mod error;
mod json;
mod limits;
pub(crate) mod local_cache;
mod metadata;
pub(crate) mod read;
pub(crate) mod write;

pub use error::RlsError;
pub use json::{RlsJsonError, read as read_json, write as write_json};
pub use read::{DESCRIPTORS_MAX, ENTRIES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};

pub use crate::rls_config::RlsConfig;

use tollgate_core::Purpose;
use tollgate_engine::{DecidedBy, Decision, Undecided, Verdict};
use tollgate_proto::rls::{RateLimitRequest, RateLimitResponse};

use self::local_cache::CacheLookup;
use self::read::ParsedRls;
use self::write::RlsDecisions;
use crate::service::Service;

/// The answer to a request.
#[derive(Debug)]
pub struct RlsAnswer {
    /// The message for Envoy.
    pub response: RateLimitResponse,
    /// Denied because the store is away, not by a limit. Envoy still gets OVER_LIMIT: on an error it would let the
    /// request pass.
    pub is_closed: bool,
}

/// The result of an immediate attempt.
pub enum RlsOutcome {
    /// Answered.
    Done(Result<RlsAnswer, RlsError>),
    /// The store must be waited for; nothing was charged yet. Holds the undecided request if matching was done.
    Later(Option<Undecided>),
}

/// Answers at once if the store does.
pub fn try_now(service: &Service, request: &RateLimitRequest) -> RlsOutcome {
    let start = service.clock.now();
    let parsed = match ParsedRls::read(request, &service.engine.rules(), start) {
        Ok(parsed)
            if parsed.has_refunds()
                || parsed.rounds() > 1
                || needs_peek(service, &parsed)
                || (parsed.is_domain && service.rls_cache.is_some()) =>
        {
            return RlsOutcome::Later(None);
        }
        Ok(parsed) => parsed,
        Err(refused) => return RlsOutcome::Done(Err(refused)),
    };
    let decision = match service.engine.try_decide(&parsed.requests(0)) {
        Ok(decision) => decision,
        Err(undecided) => return RlsOutcome::Later(Some(undecided)),
    };
    service.record_latency(start);
    let answer = RlsDecisions { rounds: std::slice::from_ref(&decision), refunded: None };
    RlsOutcome::Done(check_valid(&decision).map(|()| build_answer(service, &parsed, answer, &CacheLookup::NONE)))
}

/// Answers, waiting for the store where needed. `begun` is what [`try_now`] left of the first round.
pub async fn should_rate_limit(
    service: &Service,
    request: &RateLimitRequest,
    mut begun: Option<Undecided>,
) -> Result<RlsAnswer, RlsError> {
    let start = service.clock.now();
    let mut parsed = ParsedRls::read(request, &service.engine.rules(), start)?;
    let cached = if begun.is_none() { CacheLookup::of(service, &mut parsed, start) } else { CacheLookup::NONE };
    if !cached.refusals.is_empty() && service.rls.stops_counting {
        parsed.count_nothing();
    } else if begun.is_none() && needs_peek(service, &parsed) {
        let mut over = Vec::new();
        for round in 0..parsed.rounds() {
            let look = Box::pin(service.engine.look_at_all(&parsed.requests(round))).await; // large, and rare
            check_valid(&look)?;
            over.extend(look.rulings().iter().filter(|ruling| ruling.refused()).map(|ruling| ruling.request));
        }
        parsed.count_only(&over);
    }
    let mut rounds: Vec<Decision> = Vec::new();
    for round in 0..parsed.rounds() {
        let mut requests = parsed.requests(round);
        // Outside of domains all or nothing is charged: after a denial, the rest only peeks.
        if !parsed.is_domain && rounds.iter().any(|before| !before.is_allowed()) {
            requests.iter_mut().filter(|own| own.purpose != Purpose::Mention).for_each(|own| *own = own.peek());
        }
        if requests.iter().all(|own| own.purpose == Purpose::Mention) {
            continue; // the local cache refuses all of them
        }
        let decision = match begun.take() {
            Some(undecided) => service.engine.decide_later(&requests, undecided).await,
            None => service.engine.decide_all(&requests).await,
        };
        check_valid(&decision)?;
        rounds.push(decision);
    }
    service.record_latency(start);
    cached.remember(service, &parsed, &rounds, start);
    local_cache::forget_refunded(service, &parsed, start);
    let refunded = match parsed.has_refunds() {
        true => Some(service.engine.refund(&parsed.refunds()).await.map_err(|_| RlsError::StoreUnavailable)?),
        false => None,
    };
    refunded.as_ref().map_or(Ok(()), check_valid)?;
    Ok(build_answer(service, &parsed, RlsDecisions { rounds: &rounds, refunded: refunded.as_ref() }, &cached))
}

/// True if counting depends on which descriptors are over their limits. That takes two steps, as in
/// envoyproxy/ratelimit, and is not exact under contention.
fn needs_peek(service: &Service, parsed: &ParsedRls<'_>) -> bool {
    service.rls.stops_counting && parsed.is_domain && parsed.parts().len() > 1
}

fn check_valid(decision: &Decision) -> Result<(), RlsError> {
    match &decision.verdict {
        Verdict::Invalid(error) => Err(RlsError::Invalid(error.to_string())),
        _ => Ok(()),
    }
}

fn build_answer(
    service: &Service,
    parsed: &ParsedRls<'_>,
    answer: RlsDecisions<'_>,
    cached: &CacheLookup,
) -> RlsAnswer {
    let mut response = write::response(parsed, answer, cached);
    match parsed.is_domain {
        true => service.rls.complete(service, parsed, answer.rounds, cached, &mut response),
        false => write::add_headers(&service.render, answer, &mut response),
    }
    let mut refusals = answer.rounds.iter().filter(|round| !round.is_allowed()).peekable();
    let is_closed = refusals.peek().is_some() && refusals.all(|round| round.decided_by == DecidedBy::Closed);
    RlsAnswer { response, is_closed }
}
