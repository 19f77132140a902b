//! Violations: refused requests, counted by client, rule and minute.

use serde_json::{Value, json};
use tollgate_control::{GroupBy, Offender, Violation, ViolationFilter, ViolationRecord};

use super::access::NamespaceScope;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, ResponseContent, Tag};
use super::parameter::{CURSOR, FROM, LIMIT, Parameter, ParameterKind, TO, parameter, text};
use super::problem::AdminProblem;
use super::response::AdminResponse;
use tollgate_service::mask::Mask;
use tollgate_service::violations::is_digest;

const CLIENT: Parameter = text("client_key", "Of this client.");
const ENDPOINT: Parameter = text("endpoint", "Of this path.");
const RULE: Parameter = text("rule_id", "By this rule.");
const SHADOW: Parameter = parameter("shadow", ParameterKind::Flag, "Only of rules in shadow mode, or only of others.");
const BY: Parameter =
    parameter("by", ParameterKind::OneOf(&["client", "rule", "endpoint"]), "What is counted; default client.");

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "The latest first; counted by client, rule and minute.",
        scope: NamespaceScope::Namespaces,
        query: &[CLIENT, ENDPOINT, RULE, SHADOW, FROM, TO, LIMIT, CURSOR],
        responses: &[(200, ResponseContent::Json("ViolationList"))],
        ..AdminEndpoint::get("/v1/violations", "listViolations", Tag::Violations, "Search refusals", |call| {
            Box::pin(list(call))
        })
    },
    AdminEndpoint {
        scope: NamespaceScope::Namespaces,
        query: &[BY, CLIENT, ENDPOINT, RULE, SHADOW, FROM, TO, LIMIT],
        responses: &[(200, ResponseContent::Json("OffenderList"))],
        ..AdminEndpoint::get("/v1/violations/top", "topOffenders", Tag::Violations, "Who was refused most", |call| {
            Box::pin(top(call))
        })
    },
];

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "violations": [], "next_cursor": null })));
    }
    let listing = call.control()?.violations(&filter(call), &call.page()?).await?;
    let mask = call.mask();
    let violations: Value = listing.entries.iter().map(|record| show(record, &mask)).collect();
    Ok(AdminResponse::json(&json!({ "violations": violations, "next_cursor": call.cursor(listing.next.as_deref()) })))
}

async fn top(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (name, by) = match call.query().text("by") {
        Some("rule") => ("rule", GroupBy::Rule),
        Some("endpoint") => ("endpoint", GroupBy::Endpoint),
        _ => ("client", GroupBy::Client),
    };
    let offenders = match call.may_see() {
        true => call.control()?.offenders(by, &filter(call), call.page()?.limit).await?,
        false => Vec::new(),
    };
    let mask = call.mask();
    let offenders: Value = offenders.iter().map(|offender| show_offender(offender, by, &mask)).collect();
    Ok(AdminResponse::json(&json!({ "by": name, "offenders": offenders })))
}

fn filter(call: &AdminCall<'_>) -> ViolationFilter {
    let query = call.query();
    ViolationFilter {
        namespaces: call.namespaces(),
        client_keys: query.text("client_key").map(|key| call.state.key_hashing.names(key)),
        endpoint: query.owned("endpoint"),
        rule_id: query.owned("rule_id"),
        is_shadow: query.flag("shadow"),
        from: query.time("from"),
        to: query.time("to"),
    }
}

fn show(record: &ViolationRecord, mask: &Mask<'_>) -> Value {
    let ViolationRecord { violation_id, violation } = record;
    let Violation { namespace, client_key, endpoint, rule_id, is_shadow, minute, last, .. } = violation;
    json!({
        "violation_id": violation_id,
        "namespace": namespace,
        "client_key": masked(client_key, mask),
        "endpoint": endpoint,
        "rule_id": rule_id,
        "shadow": is_shadow,
        "violated_at": minute.to_string(),
        "last_violated_at": last.to_string(),
        "refused": violation.refused,
        "request_count": violation.request_count,
        "limit_value": violation.limit_value,
    })
}

fn show_offender(offender: &Offender, by: GroupBy, mask: &Mask<'_>) -> Value {
    let Offender { namespace, what, is_shadow, refused, last } = offender;
    let what = if by == GroupBy::Client { masked(what, mask) } else { what.clone() };
    json!({
        "namespace": namespace,
        "what": what,
        "shadow": is_shadow,
        "refused": refused,
        "last_violated_at": last.to_string(),
    })
}

/// Masks a client key, unless it is stored as a digest.
fn masked(client_key: &str, mask: &Mask<'_>) -> String {
    if is_digest(client_key) { client_key.to_owned() } else { mask.key(client_key) }
}
