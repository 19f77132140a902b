//! What happens now: totals, rates, rankings, nodes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_service::traffic::{NamedTotals, Ranking, Resolution, TrafficCounts, TrafficMonitor, TrafficScope};

use super::shown::{self, ClientNames, monitor, scope};
use crate::call::AdminCall;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;

/// What totals may cover.
pub(super) const WINDOWS: &[&str] = &["1m", "5m", "15m", "1h"];
/// What clients may be ranked by.
pub(super) const RANKINGS: &[&str] = &["denied", "shadow_denied", "consuming", "newly_denied", "closest"];
/// Seconds that rates are the mean of.
const RATE_SECONDS: usize = 10;
/// Entries of each list of the overview.
const LISTED: usize = 10;

pub(super) fn overview(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (traffic, scope, clients) = (monitor(call)?, scope(call), ClientNames::of(call));
    let seconds = match call.query().text("window") {
        Some("1m") => 60,
        Some("15m") => 900,
        Some("1h") => 3600,
        _ => 300,
    };
    let totals = of_fleet(traffic, &scope, seconds);
    let recent = of_fleet(traffic, &scope, RATE_SECONDS);
    let (limited, is_exact) = traffic.limited_now(&scope);
    let list = |by: Ranking| {
        let (top, names) = traffic.top(&scope, None, by, LISTED);
        shown::clients(&top, &names, &clients)
    };
    Ok(AdminResponse::json(&json!({
        "now": shown::time(traffic.now()),
        "window_seconds": seconds,
        "totals": shown::counts(&whole(&totals)),
        "per_second": rates(&whole(&recent)),
        "limited_now": limited,
        "limited_now_is_exact": is_exact,
        "series": shown::series(&traffic.series(&scope, None, None, Resolution::Second, seconds.min(300))),
        "namespaces": by_namespace(&totals),
        "top_rules": top_rules(&totals),
        "top_denied": list(Ranking::Denied),
        "newly_denied": list(Ranking::NewlyDenied),
        "shadow_denied": list(Ranking::ShadowDenied),
        "closest": list(Ranking::Closest),
        "nodes": if call.may_see() { nodes(traffic, &scope) } else { json!([]) },
        "dropped": traffic.metrics().dropped(),
    })))
}

pub(super) fn top(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (traffic, scope, clients) = (monitor(call)?, scope(call), ClientNames::of(call));
    let name = call.query().text("by").unwrap_or("denied");
    let by = match name {
        "shadow_denied" => Ranking::ShadowDenied,
        "consuming" => Ranking::Consuming,
        "newly_denied" => Ranking::NewlyDenied,
        "closest" => Ranking::Closest,
        _ => Ranking::Denied,
    };
    let most = call.query().number("limit").and_then(|most| usize::try_from(most).ok()).unwrap_or(20);
    let (top, names) = traffic.top(&scope, call.query().text("rule"), by, most);
    Ok(AdminResponse::json(&json!({
        "by": name,
        "since": top.since.map(shown::time),
        "missing_at_most": top.missing_at_most,
        "items": shown::clients(&top, &names, &clients),
    })))
}

/// The sum over namespaces.
fn whole(totals: &[NamedTotals]) -> TrafficCounts {
    totals.iter().filter(|totals| totals.rule.is_empty()).map(|totals| totals.counts).sum()
}

/// Per second, in tenths.
fn rates(counts: &TrafficCounts) -> Value {
    let rate = |count: u64| (count.saturating_mul(10) / RATE_SECONDS as u64) as f64 / 10.0;
    json!({
        "allowed": rate(counts.allowed),
        "denied": rate(counts.denied),
        "shadow_denied": rate(counts.shadow_denied),
        "cost": rate(counts.cost),
    })
}

fn by_namespace(totals: &[NamedTotals]) -> Value {
    let mut all: BTreeMap<&str, TrafficCounts> = BTreeMap::new();
    for own in totals.iter().filter(|own| own.rule.is_empty()) {
        all.entry(&own.namespace).or_default().add(own.counts);
    }
    all.iter().map(|(namespace, counts)| with_names(namespace, None, counts)).collect()
}

fn top_rules(totals: &[NamedTotals]) -> Value {
    let mut rules: Vec<&NamedTotals> = totals.iter().filter(|own| !own.rule.is_empty()).collect();
    rules.sort_by_key(|own| std::cmp::Reverse((own.counts.denied + own.counts.shadow_denied, own.counts.allowed)));
    rules.iter().take(LISTED).map(|own| with_names(&own.namespace, Some(&own.rule), &own.counts)).collect()
}

fn with_names(namespace: &str, rule: Option<&str>, counts: &TrafficCounts) -> Value {
    let mut shown = shown::counts(counts);
    if let Some(members) = shown.as_object_mut() {
        members.insert("namespace".to_owned(), json!(namespace));
        rule.into_iter().for_each(|rule| drop(members.insert("rule".to_owned(), json!(rule))));
    }
    shown
}

/// What this node counted, and what the other nodes reported.
fn of_fleet(traffic: &TrafficMonitor, scope: &TrafficScope, seconds: usize) -> Vec<NamedTotals> {
    let mut totals = traffic.totals(scope, seconds);
    totals.extend(traffic.other_nodes(scope, seconds).into_iter().flat_map(|node| node.counts));
    totals
}

/// This node, and those that report to the same store.
fn nodes(traffic: &TrafficMonitor, scope: &TrafficScope) -> Value {
    let own = json!({
        "node": traffic.node(),
        "is_self": true,
        "seen_at": shown::time(traffic.now()),
        "missing": false,
        "per_second": rates(&whole(&traffic.totals(scope, RATE_SECONDS))),
    });
    let others = traffic.other_nodes(scope, RATE_SECONDS).into_iter().map(|node| {
        json!({
            "node": node.node,
            "is_self": false,
            "seen_at": shown::time(node.seen_at),
            "missing": node.is_missing,
            "per_second": rates(&whole(&node.counts)),
        })
    });
    std::iter::once(own).chain(others).collect()
}
