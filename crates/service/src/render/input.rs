//! A decision with the values that both header fields and body need, computed once.

use tollgate_engine::{DecidedBy, Decision, Ruling, Verdict};
use tollgate_ruleset::Rule;

use super::options::{Dialect, RenderConfig, ResponseOptions};
use super::policy::Policy;
use super::retry::RetryHint;

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
