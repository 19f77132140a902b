//! Builds the limit of a rule.

use tollgate_core::{
    Concurrency, FixedWindow, Gcra, Limit, LimitError, Queue, Quota, SlidingCounter, SlidingLog, Span, Time,
};
use tollgate_rules::spec::{LimitAlgorithm, LimitSpec, RuleSpec};

pub(super) fn limit_of(spec: &LimitSpec, rule: &RuleSpec) -> Result<Limit, LimitError> {
    let window = Span::from_nanos(spec.window_ns);
    Ok(match spec.algorithm {
        LimitAlgorithm::LeakyBucket if let Some(max_delay) = spec.max_delay_ns => {
            Limit::Queue(Queue::new(spec.requests, window, Span::from_nanos(max_delay))?)
        }
        LimitAlgorithm::TokenBucket | LimitAlgorithm::Gcra | LimitAlgorithm::LeakyBucket => {
            let burst = spec.burst.unwrap_or(spec.requests);
            // Usage above the capacity is kept as debt: it was reported, or charged although denied.
            let counted = if rule.count_denied { burst } else { 0 };
            let debt = rule.max_debt.unwrap_or(counted);
            Limit::Gcra(Gcra::new(spec.requests, window, burst)?.with_max_debt(debt)?)
        }
        LimitAlgorithm::FixedWindow => Limit::FixedWindow(FixedWindow::new(spec.requests, window)?),
        LimitAlgorithm::SlidingWindowLog => Limit::SlidingLog(SlidingLog::new(spec.requests, window)?),
        LimitAlgorithm::SlidingWindowCounter => Limit::SlidingCounter(SlidingCounter::new(spec.requests, window)?),
        LimitAlgorithm::Quota => {
            // The bounds of a period depend on the request's time: see `quota`.
            let (end, next) = (Time::from_nanos(window.nanos()), Time::from_nanos(2 * window.nanos()));
            match window.is_zero() {
                true => Limit::Quota(Quota::lifetime(spec.requests)),
                false => Limit::Quota(Quota::new(spec.requests, Time::ZERO, end, next)?),
            }
        }
        LimitAlgorithm::Concurrency => {
            Limit::Concurrency(Concurrency::new(spec.slots, Span::from_nanos(spec.slot_ttl_ns))?)
        }
    })
}
