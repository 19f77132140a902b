//! Envoy's rate limit service: a `RateLimitRequest` becomes requests, their decision a `RateLimitResponse`.
//!
//! Knows nothing of sockets: [`tollgate_grpc`] carries it, and `POST /json` does. Every descriptor is one request, its
//! entries are attributes, its domain is the namespace; all of them are decided together, all or nothing. Where two ask
//! different things of one bucket, they are decided in turn. Descriptors with negative hits give units back and are no
//! part of the decision.

mod domain;
mod error;
mod json;
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

use self::read::ParsedRls;
use self::write::RlsDecisions;
use crate::service::Service;

/// What is answered to a request.
#[derive(Debug)]
pub struct RlsAnswer {
    /// What Envoy is told.
    pub response: RateLimitResponse,
    /// It is refused because the store is away, and by no limit of the caller's. Envoy is told OVER_LIMIT all the same: it
    /// lets requests pass whose rate limit service fails.
    pub is_closed: bool,
}

/// What became of a request at once.
pub enum RlsOutcome {
    /// It was answered.
    Done(Result<RlsAnswer, RlsError>),
    /// The store has to be waited for, and nothing was charged yet: what is left to be decided, if it was looked at.
    Later(Option<Undecided>),
}

/// Answers what can be decided at once.
pub fn try_now(service: &Service, request: &RateLimitRequest) -> RlsOutcome {
    let start = service.clock.now();
    let asked = match ParsedRls::read(request, &service.engine.rules(), start) {
        Ok(asked) if asked.gives_back() || asked.turns() > 1 || looks_first(service, &asked) => {
            return RlsOutcome::Later(None);
        }
        Ok(asked) => asked,
        Err(refused) => return RlsOutcome::Done(Err(refused)),
    };
    let decision = match service.engine.try_decide(&asked.requests(0)) {
        Ok(decision) => decision,
        Err(undecided) => return RlsOutcome::Later(Some(undecided)),
    };
    service.record_latency(start);
    let answer = RlsDecisions { turns: std::slice::from_ref(&decision), given: None };
    RlsOutcome::Done(valid(&decision).map(|()| conclude(service, &asked, answer)))
}

/// Answers, whoever has to be waited for. `begun` is what [`try_now`] left of the first turn.
pub async fn should_rate_limit(
    service: &Service,
    request: &RateLimitRequest,
    mut begun: Option<Undecided>,
) -> Result<RlsAnswer, RlsError> {
    let start = service.clock.now();
    let mut asked = ParsedRls::read(request, &service.engine.rules(), start)?;
    if begun.is_none() && looks_first(service, &asked) {
        let mut over = Vec::new();
        for turn in 0..asked.turns() {
            let look = Box::pin(service.engine.look_at_all(&asked.requests(turn))).await; // large, and rare
            valid(&look)?;
            over.extend(look.rulings().iter().filter(|ruling| ruling.refused()).map(|ruling| ruling.request));
        }
        asked.count_only(&over);
    }
    let mut turns: Vec<Decision> = Vec::new();
    for turn in 0..asked.turns() {
        let mut requests = asked.requests(turn);
        // Rules of our own charge all or nothing: after a refusal, the rest is only told how it stands.
        if !asked.is_domain && turns.iter().any(|before| !before.is_allowed()) {
            requests.iter_mut().filter(|own| own.purpose != Purpose::Mention).for_each(|own| *own = own.peek());
        }
        let decision = match begun.take() {
            Some(undecided) => service.engine.decide_later(&requests, undecided).await,
            None => service.engine.decide_all(&requests).await,
        };
        valid(&decision)?;
        turns.push(decision);
    }
    service.record_latency(start);
    let given = match asked.gives_back() {
        true => Some(service.engine.refund(&asked.refunds()).await.map_err(|_| RlsError::StoreUnavailable)?),
        false => None,
    };
    given.as_ref().map_or(Ok(()), valid)?;
    Ok(conclude(service, &asked, RlsDecisions { turns: &turns, given: given.as_ref() }))
}

/// Whether what is counted depends on what is over its limit: two steps, as there, and so not exact under contention.
fn looks_first(service: &Service, asked: &ParsedRls<'_>) -> bool {
    service.rls.stops_counting && asked.is_domain && asked.parts().len() > 1
}

fn valid(decision: &Decision) -> Result<(), RlsError> {
    match &decision.verdict {
        Verdict::Invalid(error) => Err(RlsError::Invalid(error.to_string())),
        _ => Ok(()),
    }
}

fn conclude(service: &Service, asked: &ParsedRls<'_>, answer: RlsDecisions<'_>) -> RlsAnswer {
    let mut response = write::response(asked, answer);
    match asked.is_domain {
        true => service.rls.complete(service, asked, answer.turns, &mut response),
        false => write::add_headers(&service.render, answer, &mut response),
    }
    let mut refusals = answer.turns.iter().filter(|turn| !turn.is_allowed()).peekable();
    let is_closed = refusals.peek().is_some() && refusals.all(|turn| turn.decided_by == DecidedBy::Closed);
    RlsAnswer { response, is_closed }
}
