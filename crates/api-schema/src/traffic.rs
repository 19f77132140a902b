//! Schemas about traffic.

use serde_json::{Value, json};

use super::builders::{answer, flag, maybe_time, number, object, reference, text, time, word};

fn maybe(kind: &str, text: &str) -> Value {
    match kind {
        "integer" => json!({ "type": [kind, "null"], "format": "int64", "description": text }),
        _ => json!({ "type": [kind, "null"], "description": text }),
    }
}

fn array(of: Value, text: &str) -> Value {
    json!({ "type": "array", "items": of, "description": text })
}

/// The nodes that a document is about.
fn with_nodes(mut members: Value) -> Value {
    if let Some(members) = members.as_object_mut() {
        members.insert("nodes".to_owned(), names("The nodes that are in it, the one that was asked first."));
        members.insert("missing_nodes".to_owned(), names("Nodes of the fleet that did not answer in time."));
    }
    answer(members)
}

fn names(text: &str) -> Value {
    array(json!({ "type": "string" }), text)
}

fn counts() -> Value {
    json!({
        "allowed": number("Requests that were allowed."),
        "denied": number("Requests that were denied."),
        "shadow_denied": number("Requests that a rule in shadow mode would have denied."),
        "cost": number("Units that were charged."),
    })
}

fn rates() -> Value {
    let rate = |text: &str| json!({ "type": "number", "description": text });
    answer(json!({
        "allowed": rate("Allowed per second."),
        "denied": rate("Denied per second."),
        "shadow_denied": rate("Denied in shadow mode per second."),
        "cost": rate("Units charged per second."),
    }))
}

fn named_counts(with_rule: bool) -> Value {
    let mut members = counts();
    if let Some(members) = members.as_object_mut() {
        members.insert("namespace".to_owned(), text("Whose."));
        if with_rule {
            members.insert("rule".to_owned(), text("The rule."));
        }
    }
    answer(members)
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    [overview(), decisions(), changes()].concat()
}

fn overview() -> Vec<(&'static str, Value)> {
    let steps = |text: &str| array(json!({ "type": "integer", "format": "int64" }), text);
    let ranked = |text: &str| array(reference("TopClient"), text);
    vec![
        (
            "TrafficOverview",
            answer(json!({
                "now": time("When this was."),
                "window_seconds": number("What totals cover."),
                "totals": answer(counts()),
                "per_second": rates(),
                "limited_now": number("Clients that are refused at this moment."),
                "limited_now_is_exact": flag("False if there may be more, that are not known by name."),
                "series": reference("TrafficSeries"),
                "namespaces": array(named_counts(false), "Totals by namespace."),
                "top_rules": array(named_counts(true), "The rules that refused most, then those that allowed most."),
                "top_denied": ranked("Clients that were refused most."),
                "newly_denied": ranked("Clients that are refused, the latest to begin first."),
                "shadow_denied": ranked("Clients that rules in shadow mode would have refused."),
                "closest": ranked("Clients that use most of their limit."),
                "nodes": array(answer(json!({
                    "node": text("Its name."),
                    "is_self": flag("Whether it is the node that was asked."),
                    "answered": flag("Whether it answered: its clients are in the rankings."),
                    "seen_at": time("When it last reported."),
                    "missing": flag("Whether it stopped to report, and did not answer: its counts are not in the totals."),
                    "per_second": rates(),
                })), "The nodes of the fleet that report."),
                "dropped": number("Decisions that were left out since the start, because there were too many."),
            })),
        ),
        (
            "TrafficSeries",
            with_nodes(json!({
                "start": time("The start of the first step."),
                "step_seconds": number("The length of a step."),
                "allowed": steps("Requests that were allowed, by step."),
                "denied": steps("Requests that were denied."),
                "shadow_denied": steps("Requests that a rule in shadow mode would have denied."),
                "cost": steps("Units that were charged."),
            })),
        ),
        (
            "TopClients",
            with_nodes(json!({
                "by": word(&["denied", "shadow_denied", "consuming", "newly_denied", "closest"], "What it is ranked by."),
                "since": maybe_time("The start of what it covers; null if nothing was counted."),
                "missing_at_most": number("A client that is missing has at most so many at one rule."),
                "items": ranked("The clients, the first of the ranking first."),
            })),
        ),
        (
            "TopClient",
            answer(json!({
                "namespace": text("Whose."),
                "rule": text("The rule."),
                "client": text("The client: a digest, unless plain keys are kept (`violations_plain_keys`)."),
                "count": number("Refusals, or units, at most."),
                "error": number("By how much `count` can be too high."),
                "used": maybe("integer", "Units in use when it was last seen."),
                "limit": maybe("integer", "The capacity then."),
                "share_permille": maybe("integer", "How much of it was in use, in thousandths."),
                "last_at": maybe_time("When it was last seen."),
                "limited_since": maybe_time("Since when it is refused."),
                "limited_until": maybe_time("When its last request would have passed; null if never, or if it is not refused."),
                "shadow": flag("Whether the rule was in shadow mode."),
            })),
        ),
    ]
}

