//! Renders a decision as status, header fields and body: for every transport of the server, and for middleware.
//!
//! Everything is appended to the buffers of a [`Reply`], without an intermediate tree: a response allocates nothing
//! once those buffers have grown. Time comes from the decision and randomness as a number, so rendering is a pure
//! function, and the tests compare whole texts.
//!
//! | file | decides |
//! |---|---|
//! | `mod` | which parts a response has; the values that its parts share; header fields, always valid (RFC 9651) |
//! | [`style`] | which header fields exist, and their content: one table |
//! | `retry` | how long a denied caller should wait |
//! | `body` | the members of the JSON object |
//! | `problem` | denials and errors: status and problem details |
//! | `options` | what the server and a call choose |
//! | `reply` | a response before it is bytes |

pub mod style;

mod body;
mod options;
mod problem;
mod reply;
mod retry;

use std::io::Write;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use tollgate_core::{Limit, LimitKind, Quota, Span, Time};
use tollgate_engine::{DecidedBy, Decision, Ruling, Verdict};
use tollgate_rules::MeterSpec;
use tollgate_ruleset::Rule;

pub use self::options::{
    ClosedReason, DenialStatus, Detail, Dialect, Media, ProxyResponseOptions, RenderConfig, ResponseOptions,
};
pub use self::problem::{DenialText, ProblemDetails, denial_text, write_denial, write_problem};
pub use self::reply::{HeaderFields, Reply};
pub use self::retry::Jitter;
pub use self::style::HeaderStyles;

use self::body::number;
use self::problem::{append_denial, denial_status};
use self::retry::RetryHint;
use self::style::{HeaderField, HeaderItem, HeaderPart, PolicySelector};

/// What a rule counts, if that is not requests; shown as answers name it.
pub fn meter_of(rule: &Rule) -> Option<&MeterSpec> {
    Some(&rule.spec.meter).filter(|meter| **meter != MeterSpec::Requests)
}

/// Replaces status, fields and body of `reply` with the decision. An invalid request yields [`ProblemDetails`].
pub fn write_decision(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, reply: &mut Reply) {
    if let Verdict::Invalid(error) = &decision.verdict {
        return write_problem(&ProblemDetails::from(&**error), reply);
    }
    let input = RenderInput::of(decision, options, config);
    let by_status = options.deny_by_status.unwrap_or(config.denial_status == DenialStatus::TooManyRequests);
    let Reply { status, fields, body, .. } = reply.emptied();
    if by_status && decision.verdict == Verdict::Deny {
        *status = denial_status(&input, options, config);
        return append_denial(&input, *status, options.media, config, fields, body);
    }
    *status = 200;
    append_common_fields(Some(Media::Json), fields);
    append_fields(&input, config, fields);
    body::write(&input, body);
}

/// Fills `reply` for a proxy, which reads only the status: 200 without a body, or the configured status of a denial. An
/// invalid request yields [`ProblemDetails`] with the status `unreadable`.
pub fn write_proxied(decision: &Decision, asked: &ProxyResponseOptions, config: &RenderConfig, reply: &mut Reply) {
    let ProxyResponseOptions { options, denied, closed, unreadable } = *asked;
    if let Verdict::Invalid(error) = &decision.verdict {
        return write_problem(&ProblemDetails { status: unreadable, ..ProblemDetails::from(&**error) }, reply);
    }
    let input = RenderInput::of(decision, &options, config);
    let Reply { status, fields, body, .. } = reply.emptied();
    if decision.verdict == Verdict::Deny {
        *status = if input.is_unavailable() { closed } else { denied };
        return append_denial(&input, *status, options.media, config, fields, body);
    }
    *status = 200;
    append_common_fields(None, fields);
    append_fields(&input, config, fields);
}

/// Appends the header fields alone, for a response that another server writes.
pub fn write_headers(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, out: &mut HeaderFields) {
    if !matches!(decision.verdict, Verdict::Invalid(_)) {
        out.reserve_values();
        append_fields(&RenderInput::of(decision, options, config), config, out);
    }
}

#[inline]
fn append_fields(input: &RenderInput<'_>, config: &RenderConfig, out: &mut HeaderFields) {
    if input.shows_id {
        out.push_with("X-Decision-Id", |out| out.extend_from_slice(&input.decision.id().digits()));
    }
    if let RetryHint::After { header, .. } = input.retry {
        out.push_with("Retry-After", |out| number(out, header));
    }
    if input.is_unavailable() {
        return; // the state of the caller's limits is unknown, or not the reason
    }
    write_fields(config.headers, input.decision.wall, input.shown().as_ref(), input.policies(), out);
}

