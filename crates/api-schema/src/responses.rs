//! Schemas of other responses: changes, violations, audit, generations, the mode, the server, problems.

use serde_json::{Value, json};

use super::builders::{self, answer, flag, list, maybe_time, number, object, reference, text, time, word};

/// The kinds of records that the audit tells of: names of `RecordKind`, which a test of `admin` compares.
pub const AUDIT_KINDS: &[&str] = &[
    "rule",
    "override",
    "grant",
    "rule_mode",
    "client",
    "plan",
    "namespace",
    "token",
    "key",
    "webhook",
    "penalty",
    "mode",
    "counter",
    "everything",
];

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    [changes(), history(), violations(), usage(), server(), vec![("Problem", problem())]].concat()
}

fn record(text: &str) -> Value {
    json!({ "type": ["object", "null"], "description": text })
}

fn changes() -> Vec<(&'static str, Value)> {
    let all = json!({ "type": "array", "items": reference("Change") });
    let generation = number("The generation that this made; the present one if nothing changed.");
    let done = json!({ "generation": generation, "changes": all, "dry_run": { "const": true } });
    let changes = builders::together(&[&done, &json!({ "warnings": builders::warnings() })]);
    let mut dry_run = answer(done);
    if let Some(members) = dry_run.get_mut("properties").and_then(Value::as_object_mut) {
        members.insert("warnings".to_owned(), builders::warnings());
    }
    vec![
        (
            "Change",
            answer(json!({
                "kind": word(AUDIT_KINDS, "What kind of thing changed."),
                "namespace": text("Whose."),
                "id": text("Its id."),
                "before": record("What it was; null if it was made."),
                "after": record("What it is; null if it was removed."),
            })),
        ),
        ("Changes", json!({ "type": "object", "properties": changes, "required": ["generation", "changes"] })),
        ("DryRun", dry_run),
        ("Warning", warning()),
        ("Diff", answer(json!({ "from": number("From."), "to": number("To."), "changes": all }))),
        (
            "Namespace",
            answer(json!({
                "namespace": text("Its name."),
                "rules": answer(json!({
                    "database": number("Rules in the database."),
                    "file": number("Rules in rules files."),
                    "envoy": number("Limits in files of envoyproxy/ratelimit."),
                })),
            })),
        ),
        (
            "ExplainInput",
            json!({ "type": "object", "description": "A request as `/v1/check` takes it, or `domain` and `descriptors` (one) as `/json` takes them." }),
        ),
        (
            "Explanation",
            object(
                json!({
                    "decision": json!({ "type": "object", "description": "What `/v1/check` would answer." }),
                    "client": json!({ "type": "object", "description": "What is known of the client: its tier, …" }),
                    "rules": json!({
                        "type": "array",
                        "items": json!({ "type": "object", "description": "A rule, and what it makes of the request." }),
                    }),
                    "omitted": number("Rules that do not apply and are left out."),
                }),
                &["decision", "rules"],
            ),
        ),
        ("NamespaceList", list("namespaces", "Namespace")),
        ("Refreshed", answer(json!({ "generation": number("The generation in which all is read anew.") }))),
    ]
}

fn history() -> Vec<(&'static str, Value)> {
    let identity = json!({
        "generation": number("The generation that it made."),
        "at": time("When."),
        "author": text("The token's id, or `cli`, or `node`."),
        "author_name": text("The token's name then."),
        "action": text("What for."),
    });
    let row = json!({
        "number": number("Counts up from 1."),
        "kind": word(AUDIT_KINDS, "What kind of thing was changed."),
        "namespace": text("Whose; empty for what belongs to none."),
        "id": text("Its id."),
        "before": record("What it was."),
        "after": record("What it is."),
        "hash": text("SHA-256 over this row and the hash before."),
    });
    let changes = json!({ "changes": number("How many things it changed.") });
    vec![
        ("AuditRow", answer(builders::together(&[&identity, &row]))),
        ("AuditList", list("audit", "AuditRow")),
        (
            "Verified",
            answer(json!({
                "rows": number("Rows that were looked at."),
                "intact": flag("Whether every row is what it was."),
                "broken_at": { "type": ["integer", "null"], "format": "int64", "description": "The first row that is not." },
            })),
        ),
        ("Generation", answer(builders::together(&[&identity, &changes]))),
        ("GenerationList", list("generations", "Generation")),
    ]
}

