//! What is rendered: options of the server and of one call, and the decision with the values that both header fields
//! and body need, computed once.

use tollgate_engine::{DecidedBy, Decision, Ruling, Verdict};
use tollgate_ruleset::Rule;

use super::policy::Policy;
use super::retry::{Jitter, RetryHint};
use super::style::HeaderStyles;

/// How decisions are rendered, for all callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderConfig {
    /// Which families of header fields are sent. Default `x-ratelimit,draft-11`.
    pub headers: HeaderStyles,
    /// What `Retry-After` adds to waits, so that denied callers do not all retry at once. Default 10 %.
    pub retry_jitter: Jitter,
    /// The status of a denial where the call names none. Default 200.
    pub denial_status: DenialStatus,
    /// The status of a denial that no waiting helps, where denials have one. Default 429; 403 and 413 are usual too.
    pub never_status: u16,
    /// The detail of a denial by status. Default [`Detail::Public`].
    pub denial_detail: Detail,
}

/// The detail of a denial by status: proxies pass it on to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// What concerns the client: its limit, what is left, when to retry.
    #[default]
    Public,
    /// Everything in the plain response: also the mode, the generation and every other rule.
    Full,
}

impl Default for RenderConfig {
    fn default() -> Self {
        RenderConfig {
            headers: HeaderStyles::default(),
            retry_jitter: Jitter::default(),
            denial_status: DenialStatus::Ok,
            never_status: 429,
            denial_detail: Detail::Public,
        }
    }
}

/// The status of a denial where the call names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialStatus {
    /// 200: the check succeeded, and its result is a denial.
    #[default]
    Ok,
    /// 429: for proxies that pass the status on.
    TooManyRequests,
}

/// How one call wants its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseOptions {
    /// The path under which the API was called.
    pub dialect: Dialect,
    /// Whether a denial is a status of its own (`?status=429`); `None` leaves it to the configuration.
    pub deny_by_status: Option<bool>,
    /// The media type of a denial by status.
    pub media: Media,
    /// A random number for this response: selects the jitter of its wait.
    pub random: u64,
}

/// How a proxy wants its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyOptions {
    /// The options of any call.
    pub options: ResponseOptions,
    /// The status of a denial.
    pub denied: u16,
    /// The status of a denial because the store is away.
    pub closed: u16,
    /// The status of an invalid request.
    pub unreadable: u16,
}

/// The path under which the API was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/…` and `/rate-limit/check`: nothing to wait for is `null`.
    #[default]
    V1,
    /// `/check`: nothing to wait for is `0`.
    Alias,
}

/// The media type of a denial by status.
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

    pub(super) const fn name(self) -> &'static str {
        match self {
            Media::Problem => "application/problem+json",
            Media::Json => "application/json",
        }
    }
}

/// Most rules in header fields: clients reject heads of more than a few kilobytes. The body lists them all.
const LISTED_MAX: usize = 32;

/// One decision, to be rendered.
pub(super) struct RenderInput<'a> {
    pub(super) decision: &'a Decision,
    /// The deciding rule, and its limit as callers see it.
    pub(super) rule: Option<&'a Rule>,
    pub(super) policy: Option<Policy<'a>>,
    pub(super) retry: RetryHint,
    /// Denied because the store is away, not by a limit.
    pub(super) is_closed: bool,
    pub(super) dialect: Dialect,
}

impl<'a> RenderInput<'a> {
    #[inline]
    pub(super) fn of(decision: &'a Decision, options: &ResponseOptions, config: &RenderConfig) -> RenderInput<'a> {
        let ruling = decision.deciding();
        let rule = ruling.and_then(|ruling| decision.rule(ruling));
        let policy = ruling.zip(rule).and_then(|(ruling, rule)| Policy::of(rule, ruling));
        let next = policy.as_ref().and_then(|policy| policy.next);
        let is_closed = decision.verdict == Verdict::Deny && decision.decided_by == DecidedBy::Closed;
        let retry = match is_closed {
            true => RetryHint::while_away(config.retry_jitter, options.random),
            false => RetryHint::of(decision.retry_after(), next, config.retry_jitter, options.random),
        };
        RenderInput { decision, rule, policy, retry, is_closed, dialect: options.dialect }
    }

    /// True if a quota for ever is used up: the cost would have fitted once, but never will again.
    pub(super) fn is_used_up(&self) -> bool {
        let used = self.decision.deciding().and_then(|ruling| ruling.outcome).is_some_and(|outcome| outcome.used > 0);
        let quota = self.rule.and_then(|rule| rule.spec.limit.as_ref()).and_then(|limit| limit.quota.as_deref());
        used && quota.is_some_and(|quota| quota.is_for_ever())
    }

    /// The policies of all enforced rules that limit this request, in the order of the rules.
    #[inline]
    pub(super) fn policies(&self) -> impl Iterator<Item = Policy<'a>> + Clone + use<'a> {
        let decision = self.decision;
        let deciding = decision.deciding();
        let decides = move |ruling: &Ruling| deciding.is_some_and(|deciding| std::ptr::eq(deciding, ruling));
        let enforced = decision.rulings().iter().filter(|ruling| ruling.enforced).enumerate();
        let listed = enforced.filter(move |(index, ruling)| *index < LISTED_MAX || decides(ruling));
        listed.filter_map(move |(_, ruling)| Policy::of(decision.rule(ruling)?, ruling))
    }
}