/// Appends the JSON object alone, as in a batch.
pub fn write_body(decision: &Decision, options: &ResponseOptions, config: &RenderConfig, out: &mut Vec<u8>) {
    match &decision.verdict {
        Verdict::Invalid(error) => problem::write(&ProblemDetails::from(&**error), out),
        _ => body::write(&RenderInput::of(decision, options, config), out),
    }
}

fn append_common_fields(media: Option<Media>, fields: &mut HeaderFields) {
    if let Some(media) = media {
        fields.push("Content-Type", media.name());
    }
    fields.push("Cache-Control", "no-store"); // RFC 6585: a denial must not be cached; neither must a permission
}

/// Most rules in header fields: clients reject heads of more than a few kilobytes. The body lists them all.
const LISTED_MAX: usize = 32;

/// One decision, to be rendered.
struct RenderInput<'a> {
    decision: &'a Decision,
    /// The deciding rule, and its limit as callers see it.
    rule: Option<&'a Rule>,
    policy: Option<Policy<'a>>,
    retry: RetryHint,
    /// Denied because the store is away, not by a limit.
    is_closed: bool,
    /// How that reads.
    closed: ClosedReason,
    /// Denied for the fleet's sake, not for what the caller used.
    is_shed: bool,
    dialect: Dialect,
    /// Whether the id of the decision is named.
    shows_id: bool,
}

/// True if what the rule refuses is shed: its numbers are those of the fleet, and no business of callers.
fn sheds(rule: &Rule) -> bool {
    rule.spec.limit.as_ref().is_some_and(|limit| limit.reserved.is_some())
}

impl<'a> RenderInput<'a> {
    #[inline]
    fn of(decision: &'a Decision, options: &ResponseOptions, config: &RenderConfig) -> RenderInput<'a> {
        let ruling = decision.deciding();
        let rule = ruling.and_then(|ruling| decision.rule(ruling));
        let policy = ruling.zip(rule).and_then(|(ruling, rule)| Policy::of(rule, ruling));
        let next = policy.as_ref().and_then(|policy| policy.next);
        let is_closed = decision.verdict == Verdict::Deny && decision.decided_by == DecidedBy::Closed;
        let is_shed = decision.verdict == Verdict::Deny && !is_closed && rule.is_some_and(sheds);
        let closed = options.closed;
        let retry = match (is_closed, is_shed) {
            (true, _) if closed == ClosedReason::StoreUnavailable => {
                RetryHint::while_away(config.retry_jitter, options.random)
            }
            (true, _) | (_, true) => RetryHint::while_shedding(config.retry_jitter, options.random),
            _ => RetryHint::of(decision.retry_after(), next, config.retry_jitter, options.random),
        };
        let (dialect, shows_id) = (options.dialect, config.decision_ids);
        RenderInput { decision, rule, policy, retry, is_closed, closed, is_shed, dialect, shows_id }
    }

    /// True if no limit of the caller is the reason.
    fn is_unavailable(&self) -> bool {
        self.is_closed || self.is_shed
    }

    /// The policy that header fields show first.
    #[inline]
    fn shown(&self) -> Option<Policy<'a>> {
        match self.rule.is_some_and(sheds) {
            true => self.policies().min_by_key(|policy| policy.remaining),
            false => self.policy,
        }
    }

    /// True if a quota for ever is used up: the cost would have fitted once, but never will again.
    fn is_used_up(&self) -> bool {
        let used = self.decision.deciding().and_then(|ruling| ruling.outcome).is_some_and(|outcome| outcome.used > 0);
        let quota = self.rule.and_then(|rule| rule.spec.limit.as_ref()).and_then(|limit| limit.quota.as_deref());
        used && quota.is_some_and(|quota| quota.is_for_ever())
    }

