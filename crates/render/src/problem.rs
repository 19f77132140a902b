//! Denials and errors where the status is not 200: the status, and problem details (RFC 9457) as the body.

use tollgate_engine::{Decision, Ruling, Verdict};
use tollgate_ruleset::{RequestError, Rule};

use super::body::{escaped, number, string, write_id, write_members, write_retry};
use super::retry::RetryHint;
use super::{
    ClosedReason, Detail, Media, RenderConfig, RenderInput, ResponseOptions, append_common_fields, append_fields,
};
use crate::reply::{HeaderFields, Reply};

/// An error, for people and for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemDetails<'a> {
    /// The status.
    pub status: u16,
    /// Stable name of the error, for programs.
    pub code: &'a str,
    /// The kind of error.
    pub title: &'a str,
    /// What was wrong in this request.
    pub detail: &'a str,
    /// Path of the field that is wrong.
    pub field: Option<&'a str>,
}

impl<'a> From<&'a RequestError> for ProblemDetails<'a> {
    fn from(error: &'a RequestError) -> ProblemDetails<'a> {
        let RequestError { code, field, message } = error;
        ProblemDetails { status: 400, code, title: "The request is not valid", detail: message, field: Some(field) }
    }
}

/// Replaces status, fields and body of `reply` with an error.
pub fn write_problem(problem: &ProblemDetails<'_>, reply: &mut Reply) {
    let Reply { status, fields, body, .. } = reply.emptied();
    *status = problem.status;
    append_common_fields(Some(Media::Problem), fields);
    write(problem, body);
}

/// Appends the object of an error.
pub(super) fn write(problem: &ProblemDetails<'_>, out: &mut Vec<u8>) {
    let ProblemDetails { status, code, title, detail, field } = *problem;
    out.extend_from_slice(b"{\"type\":\"about:blank\",\"title\":");
    string(out, title);
    out.extend_from_slice(b",\"status\":");
    number(out, status.into());
    out.extend_from_slice(b",\"detail\":");
    string(out, detail);
    out.extend_from_slice(b",\"code\":");
    string(out, code);
    if let Some(field) = field {
        out.extend_from_slice(b",\"field\":");
        string(out, field);
    }
    out.push(b'}');
}

/// The body of most denials.
const BODY_BYTES: usize = 512;

/// Appends a denial by status, for a response that another server writes: its header fields and its body. Returns the
/// status.
pub fn write_denial(
    decision: &Decision,
    options: &ResponseOptions,
    config: &RenderConfig,
    fields: &mut HeaderFields,
    body: &mut Vec<u8>,
) -> u16 {
    let input = RenderInput::of(decision, options, config);
    let status = denial_status(&input, options, config);
    fields.reserve_values();
    body.reserve(BODY_BYTES);
    append_denial(&input, status, options.media, config, fields, body);
    status
}

/// What a denial says, for a body of another form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialText<'a> {
    /// Stable, for programs.
    pub code: &'a str,
    /// For people.
    pub message: String,
}

/// The code and the message that [`write_denial`] writes.
pub fn denial_text<'a>(decision: &'a Decision, options: &ResponseOptions, config: &RenderConfig) -> DenialText<'a> {
    match &decision.verdict {
        Verdict::Invalid(error) => DenialText { code: error.code, message: error.message.to_string() },
        _ => text_of(&RenderInput::of(decision, options, config)),
    }
}

/// The status of a denial without a store, and of one that sheds load: 429 is for limits of the caller.
const UNAVAILABLE: u16 = 503;
/// The status of a denial by a limit.
const LIMITED: u16 = 429;

pub(super) fn denial_status(input: &RenderInput<'_>, options: &ResponseOptions, config: &RenderConfig) -> u16 {
    let status = match input.retry {
        _ if input.is_unavailable() => UNAVAILABLE,
        RetryHint::Never if !input.is_used_up() => config.never_status,
        _ => LIMITED,
    };
    match options.limited_status {
        Some(other) if status == LIMITED => other,
        _ => status,
    }
}

pub(super) fn append_denial(
    input: &RenderInput<'_>,
    status: u16,
    media: Media,
    config: &RenderConfig,
    fields: &mut HeaderFields,
    body: &mut Vec<u8>,
) {
    append_common_fields(Some(media), fields);
    append_fields(input, config, fields);
    write_object(input, status, config.denial_detail, body);
}

/// Type and title of a denial by a limit (draft-ietf-httpapi-ratelimit-headers).
const QUOTA_EXCEEDED: &[u8] = b"{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
    \"title\":\"Quota exceeded\",\"status\":";
/// Type and title of a denial that is not for a limit of the caller.
const REDUCED_CAPACITY: &[u8] =
    b"{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\",\
    \"title\":\"Service unavailable\",\"status\":";

