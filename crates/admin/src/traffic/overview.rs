//! What happens now: totals, rates, rankings, nodes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_core::Time;
use tollgate_service::traffic::{
    FleetView, NamedTotals, RATE_SECONDS, Ranking, ReportingNode, TrafficCounts, TrafficMonitor, TrafficQuestion,
    TrafficScope,
};

use super::shown::{self, ClientNames, ask, monitor, scope};
use crate::call::AdminCall;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;

/// What totals may cover.
pub(super) const WINDOWS: &[&str] = &["1m", "5m", "15m", "1h"];
/// What clients may be ranked by.
pub(super) const RANKINGS: &[&str] = &["denied", "shadow_denied", "consuming", "newly_denied", "closest"];
/// Entries of each list of the overview.
const LISTED: usize = 10;

pub(super) async fn overview(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let seconds = match call.query().text("window") {
        Some("1m") => 60,
        Some("15m") => 900,
        Some("1h") => 3600,
        _ => 300,
    };
    let fleet = ask(call, &TrafficQuestion::Overview { seconds }).await?;
    let (traffic, scope, clients) = (monitor(call)?, scope(call), ClientNames::of(call));
    let now = traffic.now();
    let nodes = nodes(traffic, &scope, &fleet);
    let totals = with_reports(fleet.totals(), traffic.other_nodes(&scope, seconds), &fleet);
    let limited = fleet.limited();
    let list = |by: Ranking| shown::clients(&fleet.top(by, now, LISTED), &clients);
    Ok(AdminResponse::json(&json!({
        "now": shown::time(now),
        "window_seconds": seconds,
        "totals": shown::counts(&whole(&totals)),
        "per_second": rates(&nodes.iter().map(|node| node.recent).sum()),
        "limited_now": limited.count(),
        "limited_now_is_exact": limited.is_exact && fleet.missing.is_empty(),
        "series": shown::with_nodes(call, shown::series(&fleet.series()), &fleet),
        "namespaces": by_namespace(&totals),
        "top_rules": top_rules(&totals),
        "top_denied": list(Ranking::Denied),
        "newly_denied": list(Ranking::NewlyDenied),
        "shadow_denied": list(Ranking::ShadowDenied),
        "closest": list(Ranking::Closest),
        "nodes": if call.may_see() { nodes.iter().map(ShownNode::shown).collect() } else { json!([]) },
        "dropped": traffic.metrics().dropped(),
    })))
}

pub(super) async fn top(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let name = call.query().text("by").unwrap_or("denied");
    let by = match name {
        "shadow_denied" => Ranking::ShadowDenied,
        "consuming" => Ranking::Consuming,
        "newly_denied" => Ranking::NewlyDenied,
        "closest" => Ranking::Closest,
        _ => Ranking::Denied,
    };
    let most = call.query().number("limit").and_then(|most| usize::try_from(most).ok()).unwrap_or(20);
    let question = TrafficQuestion::Clients { counts: by.counts(), rule: call.query().owned("rule") };
    let fleet = ask(call, &question).await?;
    let top = fleet.top(by, monitor(call)?.now(), most);
    let document = json!({
        "by": name,
        "since": top.since.map(shown::time),
        "missing_at_most": top.missing_at_most,
        "items": shown::clients(&top, &ClientNames::of(call)),
    });
    Ok(AdminResponse::json(&shown::with_nodes(call, document, &fleet)))
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

/// What the nodes counted; of those that did not answer, what they reported last.
fn with_reports(mut totals: Vec<NamedTotals>, reports: Vec<ReportingNode>, fleet: &FleetView) -> Vec<NamedTotals> {
    let silent = reports.into_iter().filter(|node| fleet.missing.contains(&node.node));
    totals.extend(silent.flat_map(|node| node.counts));
    totals
}

/// A node of the fleet.
struct ShownNode {
    node: String,
    is_self: bool,
    has_answered: bool,
    is_missing: bool,
    seen_at: Time,
    /// What it counted in the last seconds.
    recent: TrafficCounts,
}

impl ShownNode {
    fn shown(&self) -> Value {
        json!({
            "node": self.node,
            "is_self": self.is_self,
            "answered": self.has_answered,
            "seen_at": shown::time(self.seen_at),
            "missing": self.is_missing,
            "per_second": rates(&self.recent),
        })
    }
}

/// The nodes that answered, this one first, and those that only report to the same store.
fn nodes(traffic: &TrafficMonitor, scope: &TrafficScope, fleet: &FleetView) -> Vec<ShownNode> {
    let answered = fleet.views.iter().enumerate().map(|(place, view)| ShownNode {
        node: view.node.clone(),
        is_self: place == 0,
        has_answered: true,
        is_missing: false,
        seen_at: traffic.now(),
        recent: whole(&view.recent),
    });
    let has_answered = |name: &str| fleet.views.iter().any(|view| view.node == name);
    let silent = traffic.other_nodes(scope, RATE_SECONDS).into_iter().filter(|node| !has_answered(&node.node));
    let silent = silent.map(|node| ShownNode {
        is_self: false,
        has_answered: false,
        is_missing: node.is_missing,
        seen_at: node.seen_at,
        recent: whole(&node.counts),
        node: node.node,
    });
    answered.chain(silent).collect()
}
