//! A rule's limit as callers see it: the numbers of header fields, before anybody chose how to write them.

use tollgate_core::{Limit, LimitKind, Span};
use tollgate_engine::Ruling;
use tollgate_rules::ruleset::Rule;

/// What one rule tells a caller.
///
/// Two waits, on purpose: `next` is when there is more than now, which is what the drafts' `t` means; `reset` is when
/// everything is as if unused, which is what `X-RateLimit-Reset` has always meant.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// The rule's name.
    pub name: &'a str,
    /// What the rule calls the thing it protects.
    pub resource: &'a str,
    /// Units per window: the rate.
    pub quota: u64,
    /// The window in whole seconds; `None` if there is none, or none that whole seconds can say.
    pub window: Option<u64>,
    /// The most that can pass at once; equals `quota` but for buckets with a burst of their own.
    pub limit: u64,
    /// What is counted, where it is not requests.
    pub unit: Option<&'static str>,
    /// What could pass now.
    pub remaining: u64,
    /// What is in use.
    pub used: u64,
    /// Until `remaining` grows; `None` when it cannot, or when nobody knows.
    pub next: Option<Span>,
    /// Until the limit is as if unused.
    pub reset: Span,
    /// Which of the policy's buckets it is about. Ours are secret; a style can show one that is not.
    pub partition: Option<&'a [u8]>,
}

impl<'a> Policy<'a> {
    /// What a ruling tells; `None` if the rule sets no limit, or let pass without options.
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
            reset,
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
    /// A rule that refuses while the store is away: nothing can pass, until it may be asked again.
    fn closed(limit: &Limit) -> LimitView {
        let capacity = limit.capacity();
        LimitView { limit: capacity, remaining: 0, used: capacity, next: Some(Span::SECOND), reset: Span::SECOND }
    }
}

/// The rate in whole seconds. A window below one second is scaled to one; of any other fraction only the quota is said.
#[inline]
fn quota_and_window(limit: &Limit, ruling: &Ruling) -> (u64, Option<u64>) {
    // The limit that was asked may have come with the request.
    let asked = if ruling.window > Span::ZERO { ruling.window } else { limit.window() };
    let (quota, window, second) = (ruling.requests, asked.nanos(), Span::SECOND.nanos());
    match (window / second, window % second) {
        _ if limit.kind() == LimitKind::Concurrency => (quota, None),
        (secs, 0) => (quota, Some(secs)),
        (0, part) => (scaled(quota, second, part), Some(1)),
        _ => (quota, None),
    }
}

fn scaled(units: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(units) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
