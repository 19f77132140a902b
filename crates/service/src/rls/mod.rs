//! Envoy's rate limit service: a `RateLimitRequest` becomes requests, their decision a `RateLimitResponse`.
//!
//! Without sockets: gRPC and `POST /json` call it. Every descriptor is one request; its entries are attributes, the
//! domain is the namespace. All descriptors are decided together, all or nothing. Descriptors that ask different things
//! of one bucket are decided in separate rounds. Descriptors with negative hits refund units and are not part of the
//! decision.

mod domain;
mod json;
mod limits;
pub(crate) mod local_cache;
mod metadata;
pub(crate) mod read;
pub(crate) mod write;

use std::fmt;
use std::slice;

use tollgate_core::{Purpose, Time};
use tollgate_engine::{DecidedBy, Decision, MatchedRequests, Verdict};
use tollgate_proto::rls::{RateLimitRequest, RateLimitResponse};
use tollgate_telemetry::RlsCallEnd;

pub use self::json::{RlsJsonError, read as read_json, write as write_json};
pub use self::read::{DESCRIPTORS_MAX, ENTRIES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use crate::rls_config::RlsConfig;

use self::local_cache::CacheLookup;
use self::read::ParsedRls;
use self::write::RlsDecisions;
use crate::service::{PendingCheck, Service};

/// The answer to a request.
#[derive(Debug)]
pub struct RlsAnswer {
    /// The message for Envoy.
    pub response: RateLimitResponse,
    /// Denied because the store is away, not by a limit. Envoy still gets OVER_LIMIT: on an error it would let the
    /// request pass.
    pub is_closed: bool,
}

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RlsError {
    /// The caller's mistake; nothing was charged.
    Invalid(String),
    /// Units could not be refunded: the store is away.
    StoreUnavailable,
}

impl fmt::Display for RlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RlsError::Invalid(why) => f.write_str(why),
            RlsError::StoreUnavailable => f.write_str("the store did not answer; nothing was given back"),
        }
    }
}

impl std::error::Error for RlsError {}

/// A request that is not answered at once. Nothing was charged yet.
#[derive(Debug)]
pub struct PendingRls(RlsStep);

#[derive(Debug)]
enum RlsStep {
    /// One decision about all descriptors, which waits for the store.
    Decide(PendingCheck),
    /// More than one step: rounds, refunds, the local cache, or counts that depend on a peek. With the matched
    /// descriptors, if an attempt to decide them at once has matched them.
    Several(Option<Box<MatchedRequests>>),
}

impl Service {
    /// Envoy's `ShouldRateLimit`, answered at once if the store does; `Err` if it has to be waited for.
    pub fn try_rate_limit(&self, message: &RateLimitRequest) -> Result<Result<RlsAnswer, RlsError>, PendingRls> {
        let start = self.clock.now();
        let parsed = match ParsedRls::read(message, &self.engine.rules().rules) {
            Ok(parsed) if parsed.has_refunds() || self.needs_peek(&parsed) || self.has_local_cache(&parsed) => {
                return Err(PendingRls(RlsStep::Several(None)));
            }
            Ok(parsed) => parsed,
            Err(error) => return Ok(self.count_rls_error(Err(error))),
        };
        if parsed.may_need_rounds()
            && let Ok(matched) = self.engine.match_all(&parsed.all_requests())
        {
            return self.try_matched(&parsed, matched, start);
        }
        match self.engine.try_decide_together(&parsed.requests(0)) {
            Some(Ok(decision)) => {
                self.record_latency(start);
                Ok(self.count_rls_error(self.rls_answer_of(&parsed, &decision)))
            }
            Some(Err(undecided)) => Err(PendingRls(RlsStep::Decide(self.pending(undecided, start)))),
            // Overrides may give one bucket two limits: rare enough to match them again.
            None => Err(PendingRls(RlsStep::Several(None))),
        }
    }

    /// The same for descriptors that may have to be decided in rounds.
    fn try_matched(
        &self,
        parsed: &ParsedRls<'_>,
        matched: MatchedRequests,
        start: Time,
    ) -> Result<Result<RlsAnswer, RlsError>, PendingRls> {
        match self.engine.try_decide_matched(&matched, &parsed.all_requests()) {
            Some(decision) => {
                self.record_latency(start);
                Ok(self.count_rls_error(self.rls_answer_of(parsed, &decision)))
            }
            None => Err(PendingRls(RlsStep::Several(Some(Box::new(matched))))),
        }
    }

    /// Finishes what [`Service::try_rate_limit`] began for the same message.
    pub async fn rate_limit_pending(
        &self,
        message: &RateLimitRequest,
        pending: PendingRls,
    ) -> Result<RlsAnswer, RlsError> {
        let answer = match pending.0 {
            RlsStep::Decide(pending) => {
                let parsed = ParsedRls::read(message, &self.engine.rules().rules)?;
                let decision = self.decide_pending(&parsed.requests(0), pending).await;
                self.rls_answer_of(&parsed, &decision)
            }
            RlsStep::Several(matched) => Box::pin(self.rate_limit_in_steps(message, matched)).await, // large, and rare
        };
        self.count_rls_error(answer)
    }

