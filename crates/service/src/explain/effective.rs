//! A rule with every default filled in, as JSON.

use serde_json::{Map, Value, json};
use tollgate_core::{Limit, Quota, Request, Span, Time};
use tollgate_rules::spec::{
    Align, Cost, Enforcement, LeaseSpec, LimitSpec, MatchSpec, MeterSpec, Missing, OnFail, PenaltySpec,
};
use tollgate_rules::{PathCase, datetime, duration};
use tollgate_ruleset::Rule;

/// Nanoseconds in which one unit is replenished.
fn interval(limit: &Limit) -> Option<u64> {
    match limit {
        Limit::Gcra(_) | Limit::Queue(_) => limit.window().nanos().checked_div(limit.requests()),
        _ => None,
    }
}

/// Patterns by attribute; negated ones begin with `!`.
fn conditions(matches: &MatchSpec) -> Vec<(&str, Vec<String>)> {
    let negated = |pattern: String| format!("!{pattern}");
    let attributes = matches.attributes.iter().map(|(name, matcher)| {
        let none = matcher.none.iter().map(ToString::to_string).map(negated);
        (name.as_str(), matcher.any.iter().map(ToString::to_string).chain(none).collect())
    });
    let endpoint = matches.endpoint.iter().map(|matcher| {
        let none = matcher.none.iter().map(ToString::to_string).map(negated);
        ("endpoint", matcher.any.iter().map(ToString::to_string).chain(none).collect())
    });
    attributes.chain(endpoint).collect()
}

fn lease_text(lease: LeaseSpec) -> String {
    match lease {
        LeaseSpec::Tokens(tokens) => tokens.to_string(),
        LeaseSpec::Seconds(seconds) => format!("{seconds}s"),
    }
}

/// Every effective value by its name in a rules file.
pub fn effective_json(rule: &Rule) -> Map<String, Value> {
    let spec = &rule.spec;
    let case = |case: PathCase| if case == PathCase::Sensitive { "sensitive" } else { "insensitive" };
    let fields = json!({
        "name": rule.name,
        "source": source(rule),
        "location": rule.file_name.as_ref().map(|name| format!("{name}:{}", spec.at.line)),
        "line": spec.at.line,
        "plan": spec.plan.as_ref().map(|origin| &origin.plan),
        "description": spec.description,
        "resource": rule.resource,
        "match": matches_json(&spec.matches),
        "key_by": spec.key_by.as_ref().map(ToString::to_string),
        "meter": meter_json(&spec.meter),
        "unmetered": spec.unmetered.name(),
        "limit": spec.limit.as_ref().zip(rule.limit).map(|(spec, limit)| limit_json(spec, &limit)),
        "unlimited": spec.unlimited,
        "replaces": spec.replaces,
        "cost": cost_json(&spec.cost),
        "mode": mode_name(spec.mode),
        "own_mode": rule.replaced_mode.map(mode_name),
        "consistency": spec.consistency.name(),
        "on_fail": on_fail_name(rule.on_fail),
        "count_denied": spec.count_denied,
        "accept_limits": spec.accept_limits,
        "penalty": spec.penalty.as_ref().map(penalty_json),
        "max_debt": spec.max_debt,
        "soft": spec.soft.map(|soft| format!("{}%", soft.percent)),
        "missing": missing_name(spec.missing),
        "shards": spec.shards,
        "max_memory": spec.max_memory.map(|percent| format!("{percent}%")),
        "lease": spec.lease.map(lease_text),
        "case": spec.case.map(case),
        "doc_url": spec.doc_url,
        "error_code": spec.error_code,
    });
    if let Value::Object(fields) = fields { fields } else { Map::new() }
}

fn penalty_json(penalty: &PenaltySpec) -> Value {
    json!({
        "after": penalty.after,
        "within": duration::display(penalty.within_ns),
        "block": duration::display(penalty.block_ns),
        "growth": penalty.growth,
        "max": duration::display(penalty.max_ns),
    })
}