    /// The policies of all enforced rules that limit this request, in the order of the rules.
    #[inline]
    fn policies(&self) -> impl Iterator<Item = Policy<'a>> + Clone + use<'a> {
        let decision = self.decision;
        let deciding = decision.deciding();
        let decides = move |ruling: &Ruling| deciding.is_some_and(|deciding| std::ptr::eq(deciding, ruling));
        let enforced = decision.rulings().iter().filter(|ruling| ruling.enforced).enumerate();
        let listed = enforced.filter(move |(index, ruling)| *index < LISTED_MAX || decides(ruling));
        listed.filter_map(move |(_, ruling)| {
            let rule = decision.rule(ruling).filter(|rule| !sheds(rule))?;
            Policy::of(rule, ruling)
        })
    }
}

/// The limit of one rule, as a caller sees it.
///
/// Two waits, on purpose: `next` is the time until `remaining` grows, as `t` in the drafts; `reset` is the time until
/// the limit is as if unused, as `X-RateLimit-Reset` has always meant.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// The rule's name.
    pub name: &'a str,
    /// What the rule calls the thing it protects.
    pub resource: &'a str,
    /// Units per window: the rate.
    pub quota: u64,
    /// The window in whole seconds; `None` if there is none, or it is no whole number of seconds.
    pub window: Option<u64>,
    /// The most that can pass at once; equals `quota` but for buckets with a burst of their own.
    pub limit: u64,
    /// What is counted, where it is not requests.
    pub unit: Option<&'static str>,
    /// What could pass now.
    pub remaining: u64,
    /// What is in use.
    pub used: u64,
    /// Until `remaining` grows; `None` if it cannot, or if that is unknown.
    pub next: Option<Span>,
    /// Until the limit is as if unused; `None` for a quota that never starts anew.
    pub reset: Option<Span>,
    /// The partition key of the policy's bucket. Bucket digests are secret and never shown.
    pub partition: Option<&'a [u8]>,
}

impl<'a> Policy<'a> {
    /// The policy of a ruling; `None` if the rule sets no limit, or allowed without counting.
    #[inline]
    pub fn of(rule: &'a Rule, ruling: &Ruling) -> Option<Policy<'a>> {
        let limit = rule.limit.as_ref()?;
        let view = match &ruling.outcome {
            Some(outcome) => LimitView {
                limit: outcome.limit,
                remaining: outcome.remaining,
                used: outcome.used,
                next: outcome.next_unit_after,
                reset: outcome.reset_after,
            },
            None if ruling.refused() => LimitView::closed(limit),
            None => return None,
        };
        let LimitView { limit: capacity, remaining, used, next, reset } = view;
        let (quota, window) = quota_and_window(limit, ruling);
        let is_for_ever = matches!(limit, Limit::Quota(quota) if quota.end() == Quota::FOREVER);
        let unit = (limit.kind() == LimitKind::Concurrency).then_some("concurrent-requests");
        let (name, resource) = (rule.name.as_str(), rule.resource.as_str());
        Some(Policy {
            name,
            resource,
            quota,
            window,
            limit: capacity,
            unit,
            remaining,
            used,
            next,
            reset: Some(reset).filter(|_| !is_for_ever),
            partition: None,
        })
    }
}

struct LimitView {
    limit: u64,
    remaining: u64,
    used: u64,
    next: Option<Span>,
    reset: Span,
}

impl LimitView {
    /// A rule that denies while the store is away: nothing can pass until the next attempt.
    fn closed(limit: &Limit) -> LimitView {
        let capacity = limit.capacity();
        LimitView { limit: capacity, remaining: 0, used: capacity, next: Some(Span::SECOND), reset: Span::SECOND }
    }
}

/// The rate in whole seconds. A window below one second is scaled to one; any other fraction has no window.
#[inline]
fn quota_and_window(limit: &Limit, ruling: &Ruling) -> (u64, Option<u64>) {
    // The limit may have come with the request.
    let asked = if ruling.window > Span::ZERO { ruling.window } else { limit.window() };
    let (quota, window, second) = (ruling.requests, asked.nanos(), Span::SECOND.nanos());
    match (window / second, window % second) {
        _ if limit.kind() == LimitKind::Concurrency || asked >= Quota::FOREVER.since(Time::ZERO) => (quota, None),
        (secs, 0) => (quota, Some(secs)),
        (0, part) => (scaled(quota, second, part), Some(1)),
        _ => (quota, None),
    }
}

fn scaled(units: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(units) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The largest integer of a structured field: fifteen digits.
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// Adds the fields of all `styles`; none without a deciding policy.
fn write_fields<'a>(
    styles: HeaderStyles,
    now: Time,
    deciding: Option<&Policy<'_>>,
    every: impl Iterator<Item = Policy<'a>> + Clone,
    fields: &mut HeaderFields,
) {
    let Some(deciding) = deciding else { return };
    for field in styles.iter().flat_map(|style| style.fields) {
        if applies(field, every.clone()) && (deciding.reset.is_some() || !tells_reset(field)) {
            fields.push_with(field.name, |out| write_field(field, now, deciding, every.clone(), out));
        }
    }
}

/// Whether the field is the time of the reset, which a quota for ever does not have.
fn tells_reset(field: &HeaderField) -> bool {
    let mut parts = field.runs.iter().flat_map(|(_, item)| item.iter());
    parts.any(|(_, part)| matches!(part, HeaderPart::ResetIn | HeaderPart::ResetAt))
}

fn applies<'a>(field: &HeaderField, mut every: impl Iterator<Item = Policy<'a>>) -> bool {
    match field.runs {
        [(PolicySelector::Window(window), _)] => every.any(|policy| policy.window == Some(*window)),
        _ => true,
    }
}

