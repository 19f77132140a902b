//! How traffic is shown: times, clients, counts and decisions as JSON.

use serde_json::{Value, json};
use tollgate_control::Instant;
use tollgate_core::{Span, Time, Wait};
use tollgate_service::traffic::{
    FleetView, FoundDecision, FoundRuling, RankedClient, TopClients, TrafficCounts, TrafficMonitor, TrafficQuestion,
    TrafficScope, TrafficSeries,
};

use crate::call::AdminCall;
use crate::problem::AdminProblem;
use crate::state::AdminState;
use tollgate_service::mask::Mask;

/// How clients are shown to a caller: as violations show them, as digests under the site's key, unless plain keys are
/// kept; those are masked for viewers.
#[derive(Clone, Copy)]
pub(super) struct ClientNames<'a> {
    state: &'a AdminState,
    mask: Mask<'a>,
}

impl<'a> ClientNames<'a> {
    pub(super) fn of(call: &AdminCall<'a>) -> ClientNames<'a> {
        ClientNames { state: call.state, mask: call.mask() }
    }

    pub(super) fn new(state: &'a AdminState, mask: Mask<'a>) -> ClientNames<'a> {
        ClientNames { state, mask }
    }

    /// A client as it is shown.
    pub(super) fn shown(&self, client: &str) -> String {
        match self.state.traffic.as_ref().is_some_and(|traffic| traffic.has_plain_keys()) {
            true if client == "-" => client.to_owned(),
            true => self.mask.key(client),
            false => self.state.key_hashing.of(client),
        }
    }
}

/// The monitor; an error if analytics are off.
pub(super) fn monitor<'a>(call: &AdminCall<'a>) -> Result<&'a TrafficMonitor, AdminProblem> {
    call.state.traffic.as_deref().ok_or_else(|| {
        let detail = "Analytics are off on this server: start it with --analytics-memory 32MiB to see its traffic.";
        AdminProblem::new(503, "no_analytics", detail)
    })
}

/// The namespaces that a call covers: those of the token and those that are named.
pub(super) fn scope(call: &AdminCall<'_>) -> TrafficScope {
    match call.may_see() {
        true => TrafficScope { namespaces: call.namespaces() },
        false => TrafficScope { namespaces: Some(Vec::new()) },
    }
}

/// Asks all nodes of the fleet about the namespaces of a call.
pub(super) async fn ask(call: &AdminCall<'_>, question: &TrafficQuestion) -> Result<FleetView, AdminProblem> {
    let traffic = monitor(call)?;
    Ok(call.state.service.ask_traffic(traffic, &scope(call), question).await)
}

/// Adds to a document which nodes it is about, and which did not answer; callers that see nothing do not see nodes.
pub(super) fn with_nodes(call: &AdminCall<'_>, mut document: Value, fleet: &FleetView) -> Value {
    let (nodes, missing) = if call.may_see() { (fleet.nodes(), &*fleet.missing) } else { (Vec::new(), &[][..]) };
    if let Some(members) = document.as_object_mut() {
        members.insert("nodes".to_owned(), json!(nodes));
        members.insert("missing_nodes".to_owned(), json!(missing));
    }
    document
}

/// A time as text.
pub(super) fn time(at: Time) -> String {
    Instant::from(at).to_string()
}

/// Counts.
pub(super) fn counts(counts: &TrafficCounts) -> Value {
    let TrafficCounts { allowed, denied, shadow_denied, cost } = counts;
    json!({ "allowed": allowed, "denied": denied, "shadow_denied": shadow_denied, "cost": cost })
}

/// Counts over time.
pub(super) fn series(series: &TrafficSeries) -> Value {
    let of = |count: fn(&TrafficCounts) -> u64| series.steps.iter().map(count).collect::<Value>();
    json!({
        "start": time(series.start),
        "step_seconds": series.resolution.seconds(),
        "allowed": of(|step| step.allowed),
        "denied": of(|step| step.denied),
        "shadow_denied": of(|step| step.shadow_denied),
        "cost": of(|step| step.cost),
    })
}