    /// Envoy's `ShouldRateLimit`, waiting for the store where needed.
    pub async fn rate_limit(&self, message: &RateLimitRequest) -> Result<RlsAnswer, RlsError> {
        match self.try_rate_limit(message) {
            Ok(answer) => answer,
            Err(pending) => self.rate_limit_pending(message, pending).await,
        }
    }

    async fn rate_limit_in_steps(
        &self,
        message: &RateLimitRequest,
        matched: Option<Box<MatchedRequests>>,
    ) -> Result<RlsAnswer, RlsError> {
        let start = self.clock.now();
        let matched = match matched {
            Some(matched) => *matched,
            None => {
                let parsed = ParsedRls::read(message, &self.engine.rules().rules)?;
                let matched = self.engine.match_all(&parsed.all_requests());
                matched.map_err(|error| RlsError::Invalid(error.to_string()))?
            }
        };
        let mut parsed = ParsedRls::read(message, matched.rules())?;
        parsed.split_into_rounds(&matched)?;
        let cached = CacheLookup::of(self, &matched, &mut parsed, start);
        if !cached.refusals.is_empty() && self.rls.stops_counting {
            parsed.count_nothing();
        } else if self.needs_peek(&parsed) {
            let mut over = Vec::new();
            for round in 0..parsed.rounds() {
                let look = self.engine.look_at_matched(&matched, &parsed.requests(round)).await;
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
            let decision = self.engine.decide_matched(&matched, &requests).await;
            check_valid(&decision)?;
            rounds.push(decision);
        }
        self.record_latency(start);
        cached.remember(self, &parsed, &rounds, start);
        local_cache::forget_refunded(self, &matched, &parsed);
        let refunded = match parsed.has_refunds() {
            true => {
                let refunded = self.engine.refund_matched(&matched, &parsed.refunds()).await;
                Some(refunded.map_err(|_| RlsError::StoreUnavailable)?)
            }
            false => None,
        };
        refunded.as_ref().map_or(Ok(()), check_valid)?;
        let decisions = RlsDecisions { rounds: &rounds, refunded: refunded.as_ref() };
        Ok(self.rls_answer(&parsed, decisions, &cached))
    }

    /// Counts a call without an answer, by the names of envoyproxy/ratelimit.
    fn count_rls_error(&self, answer: Result<RlsAnswer, RlsError>) -> Result<RlsAnswer, RlsError> {
        match answer {
            Ok(_) => {}
            Err(RlsError::Invalid(_)) => self.rls_stats.calls.count(RlsCallEnd::ServiceError),
            Err(RlsError::StoreUnavailable) => self.rls_stats.calls.count(RlsCallEnd::StoreError),
        }
        answer
    }

    /// True if counting depends on which descriptors are over their limits. That takes two steps, as in
    /// envoyproxy/ratelimit, and is not exact under contention.
    fn needs_peek(&self, parsed: &ParsedRls<'_>) -> bool {
        self.rls.stops_counting && parsed.is_domain && parsed.groups().len() > 1
    }

    /// True if refusals of the message's domain are remembered.
    fn has_local_cache(&self, parsed: &ParsedRls<'_>) -> bool {
        parsed.is_domain && self.rls_cache.is_some()
    }

    /// The answer of one decision about all descriptors.
    fn rls_answer_of(&self, parsed: &ParsedRls<'_>, decision: &Decision) -> Result<RlsAnswer, RlsError> {
        check_valid(decision)?;
        let decisions = RlsDecisions { rounds: slice::from_ref(decision), refunded: None };
        Ok(self.rls_answer(parsed, decisions, &CacheLookup::NONE))
    }

    fn rls_answer(&self, parsed: &ParsedRls<'_>, decisions: RlsDecisions<'_>, cached: &CacheLookup) -> RlsAnswer {
        let mut response = write::response(parsed, decisions, cached);
        match parsed.is_domain {
            true => self.rls.complete(self, parsed, decisions.rounds, cached, &mut response),
            false => write::add_headers(&self.render, decisions, &mut response),
        }
        let mut denials = decisions.rounds.iter().filter(|round| !round.is_allowed()).peekable();
        let is_closed = denials.peek().is_some() && denials.all(|round| round.decided_by == DecidedBy::Closed);
        RlsAnswer { response, is_closed }
    }
}

fn check_valid(decision: &Decision) -> Result<(), RlsError> {
    match &decision.verdict {
        Verdict::Invalid(error) => Err(RlsError::Invalid(error.to_string())),
        _ => Ok(()),
    }
}
