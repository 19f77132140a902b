//! Renders a decision as status, header fields and body, for every transport.
//!
//! Everything is appended to the buffers of a [`Reply`], without an intermediate tree: a response allocates nothing
//! once those buffers have grown. Time comes from the decision and randomness as a number, so rendering is a pure
//! function, and the tests compare whole texts.
//!
//! | file | decides |
//! |---|---|
//! | [`style`] | which header fields exist, and their content: one table |
//! | [`policy`] | a rule's limit as callers see it |
//! | `write` | how a value becomes text that a header field may hold |
//! | `retry` | how long a denied caller should wait |
//! | `body` | the members of the JSON object |
//! | `input` | options, and the values that fields and body share |
//! | `problem` | denials and errors as problem details |

pub mod policy;
pub mod style;

mod body;
mod input;
mod problem;
mod retry;
mod write;

use tollgate_engine::{Decision, Verdict};

pub use self::input::{DenialStatus, Detail, Dialect, Media, ProxyOptions, RenderConfig, ResponseOptions};
pub use self::policy::Policy;
pub use self::problem::ProblemDetails;
pub use self::retry::Jitter;
pub use self::style::HeaderStyles;

use self::input::RenderInput;
use self::retry::RetryHint;
use crate::reply::{HeaderFields, Reply};

/// Replaces status, fields and body of `reply` with the decision. An invalid request yields [`ProblemDetails`].
pub fn write_decision(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, reply: &mut Reply) {
    if let Verdict::Invalid(error) = &decision.verdict {
        return write_problem(&ProblemDetails::from(&**error), reply);
    }
    let input = RenderInput::of(decision, options, config);
    let by_status = options.deny_by_status.unwrap_or(config.denial_status == DenialStatus::TooManyRequests);
    let Reply { status, fields, body, .. } = reply.emptied();
    if by_status && decision.verdict == Verdict::Deny {
        *status = denial_status(&input, config);
        return append_denial(&input, *status, options.media, config, fields, body);
    }
    *status = 200;
    append_common_fields(Some(Media::Json), fields);
    append_fields(&input, config, fields);
    body::write(&input, body);
}

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
    let status = denial_status(&input, config);
    append_denial(&input, status, options.media, config, fields, body);
    status
}

/// Fills `reply` for a proxy, which reads only the status: 200 without a body, or the configured status of a denial. An
/// invalid request yields [`ProblemDetails`] with the status `unreadable`.
pub fn write_proxied(decision: &Decision, asked: &ProxyOptions, config: &RenderConfig, reply: &mut Reply) {
    let ProxyOptions { options, denied, closed, unreadable } = *asked;
    if let Verdict::Invalid(error) = &decision.verdict {
        return write_problem(&ProblemDetails { status: unreadable, ..ProblemDetails::from(&**error) }, reply);
    }
    let input = RenderInput::of(decision, &options, config);
    let Reply { status, fields, body, .. } = reply.emptied();
    if decision.verdict == Verdict::Deny {
        *status = if input.is_closed { closed } else { denied };
        return append_denial(&input, *status, options.media, config, fields, body);
    }
    *status = 200;
    append_common_fields(None, fields);
    append_fields(&input, config, fields);
}

/// The status of a denial without a store: 429 is for limits of the caller.
const UNAVAILABLE: u16 = 503;

fn denial_status(input: &RenderInput<'_>, config: &RenderConfig) -> u16 {
    match input.retry {
        _ if input.is_closed => UNAVAILABLE,
        RetryHint::Never if !input.is_used_up() => config.never_status,
        _ => 429,
    }
}

fn append_denial(
    input: &RenderInput<'_>,
    status: u16,
    media: Media,
    config: &RenderConfig,
    fields: &mut HeaderFields,
    body: &mut Vec<u8>,
) {
    append_common_fields(Some(media), fields);
    append_fields(input, config, fields);
    problem::write_denial(input, status, config.denial_detail, body);
}

/// Appends the header fields alone, for a response that another server writes.
pub fn write_headers(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, out: &mut HeaderFields) {
    if !matches!(decision.verdict, Verdict::Invalid(_)) {
        append_fields(&RenderInput::of(decision, options, config), config, out);
    }
}

#[inline]
fn append_fields(input: &RenderInput<'_>, config: &RenderConfig, out: &mut HeaderFields) {
    if let RetryHint::After { header, .. } = input.retry {
        out.push_with("Retry-After", |out| body::number(out, header));
    }
    if input.is_closed {
        return; // the state of the caller's limits is unknown
    }
    write::write(config.headers, input.decision.wall, input.policy.as_ref(), input.policies(), out);
}

/// Appends the JSON object alone, as in a batch.
pub fn write_body(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, out: &mut Vec<u8>) {
    match &decision.verdict {
        Verdict::Invalid(error) => problem::write(&ProblemDetails::from(&**error), out),
        _ => body::write(&RenderInput::of(decision, options, config), out),
    }
}

/// Replaces status, fields and body of `reply` with an error.
pub fn write_problem(problem: &ProblemDetails<'_>, reply: &mut Reply) {
    let Reply { status, fields, body, .. } = reply.emptied();
    *status = problem.status;
    append_common_fields(Some(Media::Problem), fields);
    problem::write(problem, body);
}

fn append_common_fields(media: Option<Media>, fields: &mut HeaderFields) {
    if let Some(media) = media {
        fields.push("Content-Type", media.name());
    }
    fields.push("Cache-Control", "no-store"); // RFC 6585: a denial must not be cached; neither must a permission
}
