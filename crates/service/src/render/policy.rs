//! A rule's limit as callers see it: the numbers of header fields, independent of the header style.

use tollgate_core::{Limit, LimitKind, Quota, Span, Time};
use tollgate_engine::Ruling;
use tollgate_ruleset::Rule;

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