fn violations() -> Vec<(&'static str, Value)> {
    vec![
        (
            "Violation",
            answer(json!({
                "violation_id": number("Its id."),
                "namespace": text("Whose."),
                "client_key": text("Who was refused: a digest, unless plain keys are kept (`violations_plain_keys`)."),
                "endpoint": text("What was asked for first in that minute."),
                "rule_id": { "type": ["string", "null"], "description": "Which rule refused; null in a row that SQL wrote without one." },
                "shadow": flag("Whether the rule is in shadow mode: it would have refused, and did not."),
                "violated_at": time("The minute."),
                "last_violated_at": time("The last time in that minute."),
                "refused": number("How often."),
                "request_count": number("The count that met the limit, the refused request included."),
                "limit_value": number("The limit that was in force."),
            })),
        ),
        ("ViolationList", list("violations", "Violation")),
        (
            "Offender",
            answer(json!({
                "namespace": text("Whose."),
                "what": text("The client, the rule or the endpoint."),
                "shadow": flag("Whether it was counted of rules in shadow mode, which refuse nothing."),
                "refused": number("How often, in all."),
                "last_violated_at": time("The last time it happened."),
            })),
        ),
        (
            "OffenderList",
            answer(json!({
                "by": word(&["client", "rule", "endpoint"], "What is counted."),
                "offenders": { "type": "array", "items": reference("Offender") },
            })),
        ),
    ]
}

fn usage() -> Vec<(&'static str, Value)> {
    let maybe = |kind: &str, text: &str| json!({ "type": [kind, "null"], "description": text });
    vec![
        (
            "Usage",
            answer(json!({
                "usage_id": number("Its id."),
                "namespace": text("Whose; empty if the rule is not known any more."),
                "client_key": maybe("string", "Whose bucket it is: a digest, unless plain keys are kept (`usage_plain_keys`); `-` for all clients together; null if it is not known yet."),
                "organisation": maybe("string", "The organisation of the client, as a digest likewise."),
                "rule_id": text("Of which rule."),
                "period_start": maybe_time("The first instant of the period; null if it is not known."),
                "period_end": maybe_time("The first instant after it; null for a quota without an end."),
                "used": number("Units used, as the store said at `as_of`."),
                "limit_value": { "type": ["integer", "null"], "format": "int64", "description": "Units that the period offers: amount, carried and granted." },
                "as_of": time("When the store said so, by its clock."),
                "node": maybe("string", "The node that counts this bucket alone, in its memory; null if all nodes share it."),
                "bucket": text("Names the bucket in the store and in decision logs."),
            })),
        ),
        ("UsageList", list("usage", "Usage")),
    ]
}

