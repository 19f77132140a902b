//! Messages become requests, decisions become messages.

use tollgate_core::{Span, Wait};
use tollgate_engine::{DecidedBy, Decision, Verdict};
use tollgate_proto::v1;
use tollgate_proto::v1::checked::Result as Checked;
use tollgate_rules::ruleset::RequestError;
use tonic::{Code, Status};

use tollgate_service::ApiError;
use tollgate_service::check_request::{BodyError, CheckRequest};
use tollgate_service::render::Policy;

/// Reads a request as the JSON reader does.
pub(super) fn check_request(request: &v1::CheckRequest) -> Result<CheckRequest<'_>, BodyError> {
    let v1::CheckRequest { namespace, attributes, cost, peek } = request;
    let attributes = attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    CheckRequest::named(namespace, attributes, *cost, *peek)
}

/// The request that another message carries.
pub(super) fn nested_check_request(request: Option<&v1::CheckRequest>) -> Result<CheckRequest<'_>, Status> {
    let request = request.ok_or_else(|| Status::invalid_argument("missing_field: request is missing"))?;
    check_request(request).map_err(|error| unreadable(&error))
}

/// Why a request is refused: what is wrong with it, and where.
pub(super) fn unreadable(fault: &BodyError) -> Status {
    let BodyError { code, field, detail } = fault;
    Status::invalid_argument(format!("{code}: {field} {detail}"))
}

/// A refusal that HTTP has a status for.
pub(super) fn api_error(refused: ApiError) -> Status {
    let code = match refused.status {
        409 => Code::FailedPrecondition,
        503 => Code::Unavailable,
        _ => Code::InvalidArgument,
    };
    Status::new(code, format!("{}: {}", refused.code, refused.detail))
}

/// The answer to one request.
pub(super) fn response(decision: &Decision) -> Result<v1::CheckResponse, Status> {
    match &decision.verdict {
        Verdict::Invalid(error) => Err(of_rules(error)),
        _ => Ok(decided(decision)),
    }
}

/// What only the rules could not read.
pub(super) fn of_rules(error: &RequestError) -> Status {
    let RequestError { code, field, message } = error;
    Status::invalid_argument(format!("{code}: {field}: {message}"))
}

/// One answer of many: a decision, or why there is none.
pub(super) fn checked(decision: &Decision) -> v1::Checked {
    let result = match &decision.verdict {
        Verdict::Invalid(error) => {
            let RequestError { code, field, message } = &**error;
            let (code, field, detail) = ((*code).to_owned(), field.clone(), message.clone());
            Checked::Fault(v1::Fault { code, field, detail })
        }
        _ => Checked::Decision(decided(decision)),
    };
    v1::Checked { result: Some(result) }
}

/// One answer of many, for what could not be read.
pub(super) fn faulty(fault: BodyError) -> v1::Checked {
    let BodyError { code, field, detail } = fault;
    v1::Checked { result: Some(Checked::Fault(v1::Fault { code: code.to_owned(), field, detail })) }
}

fn decided(decision: &Decision) -> v1::CheckResponse {
    let ruling = decision.deciding();
    let rule = ruling.and_then(|ruling| decision.rule(ruling));
    let policy = ruling.zip(rule).and_then(|(ruling, rule)| Policy::of(rule, ruling));
    let wait = decision.retry_after();
    let is_closed = !decision.is_allowed() && decision.decided_by == DecidedBy::Closed;
    v1::CheckResponse {
        allowed: decision.is_allowed(),
        limit: policy.as_ref().map(|policy| policy.limit),
        remaining: policy.as_ref().map(|policy| policy.remaining),
        reset_at: policy.as_ref().map(|policy| decision.wall.after(policy.reset).secs_ceil()),
        retry_after_ms: millis(wait),
        never: wait == Wait::Never,
        rule: policy.as_ref().map_or_else(String::new, |policy| policy.name.to_owned()),
        mode: decision.decided_by.name().to_owned(),
        generation: decision.generation(),
        delay_ms: decision.delay().millis_ceil(),
        error_code: if is_closed { "store_unavailable".to_owned() } else { String::new() },
        rules: if decision.rulings().len() > 1 { rulings(decision) } else { Vec::new() },
    }
}

fn rulings(decision: &Decision) -> Vec<v1::Ruling> {
    let known = decision.rulings().iter().filter_map(|ruling| Some((decision.rule(ruling)?, ruling)));
    let told = known.map(|(rule, ruling)| {
        let policy = Policy::of(rule, ruling);
        v1::Ruling {
            rule: rule.name.clone(),
            allowed: !ruling.refused(),
            enforced: ruling.enforced,
            limit: policy.as_ref().map(|policy| policy.limit),
            remaining: policy.as_ref().map(|policy| policy.remaining),
            retry_after_ms: ruling.outcome.and_then(|outcome| millis(outcome.wait)),
            reset_after_ms: policy.as_ref().map(|policy| policy.reset.millis_ceil()),
            mode: ruling.decided_by.name().to_owned(),
        }
    });
    told.collect()
}

fn millis(wait: Wait) -> Option<u64> {
    match wait {
        Wait::For(wait) => Some(wait.millis_ceil()),
        Wait::None | Wait::Never => None,
    }
}

/// How long a slot lasts, as messages say it.
pub(super) fn ttl_ms(ttl: Option<Span>) -> Option<u64> {
    ttl.map(|ttl| ttl.nanos() / 1_000_000)
}
