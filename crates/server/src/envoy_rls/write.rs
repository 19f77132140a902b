//! From a decision to a message.

use bytes::Bytes;
use prost_types::Duration;
use tollgate_core::{Span, Wait};
use tollgate_engine::{Decision, Ruling};
use tollgate_proto::HeaderValue;
use tollgate_proto::rls::RateLimitResponse;
use tollgate_proto::rls::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use tollgate_rules::ruleset::Rule;

use super::read::{Asked, Part};
use super::units;
use crate::Reply;
use crate::answer::{self, Asking};
use crate::api::Shared;

pub(super) fn response(
    shared: &Shared,
    asked: &Asked<'_>,
    decision: &Decision,
    given: Option<&Decision>,
) -> RateLimitResponse {
    let status = |part: Part| match part {
        Part::Asked(place) => status_of(decision, place),
        Part::Given(place) => given.map_or_else(DescriptorStatus::default, |given| status_of(given, place)),
    };
    let mut response = RateLimitResponse {
        overall_code: Code::Ok.into(),
        statuses: asked.parts().map(status).collect(),
        ..RateLimitResponse::default()
    };
    if !decision.is_allowed() {
        response.overall_code = Code::OverLimit.into();
    }
    add_headers(shared, decision, &mut response);
    response
}

/// What was said about one descriptor. Whether it is refused is told by itself: another one may have been the reason
/// for the refusal of all.
fn status_of(decision: &Decision, place: u16) -> DescriptorStatus {
    let own = || decision.rulings().iter().filter(|ruling| ruling.request == place);
    let over = own().any(|ruling| ruling.enforced && ruling.refused());
    let mut status = DescriptorStatus { code: Code::Ok.into(), ..DescriptorStatus::default() };
    if over {
        status.code = Code::OverLimit.into();
    }
    let Some(ruling) = decision.deciding_for(place) else { return status };
    let Some(rule) = decision.rule(ruling) else { return status };
    match &ruling.outcome {
        None if rule.limit.is_none() => status.limit_remaining = u32::MAX,
        None => {}
        Some(outcome) => {
            status.current_limit = Some(current_limit(rule, ruling));
            status.limit_remaining = u32::try_from(outcome.remaining).unwrap_or(u32::MAX);
            let until = match outcome.wait {
                Wait::For(wait) => wait,
                Wait::None | Wait::Never => outcome.reset_after,
            };
            status.duration_until_reset = Some(whole_seconds(until));
        }
    }
    status
}

fn current_limit(rule: &Rule, ruling: &Ruling) -> RateLimit {
    RateLimit {
        name: rule.name.clone(),
        requests_per_unit: u32::try_from(ruling.requests).unwrap_or(u32::MAX),
        unit: rule.limit.map_or(0, |limit| units::unit_of(limit.window()).into()),
    }
}

/// Envoy shows callers the seconds and drops the rest, so there must be no rest.
fn whole_seconds(span: Span) -> Duration {
    Duration { seconds: i64::try_from(span.secs_ceil()).unwrap_or(i64::MAX), nanos: 0 }
}

/// Header fields go into `value`: Envoy sends those in `raw_value` empty. It appends them to what is there already, so
/// an allowed answer tells nothing of a body that it does not have.
fn add_headers(shared: &Shared, decision: &Decision, response: &mut RateLimitResponse) {
    let asking = Asking { refuse_by_status: Some(true), lot: tollgate_engine::lot(), ..Asking::default() };
    let mut reply = Reply::default();
    match decision.is_allowed() {
        true => answer::fields(decision, &asking, &shared.answer, &mut reply.fields),
        false => answer::answer(decision, &asking, &shared.answer, &mut reply),
    }
    let header = |(name, value): (&'static str, &[u8])| HeaderValue {
        key: name.to_ascii_lowercase(),
        value: String::from_utf8_lossy(value).into_owned(),
        ..HeaderValue::default()
    };
    response.response_headers_to_add = reply.fields.iter().map(header).collect();
    response.raw_body = Bytes::from(reply.body);
}