/// Appends the object of a denial: the problem members, then those of the plain response that `detail` selects.
fn write_object(input: &RenderInput<'_>, status: u16, detail: Detail, out: &mut Vec<u8>) {
    let cause = DenialCause::of(input);
    out.extend_from_slice(if input.is_unavailable() { REDUCED_CAPACITY } else { QUOTA_EXCEEDED });
    number(out, status.into());
    out.extend_from_slice(b",\"detail\":\"");
    write_detail(cause, input, out);
    out.extend_from_slice(b"\",\"violated-policies\":[");
    if !input.is_unavailable() {
        write_violated(input.decision, out);
    }
    out.extend_from_slice(b"],\"error\":\"");
    out.extend_from_slice(cause.error().as_bytes());
    out.extend_from_slice(b"\",\"message\":\"");
    write_message(cause, input.retry, out);
    out.extend_from_slice(b"\",\"error_code\":");
    string(out, cause.code(input.rule));
    if let Some(url) = input.rule.and_then(|rule| rule.spec.doc_url.as_ref()) {
        out.extend_from_slice(b",\"doc_url\":");
        string(out, url);
    }
    out.push(b',');
    match (input.is_unavailable(), detail) {
        (true, Detail::Public) => {
            out.extend_from_slice(b"\"allowed\":false");
            write_retry(input, out);
        }
        _ => write_members(input, detail, out),
    }
    write_id(input, out);
    out.push(b'}');
}

/// The code and the message of a denial.
fn text_of<'a>(input: &RenderInput<'a>) -> DenialText<'a> {
    let cause = DenialCause::of(input);
    let mut message = Vec::new();
    write_message(cause, input.retry, &mut message);
    DenialText { code: cause.code(input.rule), message: String::from_utf8_lossy(&message).into_owned() }
}

/// Why a request was denied.
#[derive(Clone, Copy)]
enum DenialCause {
    Spent,
    TooCostly,
    StoreAway,
    /// The store is away, which the caller is not told.
    ClosedAsOverload,
    Overload,
}

impl DenialCause {
    fn of(input: &RenderInput<'_>) -> DenialCause {
        match input.retry {
            _ if input.is_closed && input.closed == ClosedReason::Overload => DenialCause::ClosedAsOverload,
            _ if input.is_closed => DenialCause::StoreAway,
            _ if input.is_shed => DenialCause::Overload,
            RetryHint::Never if !input.is_used_up() => DenialCause::TooCostly,
            _ => DenialCause::Spent,
        }
    }

    /// The kind, for programs.
    const fn error(self) -> &'static str {
        match self {
            DenialCause::Spent | DenialCause::TooCostly => "rate_limited",
            DenialCause::StoreAway => "store_unavailable",
            DenialCause::ClosedAsOverload | DenialCause::Overload => "overload",
        }
    }

    /// Stable, for programs. A rule's own code means that its limit is reached; other causes have fixed codes.
    fn code(self, rule: Option<&Rule>) -> &str {
        match self {
            DenialCause::Spent => rule.and_then(|rule| rule.spec.error_code.as_deref()).unwrap_or("rate_limited"),
            DenialCause::TooCostly => "cost_too_high",
            DenialCause::StoreAway => "store_unavailable",
            DenialCause::ClosedAsOverload => "overload",
            DenialCause::Overload => rule.and_then(|rule| rule.spec.error_code.as_deref()).unwrap_or("overload"),
        }
    }
}

fn write_detail(cause: DenialCause, input: &RenderInput<'_>, out: &mut Vec<u8>) {
    let (before, after): (&str, &str) = match cause {
        DenialCause::Spent => ("The limit of the rule '", "' is reached."),
        DenialCause::TooCostly => ("The request costs more than the rule '", "' ever allows at once."),
        DenialCause::StoreAway => {
            return out
                .extend_from_slice(b"Limits cannot be checked at the moment, and requests are refused meanwhile.");
        }
        DenialCause::ClosedAsOverload | DenialCause::Overload => {
            return out.extend_from_slice(b"The service has as much to do as it can, and serves other requests first.");
        }
    };
    out.extend_from_slice(before.as_bytes());
    escaped(out, input.policy.as_ref().map_or("", |policy| policy.name));
    out.extend_from_slice(after.as_bytes());
}

fn write_message(cause: DenialCause, retry: RetryHint, out: &mut Vec<u8>) {
    out.extend_from_slice(match cause {
        DenialCause::Spent => b"Too many requests.".as_slice(),
        DenialCause::TooCostly => b"This request can never pass: its cost exceeds the limit.",
        DenialCause::StoreAway => b"Limits cannot be checked at the moment.",
        DenialCause::ClosedAsOverload | DenialCause::Overload => b"The service is overloaded.",
    });
    if let RetryHint::After { secs, .. } = retry {
        out.extend_from_slice(b" Retry after ");
        number(out, secs);
        out.extend_from_slice(b"s.");
    }
}

/// The names of all enforced rules that denied.
fn write_violated(decision: &Decision, out: &mut Vec<u8>) {
    let refused = decision.rulings().iter().filter(|ruling| ruling.enforced && Ruling::refused(ruling));
    for (index, rule) in refused.filter_map(|ruling| decision.rule(ruling)).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        string(out, &rule.name);
    }
}
