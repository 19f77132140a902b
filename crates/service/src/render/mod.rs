//! Answers: one function renders a decision into status, header fields and body, for every transport.
//!
//! Everything is appended to the buffers of a [`Reply`], digit by digit and without a detour through a tree of values:
//! an answer allocates nothing once those buffers have grown. Time is the decision's, chance comes in as a number; what
//! is left is a pure function, and the tests compare whole texts.
//!
//! | file | decides |
//! |---|---|
//! | [`style`] | which header fields exist, and what stands in them: one table |
//! | [`policy`] | what a rule's limit looks like from outside |
//! | `write` | how a value becomes text that a header field may hold |
//! | `retry` | how long a refused caller is asked to wait |
//! | `body` | the members of the answer object |
//! | `problem` | refusals and errors as problem details |

pub mod policy;
pub mod style;

mod body;
mod case;
mod json;
mod problem;
mod retry;
mod write;

use tollgate_engine::{Decision, Verdict};

pub use self::policy::Policy;
pub use self::problem::ProblemDetails;
pub use self::retry::Jitter;
pub use self::style::Styles;

use self::case::RenderInput;
use self::retry::Retry;
use crate::{Fields, Reply};

/// How answers look, for all callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderConfig {
    /// Which families of header fields are sent. Default `x-ratelimit,draft-11`.
    pub headers: Styles,
    /// What `Retry-After` adds to waits, so that refused callers do not come back all at once. Default 10 %.
    pub retry_jitter: Jitter,
    /// The status of a refusal where the call names none. Default 200.
    pub refused_status: DenialStatus,
    /// The status of a refusal that no waiting helps, where refusals have one. Default 429; 403 and 413 are usual too.
    pub never_status: u16,
    /// What the body of a refusal by status tells. Default what callers of the API behind may see.
    pub refusal: Detail,
}

/// How much a refusal by status tells: proxies pass it on to whoever they refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// What concerns the caller: its limit, what is left, when to come back.
    #[default]
    Public,
    /// Everything that the plain answer tells: also the mode, the generation and what every other rule says.
    Full,
}

impl Default for RenderConfig {
    fn default() -> Self {
        RenderConfig {
            headers: Styles::default(),
            retry_jitter: Jitter::default(),
            refused_status: DenialStatus::Ok,
            never_status: 429,
            refusal: Detail::Public,
        }
    }
}

/// The status of a refusal where the call names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialStatus {
    /// 200: the question was answered, and the answer is no.
    #[default]
    Ok,
    /// 429: for proxies that pass the status on.
    TooManyRequests,
}

/// How one call wants its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseOptions {
    /// By which of its names the API was called.
    pub dialect: Dialect,
    /// Whether a denial is a status of its own (`?status=429`); `None` leaves it to the configuration.
    pub refuse_by_status: Option<bool>,
    /// The media type of a refusal by status.
    pub media: Media,
    /// A random number, drawn for this answer: where in the jitter its wait falls.
    pub random: u64,
}

/// How a proxy wants its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyOptions {
    /// As any other call.
    pub options: ResponseOptions,
    /// The status of a refusal.
    pub refused: u16,
    /// The status of a refusal because the store is away.
    pub closed: u16,
    /// The status of what is no request.
    pub unreadable: u16,
}

/// By which of its names the API was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/…` and `/rate-limit/check`: nothing to wait for is `null`.
    #[default]
    V1,
    /// `/check`: nothing to wait for is `0`.
    Alias,
}

/// The media type of a refusal by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// `application/problem+json`
    #[default]
    Problem,
    /// `application/json`, with the same members.
    Json,
}

impl Media {
    /// What an `Accept` field asks for: plain JSON only where that is named and problem details are not.
    pub fn accepted(accept: &[u8]) -> Media {
        let names = |media: &[u8]| accept.windows(media.len()).any(|part| part.eq_ignore_ascii_case(media));
        match names(b"application/json") && !names(b"application/problem+json") {
            true => Media::Json,
            false => Media::Problem,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Media::Problem => "application/problem+json",
            Media::Json => "application/json",
        }
    }
}