#[inline]
fn write_field<'a>(
    field: &HeaderField,
    now: Time,
    deciding: &Policy<'_>,
    every: impl Iterator<Item = Policy<'a>> + Clone,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let mut add = |policy: &Policy<'_>, item: HeaderItem| {
        if out.len() > start {
            out.extend_from_slice(b", ");
        }
        item.iter().for_each(|(before, part)| write_part(*part, before, policy, now, out));
    };
    for (selector, item) in field.runs {
        match selector {
            PolicySelector::Deciding => add(deciding, item),
            PolicySelector::Every => every.clone().for_each(|policy| add(&policy, item)),
            PolicySelector::Window(window) => {
                let mut within = every.clone().filter(|policy| policy.window == Some(*window));
                within.next().iter().for_each(|policy| add(policy, item));
            }
        }
    }
}

#[inline]
fn write_part(part: HeaderPart, before: &str, policy: &Policy<'_>, now: Time, out: &mut Vec<u8>) {
    let value = match part {
        HeaderPart::Quota => Some(policy.quota),
        HeaderPart::Window => policy.window,
        HeaderPart::Burst => (policy.limit != policy.quota).then_some(policy.limit),
        HeaderPart::Limit => Some(policy.limit),
        HeaderPart::Remaining => Some(policy.remaining),
        HeaderPart::Used => Some(policy.used),
        HeaderPart::Next => policy.next.map(Span::secs_ceil),
        HeaderPart::NextOrZero => Some(policy.next.map_or(0, Span::secs_ceil)),
        HeaderPart::ResetIn => policy.reset.map(Span::secs_ceil),
        HeaderPart::ResetAt => policy.reset.map(|reset| now.after(reset).secs_ceil()),
        HeaderPart::Name | HeaderPart::Resource | HeaderPart::Unit | HeaderPart::Partition => {
            return write_text(part, before, policy, out);
        }
    };
    if let Some(value) = value {
        out.extend_from_slice(before.as_bytes());
        number(out, value.min(INTEGER_MAX));
    }
}

fn write_text(part: HeaderPart, before: &str, policy: &Policy<'_>, out: &mut Vec<u8>) {
    let (text, partition) = match part {
        HeaderPart::Name => (Some(policy.name), None),
        HeaderPart::Resource => return visible(out, policy.resource, false),
        HeaderPart::Unit => (policy.unit, None),
        _ => (None, policy.partition),
    };
    if text.is_none() && partition.is_none() {
        return;
    }
    out.extend_from_slice(before.as_bytes());
    if let Some(text) = text {
        out.push(b'"');
        visible(out, text, true);
        out.push(b'"');
    }
    if let Some(bytes) = partition {
        out.push(b':');
        let _ = EncoderWriter::new(&mut *out, &STANDARD).write_all(bytes); // a Vec takes everything
        out.push(b':');
    }
}

/// Appends text as visible ASCII. Names from rules files are always ASCII; other characters of rules built in code are
/// percent-encoded.
#[inline]
fn visible(out: &mut Vec<u8>, text: &str, quoted: bool) {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        return out.extend_from_slice(text.as_bytes());
    }
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' if quoted => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => {
                let digits = [byte >> 4, byte & 15].into_iter().filter_map(|digit| HEX.get(usize::from(digit)));
                out.push(b'%');
                out.extend(digits);
            }
        }
    }
}

#[cfg(test)]
mod tests;
