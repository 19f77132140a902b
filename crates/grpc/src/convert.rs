//! Converts messages to requests, and decisions and errors to messages and statuses.

use tollgate_core::{Span, Wait};
use tollgate_proto::v1;
use tollgate_proto::v1::checked::Result as Checked;
use tollgate_ruleset::{RequestError, Rule};
use tollgate_service::{DecidedBy, Decision, Settled, UnchargedUnits, Verdict};
use tonic::{Code, Status};

use tollgate_service::ApiError;
use tollgate_service::check_request::{BodyError, CheckRequest};
use tollgate_service::render::{Policy, RenderConfig, meter_of};

/// Reads a request, by the same rules as the JSON API.
pub(super) fn check_request(request: &v1::CheckRequest) -> Result<CheckRequest<'_>, BodyError> {
    let v1::CheckRequest { namespace, attributes, cost, peek, costs } = request;
    let attributes = attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let check = CheckRequest::named(namespace, attributes, *cost, *peek)?;
    match costs.is_empty() {
        true => Ok(check),
        false => check.with_costs(costs.iter().map(|(meter, amount)| (meter.as_str(), *amount))),
    }
}

/// Reads the request nested in another message.
pub(super) fn nested_check_request(request: Option<&v1::CheckRequest>) -> Result<CheckRequest<'_>, Status> {
    let request = request.ok_or_else(|| Status::invalid_argument("missing_field: request is missing"))?;
    check_request(request).map_err(|error| unreadable(&error))
}

/// Status of a malformed request: error code, field and detail.
pub(super) fn unreadable(fault: &BodyError) -> Status {
    let BodyError { code, field, detail } = fault;
    Status::invalid_argument(format!("{code}: {field} {detail}"))
}

/// Status of a call without an accepted token.
pub(super) fn no_token() -> Status {
    Status::unauthenticated("send a token that this server knows, as metadata: authorization: Bearer TOKEN")
}

/// Status of a call whose token does not cover the namespace.
pub(super) fn other_namespace() -> Status {
    Status::permission_denied("this token is not for that namespace")
}

/// Status of a call that panicked.
pub(super) fn panicked() -> Status {
    Status::internal("a bug in Tollgate; its log says more")
}

/// Maps an API error with an HTTP status to a gRPC status.
pub(super) fn api_error(error: ApiError) -> Status {
    let code = match error.status {
        409 => Code::FailedPrecondition,
        503 => Code::Unavailable,
        _ => Code::InvalidArgument,
    };
    Status::new(code, format!("{}: {}", error.code, error.detail))
}

/// The response to one request.
pub(super) fn response(decision: &Decision, config: &RenderConfig) -> Result<v1::CheckResponse, Status> {
    match &decision.verdict {
        Verdict::Invalid(error) => Err(invalid_request(error)),
        _ => Ok(decided(decision, config)),
    }
}

/// Status of a request that the rule set rejected as invalid.
pub(super) fn invalid_request(error: &RequestError) -> Status {
    let RequestError { code, field, message } = error;
    Status::invalid_argument(format!("{code}: {field}: {message}"))
}

/// The response to a settlement.
pub(super) fn settled(settled: Settled) -> v1::SettleResponse {
    let Settled { refunded, extended, repeated, above, uncharged } = settled;
    let above = above.into_iter().map(|(meter, amount)| (meter.into_string(), amount)).collect();
    let uncharged = uncharged.into_iter().map(|UnchargedUnits { rule, units }| v1::Uncharged { rule, units });
    v1::SettleResponse {
        settled: !repeated,
        refunded: refunded as u64,
        extended: extended as u64,
        above,
        uncharged: uncharged.collect(),
    }
}

/// One item of a batch or stream: a decision, or the reason why the request is invalid.
pub(super) fn checked(decision: &Decision, config: &RenderConfig) -> v1::Checked {
    let result = match &decision.verdict {
        Verdict::Invalid(error) => {
            let RequestError { code, field, message } = &**error;
            let (code, field, detail) = ((*code).to_owned(), field.clone(), message.clone());
            Checked::Fault(v1::Fault { code, field, detail })
        }
        _ => Checked::Decision(decided(decision, config)),
    };
    v1::Checked { result: Some(result) }
}

/// One item of a batch or stream whose request is malformed.
pub(super) fn faulty(fault: BodyError) -> v1::Checked {
    let BodyError { code, field, detail } = fault;
    v1::Checked { result: Some(Checked::Fault(v1::Fault { code: code.to_owned(), field, detail })) }
}

fn decided(decision: &Decision, config: &RenderConfig) -> v1::CheckResponse {
    let ruling = decision.deciding();
    let rule = ruling.and_then(|ruling| decision.rule(ruling));
    let policy = ruling.zip(rule).and_then(|(ruling, rule)| Policy::of(rule, ruling));
    let wait = decision.retry_after();
    let is_closed = !decision.is_allowed() && decision.decided_by == DecidedBy::Closed;
    v1::CheckResponse {
        allowed: decision.is_allowed(),
        limit: policy.as_ref().map(|policy| policy.limit),
        remaining: policy.as_ref().map(|policy| policy.remaining),
        reset_at: policy.as_ref().and_then(|policy| policy.reset).map(|reset| decision.wall.after(reset).secs_ceil()),
        retry_after_ms: millis(wait),
        never: wait == Wait::Never,
        rule: policy.as_ref().map_or_else(String::new, |policy| policy.name.to_owned()),
        mode: decision.decided_by.name().to_owned(),
        generation: decision.generation(),
        delay_ms: decision.delay().millis_ceil(),
        meter: rule.map_or_else(String::new, meter),
        error_code: if is_closed { "store_unavailable".to_owned() } else { String::new() },
        rules: if decision.rulings().len() > 1 { rulings(decision) } else { Vec::new() },
        decision_id: if config.decision_ids { decision.id().to_string() } else { String::new() },
    }
}

fn rulings(decision: &Decision) -> Vec<v1::Ruling> {
    let known = decision.rulings().iter().filter_map(|ruling| Some((decision.rule(ruling)?, ruling)));
    let converted = known.map(|(rule, ruling)| {
        let policy = Policy::of(rule, ruling);
        v1::Ruling {
            rule: rule.name.clone(),
            allowed: !ruling.refused(),
            enforced: ruling.enforced,
            limit: policy.as_ref().map(|policy| policy.limit),
            remaining: policy.as_ref().map(|policy| policy.remaining),
            retry_after_ms: ruling.outcome.and_then(|outcome| millis(outcome.wait)),
            reset_after_ms: policy.as_ref().and_then(|policy| policy.reset).map(Span::millis_ceil),
            mode: ruling.decided_by.name().to_owned(),
            meter: meter(rule),
        }
    });
    converted.collect()
}

/// The meter of a rule; empty for requests.
fn meter(rule: &Rule) -> String {
    meter_of(rule).map_or_else(String::new, ToString::to_string)
}

fn millis(wait: Wait) -> Option<u64> {
    match wait {
        Wait::For(wait) => Some(wait.millis_ceil()),
        Wait::None | Wait::Never => None,
    }
}

/// Lifetime of a slot in milliseconds.
pub(super) fn ttl_ms(ttl: Option<Span>) -> Option<u64> {
    ttl.map(|ttl| ttl.nanos() / 1_000_000)
}