/// Where a rule comes from, as lists of rules say it.
fn source(rule: &Rule) -> &'static str {
    match (rule.envoy.is_some(), rule.spec.at.line) {
        (true, _) => "envoy",
        (false, 0) => "database",
        (false, _) => "file",
    }
}

/// A limit as JSON, with the numbers that apply: those of the rule, or of the client's override.
pub fn limit_json(spec: &LimitSpec, limit: &Limit) -> Value {
    let mut fields = json!({
        "algorithm": spec.algorithm.name(),
        "capacity": limit.capacity(),
        "interval_ns": interval(limit),
    });
    let window = duration::display(limit.window().nanos());
    let more = match limit {
        Limit::Concurrency(slots) => json!({ "slots": slots.slots(), "slot_ttl": window }),
        Limit::Queue(queue) => {
            let max_delay = duration::display(Span::nanos(queue.max_delay()));
            json!({ "requests": queue.requests(), "window": window, "max_delay": max_delay })
        }
        Limit::Gcra(gcra) => json!({ "requests": gcra.requests(), "window": window, "burst": gcra.burst() }),
        Limit::Quota(quota) => quota_json(spec, quota),
        other => {
            let align = if spec.align == Align::Key { "key" } else { "clock" };
            json!({ "requests": other.requests(), "window": window, "align": align })
        }
    };
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
        if let Some(reserved) = &spec.reserved {
            fields.insert("reserved".to_owned(), format!("{}%", reserved.percent).into());
            fields.insert("reserved_for".to_owned(), reserved.class.as_str().into());
        }
    }
    fields
}

/// A quota; with the period of the request, where there is one.
fn quota_json(spec: &LimitSpec, quota: &Quota) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("amount", json!(quota.amount()));
    set("overdraft", json!(quota.overdraft()));
    set("rollover", json!(quota.rollover()));
    if quota.grant() > 0 {
        set("granted", json!(quota.grant()));
    }
    if let Some(own) = &spec.quota {
        set("every", json!(own.calendar.every().name()));
        set("time_zone", json!(own.calendar.zone().name()));
        set("anchor", json!(own.calendar.anchor().to_string()));
        set("marks", json!(own.marks));
    }
    if quota.start() > Time::ZERO {
        let [start, end] = [quota.start(), quota.end()].map(|bound| datetime::display(bound.nanos()));
        set("period", json!({ "start": start, "end": end }));
    }
    fields.into()
}

fn matches_json(matches: &MatchSpec) -> Value {
    conditions(matches).into_iter().map(|(name, patterns)| (name.to_owned(), json!(patterns))).collect()
}

/// One name, or weights by name.
fn meter_json(meter: &MeterSpec) -> Value {
    match meter {
        MeterSpec::Requests => json!(Request::REQUESTS),
        MeterSpec::Weighted(weights) => match weights.as_slice() {
            [(name, 1)] => json!(name),
            weights => weights.iter().map(|(name, weight)| (name.clone(), json!(weight))).collect(),
        },
    }
}

fn cost_json(cost: &Cost) -> Value {
    match cost {
        Cost::Fixed(cost) => json!(cost),
        Cost::ByMatch(cases) => {
            cases.iter().map(|case| json!({ "match": matches_json(&case.matches), "cost": case.cost })).collect()
        }
    }
}

fn mode_name(mode: Enforcement) -> &'static str {
    match mode {
        Enforcement::Enforce => "enforce",
        Enforcement::Shadow => "shadow",
        Enforcement::Off => "off",
    }
}

fn on_fail_name(policy: OnFail) -> &'static str {
    match policy {
        OnFail::Allow => "allow",
        OnFail::Deny => "deny",
        OnFail::Local => "local",
    }
}

fn missing_name(missing: Missing) -> &'static str {
    match missing {
        Missing::Skip => "skip",
        Missing::Share => "share",
    }
}
