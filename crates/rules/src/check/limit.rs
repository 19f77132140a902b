//! Checks the numbers of a limit.

use super::{BURST_MAX, LOG_MAX, ProblemCollector, REQUESTS_MAX, SLOTS_MAX, WINDOW_NS};
use crate::duration;
use crate::problem::quote;
use crate::spec::{LimitAlgorithm, LimitSpec, OverrideSpec, RuleSpec};

/// Shortest time per unit that integer time can represent.
const INTERVAL_NS_MIN: u128 = 1_000;
/// The longest duration (SPEC 0.1).
const TIME_NS_MAX: u128 = i64::MAX as u128;

pub(super) fn check(limit: &LimitSpec, found: &mut ProblemCollector) {
    if limit.algorithm == LimitAlgorithm::Quota {
        return numbers(limit, LimitFieldNames { requests: "quota.amount", burst: "burst" }, found);
    }
    numbers(limit, LimitFieldNames { requests: "limit.requests", burst: "limit.burst" }, found);
    if limit.algorithm == LimitAlgorithm::Concurrency {
        range(found, "limit.slot_ttl", limit.slot_ttl_ns);
        return;
    }
    range(found, "limit.window", limit.window_ns);
    if let Some(delay) = limit.max_delay_ns {
        range(found, "limit.max_delay", delay);
        if limit.algorithm != LimitAlgorithm::LeakyBucket {
            let message = format!("{} has no queue", limit.algorithm.name());
            found.add("misplaced-field", "limit.max_delay", message, "remove it, or use leaky_bucket");
        }
    }
}

/// Checks the limit of a rule with the numbers of an override.
pub(super) fn check_change(change: &OverrideSpec, rule: &RuleSpec, found: &mut ProblemCollector) {
    let Some(limit) = &rule.limit else {
        if rule.unlimited {
            let message = format!("the rule {} is unlimited", quote(&change.rule));
            found.add("bad-override", "rule", message, "an override changes the numbers of a rule that has some");
        }
        return;
    };
    let mut changed = limit.clone();
    match limit.algorithm {
        LimitAlgorithm::Concurrency => changed.slots = change.requests.unwrap_or(limit.slots),
        _ => changed.requests = change.requests.unwrap_or(limit.requests),
    }
    changed.burst = match change.burst {
        None if changed.requests == 0 => None,
        None => limit.burst,
        given => given,
    };
    numbers(&changed, LimitFieldNames { requests: "requests", burst: "burst" }, found);
}

/// Paths of the numbers.
struct LimitFieldNames {
    requests: &'static str,
    burst: &'static str,
}

fn numbers(limit: &LimitSpec, fields: LimitFieldNames, found: &mut ProblemCollector) {
    let (requests, name) = (limit.requests, limit.algorithm.name());
    if limit.algorithm == LimitAlgorithm::Concurrency {
        if limit.slots > SLOTS_MAX {
            found.add(
                "out-of-range",
                fields.requests,
                format!("{} slots", limit.slots),
                &format!("allowed: 0 to {SLOTS_MAX}"),
            );
        }
    } else if requests > REQUESTS_MAX {
        found.add(
            "out-of-range",
            fields.requests,
            format!("{requests} requests"),
            &format!("allowed: 0 to {REQUESTS_MAX}"),
        );
    }
    if limit.algorithm == LimitAlgorithm::SlidingWindowLog && requests > LOG_MAX {
        let help = format!("use at most {LOG_MAX}, or sliding_window_counter, which keeps two numbers per key");
        found.add("out-of-range", fields.requests, format!("a log of {requests} requests per key"), &help);
    }
    match limit.burst {
        Some(burst) if !limit.is_gcra() => {
            let form = if limit.is_queue() { " as a queue" } else { "" };
            let message = format!("{name}{form} has no burst, and this is {burst}");
            found.add(
                "misplaced-field",
                fields.burst,
                message,
                "remove it; burst is for token_bucket, gcra and leaky_bucket",
            );
        }
        Some(burst) if burst > BURST_MAX => {
            found.add(
                "out-of-range",
                fields.burst,
                format!("a burst of {burst}"),
                &format!("allowed: 1 to {BURST_MAX}"),
            );
        }
        Some(_) if requests == 0 => {
            let message = "a limit of 0 requests refuses everything, whatever the burst".to_owned();
            found.add("misplaced-field", fields.burst, message, "remove `burst`, or give `requests`");
        }
        _ => {}
    }
    if (limit.is_gcra() || limit.is_queue()) && requests > 0 {
        pace(limit, &fields, found);
    }
}

/// Time per unit and time per bucket must fit integer time.
fn pace(limit: &LimitSpec, fields: &LimitFieldNames, found: &mut ProblemCollector) {
    let (window, requests) = (u128::from(limit.window_ns), u128::from(limit.requests));
    if window < INTERVAL_NS_MIN * requests {
        let most = window / INTERVAL_NS_MIN;
        let message =
            format!("{requests} requests per {} are more than one per microsecond", duration::display(limit.window_ns));
        let help = format!("use at most {most} requests for this window, or fixed_window, which has no such bound");
        found.add("too-fast", fields.requests, message, &help);
        return;
    }
    let time = match limit.max_delay_ns {
        Some(delay) if limit.is_queue() => u128::from(delay) * 2 + window / requests,
        _ => window * u128::from(limit.capacity()) / requests,
    };
    if time > TIME_NS_MAX {
        let message = "a full bucket would take more than 292 years to refill".to_owned();
        found.add("too-slow", fields.burst, message, "use a smaller burst, a shorter window or more requests");
    }
}

fn range(found: &mut ProblemCollector, field: &str, ns: u64) {
    if !WINDOW_NS.contains(&ns) {
        let allowed = [*WINDOW_NS.start(), *WINDOW_NS.end()].map(duration::display).join(" to ");
        found.add(
            "out-of-range",
            field,
            format!("{} is out of range", duration::display(ns)),
            &format!("allowed: {allowed}"),
        );
    }
}