/// Clients of a ranking.
pub(super) fn clients(top: &TopClients, clients: &ClientNames<'_>) -> Value {
    let shown = |client: &RankedClient| {
        let limited = client.limited;
        json!({
            "namespace": client.namespace,
            "rule": client.rule,
            "client": clients.shown(&client.client),
            "count": client.count,
            "error": client.error,
            "used": client.usage.map(|(used, _)| used),
            "limit": client.usage.map(|(_, limit)| limit),
            "share_permille": client.share(),
            "last_at": client.at.map(time),
            "limited_since": limited.map(|limited| time(limited.since)),
            "limited_until": limited.and_then(|limited| limited.until).map(time),
            "shadow": limited.is_some_and(|limited| limited.is_shadow),
        })
    };
    top.clients.iter().map(shown).collect()
}

/// A decision.
pub(super) fn decision(found: &FoundDecision, clients: &ClientNames<'_>) -> Value {
    let first = found.rulings.first();
    let outcome = first.and_then(|ruling| ruling.outcome);
    let retry = first.map(|ruling| wait(ruling, found));
    let ends = match retry {
        Some(Wait::For(span)) => Some(time(found.at.after(span))),
        _ => None,
    };
    json!({
        "decision_id": found.id.to_string(),
        "at": time(found.at),
        "node": found.node,
        "namespace": found.namespace,
        "client": clients.shown(&found.client),
        "allowed": found.is_allowed,
        "shadow_denied": found.is_allowed && found.rulings.iter().any(|ruling| ruling.is_refused && !ruling.is_enforced),
        "cost": found.cost,
        "rule": first.map(|ruling| ruling.rule.as_str()),
        "plan": first.and_then(|ruling| ruling.plan.as_deref()),
        "limit": first.filter(|ruling| ruling.outcome.is_some()).map(|ruling| ruling.requests),
        "window_ms": first.filter(|ruling| !ruling.window.is_zero()).map(|ruling| ruling.window.millis_ceil()),
        "rule_limit": first.and_then(|ruling| ruling.rule_requests),
        "override": first.is_some_and(is_overridden),
        "used": outcome.map(|outcome| outcome.used),
        "capacity": outcome.map(|outcome| outcome.limit),
        "remaining": outcome.map(|outcome| outcome.remaining),
        "limited_since": first.and_then(|ruling| ruling.limited_since).map(time),
        "retry_after_ms": retry.and_then(Wait::span).map(Span::millis_ceil),
        "ends_at": ends,
        "mode": found.mode,
        "generation": found.generation,
        "rules": found.rulings.iter().map(|ruling| self::ruling(ruling, found)).collect::<Value>(),
    })
}

fn ruling(ruling: &FoundRuling, found: &FoundDecision) -> Value {
    let outcome = ruling.outcome;
    json!({
        "rule": ruling.rule,
        "plan": ruling.plan,
        "allowed": !ruling.is_refused,
        "shadow": !ruling.is_enforced,
        "deciding": ruling.is_deciding,
        "limit": outcome.map(|_| ruling.requests),
        "window_ms": Some(ruling.window.millis_ceil()).filter(|_| !ruling.window.is_zero()),
        "rule_limit": ruling.rule_requests,
        "override": is_overridden(ruling),
        "used": outcome.map(|outcome| outcome.used),
        "capacity": outcome.map(|outcome| outcome.limit),
        "remaining": outcome.map(|outcome| outcome.remaining),
        "charged": outcome.map_or(0, |outcome| outcome.granted),
        "limited_since": ruling.limited_since.map(time),
        "retry_after_ms": wait(ruling, found).span().map(Span::millis_ceil),
        "reset_at": outcome.map(|outcome| time(found.at.after(outcome.reset_after))),
        "mode": ruling.mode,
    })
}

/// True if another limit than the rule's own applied: that of an override, or this node's share of it.
fn is_overridden(ruling: &FoundRuling) -> bool {
    let is_whole = matches!(ruling.mode, "store" | "lease" | "async");
    is_whole && ruling.outcome.is_some() && ruling.rule_requests.is_some_and(|own| own != ruling.requests)
}

fn wait(ruling: &FoundRuling, found: &FoundDecision) -> Wait {
    match ruling.outcome {
        Some(outcome) if ruling.is_refused || !found.is_allowed => outcome.wait,
        _ => Wait::None,
    }
}
