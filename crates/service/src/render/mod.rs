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
//! | `problem` | denials and errors as problem details |
//! | `extension` | the denial of an extension |

pub mod policy;
pub mod style;

mod body;
mod extension;
mod input;
mod json;
mod options;
mod problem;
mod retry;
mod write;

use tollgate_engine::{Decision, Verdict};

pub use self::extension::write_extension_denial;
pub use self::options::{DenialStatus, Detail, Dialect, Media, ProxyOptions, RenderConfig, ResponseOptions};
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
    let by_status = options.refuse_by_status.unwrap_or(config.refused_status == DenialStatus::TooManyRequests);
    let refused = by_status && decision.verdict == Verdict::Deny;
    let (status, media) = match input.retry {
        _ if !refused => (200, Media::Json),
        _ if input.is_closed => (UNAVAILABLE, options.media),
        RetryHint::Never => (config.never_status, options.media),
        _ => (429, options.media),
    };
    begin(reply, status, Some(media));
    write_fields(&input, config, &mut reply.fields);
    match refused {
        false => body::write(&input, &mut reply.body),
        true => problem::write_refusal(&input, status, config.refusal, &mut reply.body),
    }
}

/// The status of a denial without a store: 429 is for limits of the caller.
const UNAVAILABLE: u16 = 503;

/// Fills `reply` for a proxy, which reads only the status: 200 without a body, or the configured status of a denial. An
/// invalid request yields [`ProblemDetails`] with the status `unreadable`.
pub fn write_proxied(decision: &Decision, asked: &ProxyOptions, config: &RenderConfig, reply: &mut Reply) {
    let ProxyOptions { options, refused, closed, unreadable } = *asked;
    if let Verdict::Invalid(error) = &decision.verdict {
        return write_problem(&ProblemDetails { status: unreadable, ..ProblemDetails::from(&**error) }, reply);
    }
    let input = RenderInput::of(decision, &options, config);
    let denied = decision.verdict == Verdict::Deny;
    let status = match denied {
        false => 200,
        true if input.is_closed => closed,
        true => refused,
    };
    begin(reply, status, denied.then_some(options.media));
    write_fields(&input, config, &mut reply.fields);
    if denied {
        problem::write_refusal(&input, status, config.refusal, &mut reply.body);
    }
}

/// Appends the header fields alone, for a response that another server writes.
pub fn write_headers(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, out: &mut HeaderFields) {
    if !matches!(decision.verdict, Verdict::Invalid(_)) {
        write_fields(&RenderInput::of(decision, options, config), config, out);
    }
}

#[inline]
fn write_fields(input: &RenderInput<'_>, config: &RenderConfig, out: &mut HeaderFields) {
    if let RetryHint::After { header, .. } = input.retry {
        out.push_with("Retry-After", |out| json::number(out, header));
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
    begin(reply, problem.status, Some(Media::Problem));
    problem::write(problem, &mut reply.body);
}

/// Starts a response with its common fields. `close` stays as it is.
fn begin(reply: &mut Reply, status: u16, media: Option<Media>) {
    let Reply { status: own, fields, body, close: _ } = reply;
    *own = status;
    fields.clear();
    body.clear();
    if let Some(media) = media {
        fields.push("Content-Type", media.name());
    }
    fields.push("Cache-Control", "no-store"); // RFC 6585: a denial must not be cached; neither must a permission
}