fn server() -> Vec<(&'static str, Value)> {
    let mode = word(&["enforce", "shadow", "off"], "What is done about limits.");
    vec![
        (
            "Mode",
            answer(json!({
                "mode": mode,
                "since": time("Since when."),
                "scope": word(&["fleet", "node"], "Whether all nodes were told, or this one alone stands so."),
            })),
        ),
        ("ModeInput", object(json!({ "mode": mode }), &["mode"])),
        (
            "Whoami",
            answer(json!({
                "token_id": text("The token's public half."),
                "name": text("The token's name."),
                "role": word(&["check", "viewer", "on-call", "operator", "admin"], "What it may do."),
                "namespaces": { "type": ["array", "null"], "items": { "type": "string" }, "description": "In which namespaces; null for all." },
                "expires_at": maybe_time("First instant it opens nothing any more."),
            })),
        ),
        (
            "Status",
            answer(json!({
                "node": text("What it calls itself."),
                "serving": number("The generation of rules that it decides by."),
                "generation": { "type": ["integer", "null"], "format": "int64", "description": "The generation of the database that this holds." },
                "database": answer(json!({
                    "state": word(&["up", "away", "off"], "How the database is."),
                    "error": { "type": ["string", "null"] },
                })),
                "refreshed_at": maybe_time("When the database was last read."),
                "mode": mode,
                "store": { "type": "array", "description": "The servers of a shared store.", "items": answer(json!({
                    "address": text("Where it is."),
                    "state": word(&["up", "recovering", "down"], "How it is."),
                })) },
                "file_errors": {
                    "type": "array",
                    "description": "What is wrong with rules files as they are now; the last rules that were right stay in force.",
                    "items": { "type": "string" },
                },
                "quarantined": { "type": "array", "items": reference("Quarantined") },
            })),
        ),
        (
            "NodeList",
            answer(json!({
                "read_at": maybe_time("When the other nodes were last read from the shared store."),
                "nodes": { "type": "array", "description": "This node first, then the others by name.", "items": reference("FleetNode") },
            })),
        ),
        (
            "FleetNode",
            answer(json!({
                "node": text("What it calls itself."),
                "node_id": text("Its name in the shared store and in logs, unlike that of any other node."),
                "is_self": flag("The node that answers."),
                "seen_at": time("When it last told of itself."),
                "missing": flag("It had not told of itself for twenty seconds when the store was last read."),
                "other_rules": flag("It decides by other rules than the node that answers."),
                "version": text("Its version."),
                "started_at": maybe_time("When it started."),
                "serving": number("The generation of rules that it decides by, counted by the node."),
                "generation": { "type": ["integer", "null"], "format": "int64", "description": "The generation of the database that it holds." },
                "mode": word(&["enforce", "shadow", "off", "unknown"], "Its mode: one that lost its database may have another."),
                "database": word(&["up", "away", "off", "unknown"], "How its database is."),
                "store": { "type": "array", "description": "The servers of the shared store as it sees them; at most 32, those that are not up first.", "items": answer(json!({
                    "address": text("Where it is."),
                    "state": word(&["up", "recovering", "down", "unknown"], "The breaker: closed, probing or open."),
                })) },
            })),
        ),
        (
            "Quarantined",
            answer(json!({
                "kind": text("What kind of row."),
                "namespace": text("Whose."),
                "id": text("Its id."),
                "reason": text("Why it cannot be used."),
            })),
        ),
    ]
}

fn warning() -> Value {
    json!({
        "type": "object",
        "description": "A rule is valid, and probably does not do what was meant.",
        "properties": {
            "field": text("Path of the field, such as `match.endpoint`."),
            "code": text("Stable name of the warning."),
            "message": text("What was found."),
            "help": { "type": ["string", "null"], "description": "What may have been meant." },
            "rule_id": text("Of which rule, where several were changed."),
            "line": number("Line, of a rules file."),
            "column": number("Column, of a rules file."),
        },
        "required": ["field", "code", "message", "help"],
    })
}

fn problem() -> Value {
    let fault = json!({
        "type": "object",
        "properties": {
            "field": text("Path of the field, such as `limit.window`; empty for the whole."),
            "code": text("Stable name of the mistake."),
            "message": text("What was found."),
            "help": { "type": ["string", "null"], "description": "What would be right." },
            "line": number("Line, of a rules file."),
            "column": number("Column, of a rules file."),
        },
        "required": ["field", "code", "message", "help"],
    });
    json!({
        "type": "object",
        "description": "Problem details (RFC 9457).",
        "properties": {
            "type": text("A URI; `about:blank` as long as the status says it all."),
            "title": text("What kind of mistake it is."),
            "status": number("The status."),
            "detail": text("What was wrong this time, and what to do."),
            "code": text("Stable name of the mistake, for machines."),
            "field": text("Path of the field, if there is one fault."),
            "errors": { "type": "array", "items": fault },
        },
        "required": ["type", "title", "status", "detail", "code"],
    })
}
