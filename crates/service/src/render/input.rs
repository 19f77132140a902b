//! A decision with what both header fields and body say about it, worked out once.

use tollgate_engine::{DecidedBy, Decision, Ruling, Verdict};
use tollgate_rules::ruleset::Rule;

use super::options::{Dialect, RenderConfig, ResponseOptions};
use super::policy::Policy;
use super::retry::RetryHint;

/// Most rules that header fields list. Clients refuse heads of more than some kilobytes; the body lists them all.
const LISTED_MAX: usize = 32;

/// One decision, about to be answered.
pub(super) struct RenderInput<'a> {
    pub(super) decision: &'a Decision,
    /// The deciding rule, and its limit seen from outside.
    pub(super) rule: Option<&'a Rule>,
    pub(super) policy: Option<Policy<'a>>,
    pub(super) retry: RetryHint,
    /// Refused because the store is away, and not for anything that the caller did.
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

    /// The policies of all enforced rules that limit this request, in the order of the rules.
    #[inline]
    pub(super) fn policies(&self) -> impl Iterator<Item = Policy<'a>> + Clone + use<'a> {
        let decision = self.decision;
        let deciding = decision.deciding();
        let decides = move |ruling: &Ruling| deciding.is_some_and(|deciding| std::ptr::eq(deciding, ruling));
        let enforced = decision.rulings().iter().filter(|ruling| ruling.enforced).enumerate();
        let listed = enforced.filter(move |(place, ruling)| *place < LISTED_MAX || decides(ruling));
        listed.filter_map(move |(_, ruling)| Policy::of(decision.rule(ruling)?, ruling))
    }
}
