//! Writes decisions as a `RateLimitResponse`.

use bytes::Bytes;
use prost_types::Duration;
use tollgate_core::{Span, Wait};
use tollgate_engine::{Decision, Ruling};
use tollgate_proto::rls::RateLimitResponse;
use tollgate_proto::rls::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use tollgate_proto::{HeaderValue, RateLimitDescriptor};
use tollgate_rules::envoy::Unit;
use tollgate_ruleset::Rule;

use super::read::{DescriptorGroup, ParsedRls};
use crate::HeaderFields;
use crate::render::{self, RenderConfig, ResponseOptions};

/// The decisions about a message.
#[derive(Clone, Copy)]
pub(crate) struct RlsDecisions<'a> {
    /// One per round; most messages take one.
    pub(crate) rounds: &'a [Decision],
    /// The state after refunds.
    pub(crate) refunded: Option<&'a Decision>,
}

/// The part that is the same for all rules: the code, and the status of each descriptor.
pub(crate) fn response(parsed: &ParsedRls<'_>, decisions: RlsDecisions<'_>) -> RateLimitResponse {
    let status = |((index, group), descriptor): ((u16, &DescriptorGroup), &RateLimitDescriptor)| match group {
        DescriptorGroup::Round(round) => {
            let decision = decisions.rounds.get(usize::from(*round));
            decision.map(|decision| status_of(decision, index, descriptor, |index| parsed.hits_in_order(index)))
        }
        // A refund is never over the limit.
        DescriptorGroup::Refund => decisions.refunded.map(|refunded| DescriptorStatus {
            code: Code::Ok.into(),
            ..status_of(refunded, index, descriptor, |_| 0)
        }),
    };
    let statuses = (0..).zip(parsed.groups()).zip(&parsed.message.descriptors);
    let mut response = RateLimitResponse {
        overall_code: Code::Ok.into(),
        statuses: statuses.map(|one| status(one).unwrap_or_default()).collect(),
        ..RateLimitResponse::default()
    };
    if decisions.rounds.iter().any(|decision| !decision.is_allowed()) {
        response.overall_code = Code::OverLimit.into();
    }
    response
}

/// The status of one descriptor by itself: another one may be the reason why all were denied.
fn status_of(
    decision: &Decision,
    index: u16,
    descriptor: &RateLimitDescriptor,
    hits: impl Fn(u16) -> u64,
) -> DescriptorStatus {
    let own = || decision.rulings().iter().filter(|ruling| ruling.request == index);
    let over = own().any(|ruling| is_over(decision, ruling, &hits));
    let mut status = DescriptorStatus { code: Code::Ok.into(), ..DescriptorStatus::default() };
    if over {
        status.code = Code::OverLimit.into();
    }
    let Some(ruling) = decision.deciding_for(index) else { return status };
    let Some(rule) = decision.rule(ruling) else { return status };
    match &ruling.outcome {
        None if rule.limit.is_none() => status.limit_remaining = u32::MAX,
        None => {}
        Some(outcome) => {
            status.current_limit = Some(current_limit(rule, ruling, descriptor));
            let remaining = match count_before_others(decision, ruling, &hits) {
                Some(used) => outcome.limit.saturating_sub(used),
                None => outcome.remaining,
            };
            status.limit_remaining = u32::try_from(remaining).unwrap_or(u32::MAX);
            let until = match (outcome.wait, &rule.envoy) {
                (Wait::For(wait), None) => wait,
                _ => outcome.reset_after,
            };
            status.duration_until_reset = Some(whole_seconds(until));
        }
    }
    status
}

/// True if a rule denies its descriptor. A quota rule does, although it does not deny the request by itself.
pub(crate) fn is_over(decision: &Decision, ruling: &Ruling, hits: impl Fn(u16) -> u64) -> bool {
    let envoy = decision.rule(ruling).and_then(|rule| rule.envoy.as_deref());
    let limit = ruling.outcome.map_or(0, |outcome| outcome.limit);
    let was_within_limit = || count_before_others(decision, ruling, hits).is_some_and(|used| used <= limit);
    ruling.refused() && envoy.map_or(ruling.enforced, |envoy| !envoy.shadow_mode) && !was_within_limit()
}

/// Units in use right after a descriptor was counted, if later ones of the same call count in the same bucket. `hits`
/// returns the hits of each.
pub(crate) fn count_before_others(decision: &Decision, ruling: &Ruling, hits: impl Fn(u16) -> u64) -> Option<u64> {
    let all = ruling.outcome?.used;
    decision.used_after(ruling, hits).filter(|used| *used < all)
}

fn current_limit(rule: &Rule, ruling: &Ruling, descriptor: &RateLimitDescriptor) -> RateLimit {
    let asks = rule.envoy.as_ref().map_or(rule.spec.accept_limits, |envoy| envoy.overrides);
    let unit = match descriptor.limit.filter(|_| asks) {
        Some(limit) => Unit::from_number(limit.unit),
        None => rule.limit.and_then(|limit| Unit::from_window(limit.window())),
    };
    let name = rule.envoy.as_ref().map_or_else(|| Some(rule.name.clone()), |envoy| envoy.name.clone());
    RateLimit {
        name: name.unwrap_or_default(),
        requests_per_unit: u32::try_from(ruling.requests).unwrap_or(u32::MAX),
        unit: unit.map_or(0, Unit::number),
    }
}

/// Whole seconds, rounded up: Envoy drops the fraction.
fn whole_seconds(span: Span) -> Duration {
    Duration { seconds: i64::try_from(span.secs_ceil()).unwrap_or(i64::MAX), nanos: 0 }
}

/// Header fields go into `value`: Envoy sends an empty field for `raw_value`. It appends them to existing fields, so an
/// allowed response has none that describe a body.
pub(crate) fn add_headers(config: &RenderConfig, decisions: RlsDecisions<'_>, response: &mut RateLimitResponse) {
    let denied = decisions.rounds.iter().find(|decision| !decision.is_allowed());
    let Some(decision) = denied.or(decisions.rounds.last()) else { return };
    let options = ResponseOptions { random: tollgate_engine::random::fast(), ..ResponseOptions::default() };
    let mut fields = HeaderFields::default();
    match decision.is_allowed() {
        true => render::write_headers(decision, &options, config, &mut fields),
        false => {
            let mut body = Vec::new();
            render::write_denial(decision, &options, config, &mut fields, &mut body);
            response.raw_body = Bytes::from(body);
        }
    }
    let header = |(name, value): (&'static str, &[u8])| HeaderValue {
        key: name.to_ascii_lowercase(),
        value: String::from_utf8_lossy(value).into_owned(),
        ..HeaderValue::default()
    };
    response.response_headers_to_add = fields.iter().map(header).collect();
}