fn decisions() -> Vec<(&'static str, Value)> {
    let shared = |own: Value| {
        let mut members = json!({
            "plan": maybe("string", "The plan that the rule comes from."),
            "limit": maybe("integer", "Units per window of the limit that applied."),
            "window_ms": maybe("integer", "Its window."),
            "rule_limit": maybe("integer", "Units per window of the rule itself, if it is in force."),
            "override": flag("Whether an override replaced the rule's own limit."),
            "used": maybe("integer", "Units in use at that moment."),
            "capacity": maybe("integer", "The most that could be in use."),
            "remaining": maybe("integer", "Units that were left."),
            "limited_since": maybe_time("Since when the rule refuses the client."),
            "retry_after_ms": maybe("integer", "When it would have passed; null if never."),
            "mode": text("What decided: `store`, `lease`, `fallback`, …"),
        });
        if let (Some(members), Value::Object(own)) = (members.as_object_mut(), own) {
            members.extend(own);
        }
        answer(members)
    };
    vec![
        (
            "RecentDecision",
            shared(json!({
                "decision_id": text("Its id: sixteen hexadecimal digits."),
                "at": time("When it was made."),
                "node": text("The node that made it."),
                "namespace": text("Whose."),
                "client": text("The client: a digest, unless plain keys are kept (`violations_plain_keys`)."),
                "allowed": flag("Whether the request was allowed."),
                "shadow_denied": flag("Whether a rule in shadow mode would have denied it."),
                "cost": number("Units that were asked for."),
                "rule": maybe("string", "The rule that decided; null if none applied."),
                "ends_at": maybe_time("When the same request would have passed."),
                "generation": number("The generation of rules."),
                "rules": array(reference("RecentRuling"), "The rules that applied, the deciding one first; at most four."),
            })),
        ),
        (
            "RecentRuling",
            shared(json!({
                "rule": text("The rule."),
                "allowed": flag("Whether it allowed the request."),
                "shadow": flag("Whether it only watches."),
                "deciding": flag("Whether it decided."),
                "charged": number("Units that it charged."),
                "reset_at": maybe_time("When its bucket is empty again."),
            })),
        ),
        (
            "DecisionList",
            with_nodes(json!({
                "decisions": array(reference("RecentDecision"), "The latest first."),
                "next_before": maybe("string", "`before` of the next piece; null at the end."),
            })),
        ),
    ]
}

fn changes() -> Vec<(&'static str, Value)> {
    let limit = || {
        answer(json!({
            "requests": number("Units per window."),
            "window_ms": number("The window."),
            "burst": maybe("integer", "Units at once, of a bucket that refills; null for a window."),
        }))
    };
    let effect = json!({
        "requests": number("Requests that were made."),
        "refused_then": number("Requests that were refused."),
        "refused_min": number("Requests that the limit would have refused, at least."),
        "refused_max": number("Requests that it would have refused, at most."),
    });
    let with = |own: Value| {
        let mut members = effect.clone();
        if let (Some(members), Value::Object(own)) = (members.as_object_mut(), own) {
            members.extend(own);
        }
        answer(members)
    };
    let reset = json!({
        "namespace": text("Whose; default: the only one of the token, or `default`."),
        "client": text("The key of the client, such as `user:42`."),
        "rule": text("The rule; without it, all that apply."),
        "endpoint": text("The endpoint, if the rules ask for one."),
        "tier": text("The tier, likewise."),
        "reason": text("Why, for the audit."),
    });
    vec![
        (
            "PreviewInput",
            object(
                json!({
                    "namespace": text("Whose; default: the only one of the token, or `default`."),
                    "rule": text("The rule."),
                    "range": word(&["1h", "1d", "30d"], "Over which recorded traffic; default 1h."),
                    "limit": object(json!({
                        "requests": number("Units per window."),
                        "window": text("The window, such as `1m`."),
                        "burst": number("Units at once."),
                    }), &[]),
                }),
                &["rule", "limit"],
            ),
        ),
        (
            "Preview",
            with(json!({
                "namespace": text("Whose."),
                "rule": text("The rule."),
                "range": word(&["1h", "1d", "30d"], "What it covers."),
                "step_seconds": number("The steps that were recorded."),
                "limit_now": limit(),
                "limit": limit(),
                "clients": number("Clients that were simulated."),
                "refused_clients": number("Clients that would have been refused at least once, at most."),
                "unattributed": number("Requests of clients that are not known by name: they are left out."),
                "summary": text("All of it in one sentence."),
                "items": array(with(json!({ "client": text("The client.") })), "By client, the most refused first."),
            })),
        ),
        ("ResetInput", object(reset, &["client"])),
        (
            "Reset",
            answer(json!({
                "namespace": text("Whose."),
                "client": text("The client."),
                "rules": array(json!({ "type": "string" }), "The rules whose counts were forgotten."),
            })),
        ),
    ]
}