/// Fills `reply` with the answer: status, fields and body anew, whatever was in them. A request that could not be read
/// is answered as a [`ProblemDetails`].
pub fn write_decision(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, reply: &mut Reply) {
    if let Verdict::Invalid(error) = &decision.verdict {
        return write_problem(&ProblemDetails::from(&**error), reply);
    }
    let case = RenderInput::of(decision, options, config);
    let by_status = options.refuse_by_status.unwrap_or(config.refused_status == DenialStatus::TooManyRequests);
    let refused = by_status && decision.verdict == Verdict::Deny;
    let (status, media) = match case.retry {
        _ if !refused => (200, Media::Json),
        _ if case.is_closed => (UNAVAILABLE, options.media),
        Retry::Never => (config.never_status, options.media),
        _ => (429, options.media),
    };
    begin(reply, status, Some(media));
    write_fields(&case, config, &mut reply.fields);
    match refused {
        false => body::write(&case, &mut reply.body),
        true => problem::write_refusal(&case, status, config.refusal, &mut reply.body),
    }
}

/// The status of a refusal that is our own fault: 429 is for limits of the caller's own.
const UNAVAILABLE: u16 = 503;

/// Fills `reply` for a proxy, which looks at the status: 200 without a body, or a refusal of this status. A request that
/// could not be read is a [`ProblemDetails`] of the status `unreadable`.
pub fn write_proxied(decision: &Decision, asked: &ProxyOptions, config: &RenderConfig, reply: &mut Reply) {
    let ProxyOptions { options, refused, closed, unreadable } = *asked;
    if let Verdict::Invalid(error) = &decision.verdict {
        return write_problem(&ProblemDetails { status: unreadable, ..ProblemDetails::from(&**error) }, reply);
    }
    let case = RenderInput::of(decision, &options, config);
    let denied = decision.verdict == Verdict::Deny;
    let status = match denied {
        false => 200,
        true if case.is_closed => closed,
        true => refused,
    };
    begin(reply, status, denied.then_some(options.media));
    write_fields(&case, config, &mut reply.fields);
    if denied {
        problem::write_refusal(&case, status, config.refusal, &mut reply.body);
    }
}

/// Appends the header fields alone: what a decision tells a caller whose answer somebody else makes.
pub fn write_headers(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, out: &mut Fields) {
    if !matches!(decision.verdict, Verdict::Invalid(_)) {
        write_fields(&RenderInput::of(decision, options, config), config, out);
    }
}

#[inline]
fn write_fields(case: &RenderInput<'_>, config: &RenderConfig, out: &mut Fields) {
    if let Retry::After { header, .. } = case.retry {
        out.push_with("Retry-After", |out| json::number(out, header));
    }
    if case.is_closed {
        return; // nobody knows how the caller's limits stand
    }
    write::write(config.headers, case.decision.wall, case.policy.as_ref(), case.policies(), out);
}

/// Appends the answer object alone, as a batch has many of.
pub fn write_body(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, out: &mut Vec<u8>) {
    match &decision.verdict {
        Verdict::Invalid(error) => problem::write(&ProblemDetails::from(&**error), out),
        _ => body::write(&RenderInput::of(decision, options, config), out),
    }
}

/// Fills `reply` with an error: status, fields and body anew, whatever was in them.
pub fn write_problem(problem: &ProblemDetails<'_>, reply: &mut Reply) {
    begin(reply, problem.status, Some(Media::Problem));
    problem::write(problem, &mut reply.body);
}

/// What every answer has. The connection's `close` stays as it is.
fn begin(reply: &mut Reply, status: u16, media: Option<Media>) {
    let Reply { status: own, fields, body, close: _ } = reply;
    *own = status;
    fields.clear();
    body.clear();
    if let Some(media) = media {
        fields.push("Content-Type", media.name());
    }
    fields.push("Cache-Control", "no-store"); // RFC 6585: a refusal must not be stored; neither must a permission
}
