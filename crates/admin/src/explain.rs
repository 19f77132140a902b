//! `POST /v1/explain` on the admin port: the response of the data port, with ids and reasons of the overrides and grants of
//! the database that hold.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_control::record::{GrantRecord, Role};
use tollgate_control::{Control, GrantFilter, OverrideFilter, Page};
use tollgate_rules::OverrideSpec;
use tollgate_service::Unexplained;
use tollgate_service::explain::ExplainRequest;

use super::access::{AdminAccess, NamespaceScope};
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, HttpMethod, RequestBody, ResponseContent, Tag};
use super::problem::AdminProblem;
use super::response::AdminResponse;

/// Rules whose overrides, and rules whose grants are looked up for one explanation.
const LOOKED_UP_MAX: usize = 100;

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[AdminEndpoint {
    detail: "Takes what `/v1/check` takes, or `domain` and one of `descriptors` as Envoy sends them; charges nothing.",
    access: AdminAccess::Needs(Role::Viewer),
    scope: NamespaceScope::Nothing,
    body: RequestBody::Json(&["ExplainInput"]),
    responses: &[(200, ResponseContent::Json("Explanation"))],
    ..AdminEndpoint::change(
        HttpMethod::Post,
        "/v1/explain",
        "explain",
        Tag::Rules,
        "Explain a decision, rule by rule",
        |call| Box::pin(explain(call)),
    )
}];

async fn explain(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let request = ExplainRequest::read(call.body).map_err(|fault| {
        AdminProblem::of_fault(&fault.field, fault.code, fault.detail.clone(), "send what /v1/check takes")
    })?;
    if call.identity().is_some_and(|identity| !identity.may_see(request.namespace())) {
        return Err(AdminProblem::new(403, "other_namespace", "This token is not for the namespace of the request."));
    }
    let mut json = call.state.service.explain_any(&request).await.map_err(|why| match why {
        Unexplained::Busy => AdminProblem::new(503, "busy", "Another explanation is being made; try again."),
        Unexplained::Invalid(error) => {
            AdminProblem::of_fault(&error.field, error.code, error.message.clone(), "send what /v1/check takes")
        }
    })?;
    if let Some(control) = &call.state.control {
        let rules = json.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten();
        for rule in rules.filter(|rule| rule.get("override").is_some_and(Value::is_object)).take(LOOKED_UP_MAX) {
            name_override(control, request.namespace(), rule, call).await?;
        }
        let rules = json.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten();
        for rule in rules.filter(|rule| rule.get("grants").is_some()).take(LOOKED_UP_MAX) {
            name_grants(control, request.namespace(), rule).await?;
        }
    }
    call.mask().conditions(&mut json);
    Ok(AdminResponse::json(&call.mask().value(json)))
}

/// Adds id and reason of the override in force, if it is in the database.
async fn name_override(
    control: &Control,
    namespace: &str,
    rule: &mut Value,
    call: &AdminCall<'_>,
) -> Result<(), AdminProblem> {
    let text = |pointer: &str| rule.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let mut filter = OverrideFilter {
        namespaces: Some(vec![namespace.to_owned()]),
        client_key: text("/override/client_key"),
        rule_id: text("/name"),
        holds_at: Some(call.state.now()),
    };
    let one = Page { limit: 1, after: None };
    let mut found = control.overrides(&filter, &one).await?;
    for name in name_in_plan(rule).into_iter().chain([OverrideSpec::EVERY_RULE]) {
        if found.entries.is_empty() {
            filter.rule_id = Some(name.to_owned());
            found = control.overrides(&filter, &one).await?;
        }
    }
    if let (Some(record), Some(held)) = (found.entries.first(), rule.get_mut("override").and_then(Value::as_object_mut))
    {
        held.insert("override_id".to_owned(), json!(record.override_id));
        held.insert("reason".to_owned(), json!(record.draft.reason));
    }
    Ok(())
}

/// Adds ids and reasons of the grants that count, if they are in the database.
async fn name_grants(control: &Control, namespace: &str, rule: &mut Value) -> Result<(), AdminProblem> {
    let name = rule.get("name").and_then(Value::as_str).unwrap_or_default();
    let names: Vec<String> = [name].into_iter().chain(name_in_plan(rule)).map(str::to_owned).collect();
    let mut records: Vec<GrantRecord> = Vec::new();
    let mut read: BTreeSet<String> = BTreeSet::new();
    for held in rule.get_mut("grants").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(held) = held.as_object_mut() else { continue };
        let Some(client_key) = held.get("client_key").and_then(Value::as_str).map(str::to_owned) else { continue };
        if read.insert(client_key.clone()) {
            for rule_id in &names {
                let filter = GrantFilter {
                    namespaces: Some(vec![namespace.to_owned()]),
                    client_key: Some(client_key.clone()),
                    rule_id: Some(rule_id.clone()),
                    holds_at: None,
                };
                records.extend(control.grants(&filter, &Page::default()).await?.entries);
            }
        }
        let is_held = |record: &GrantRecord| {
            let from = record.draft.valid_from.map(|from| from.to_string());
            record.draft.client_key == client_key
                && held.get("amount").and_then(Value::as_i64) == Some(record.draft.amount)
                && held.get("valid_from").and_then(Value::as_str) == from.as_deref()
        };
        if let Some(place) = records.iter().position(is_held) {
            let GrantRecord { grant_id, draft, .. } = records.swap_remove(place); // two alike are two grants
            held.insert("grant_id".to_owned(), json!(grant_id));
            held.insert("reason".to_owned(), json!(draft.reason));
        }
    }
    Ok(())
}

/// The name within plans of a plan's rule: overrides and grants may use it.
fn name_in_plan(rule: &Value) -> Option<&str> {
    let text = |name: &str| rule.get(name).and_then(Value::as_str);
    text("name")?.strip_prefix(text("plan")?)?.strip_prefix('.')
}
