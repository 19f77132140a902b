//! Lists namespaces of the database and of files, with the number of rules by source.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::access::NamespaceScope;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, ResponseContent, Tag};
use super::node::FileKind;
use super::parameter::{CURSOR, LIMIT};
use super::problem::AdminProblem;
use super::response::AdminResponse;

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[AdminEndpoint {
    detail: "Every namespace that has rules of any source, overrides, grants, clients or settings, by name.",
    scope: NamespaceScope::Namespaces,
    query: &[LIMIT, CURSOR],
    responses: &[(200, ResponseContent::Json("NamespaceList"))],
    ..AdminEndpoint::get("/v1/namespaces", "listNamespaces", Tag::Rules, "List namespaces", |call| Box::pin(list(call)))
}];

/// Rules of one namespace by their source.
#[derive(Default)]
struct RuleCounts {
    database: i64,
    file: i64,
    envoy: i64,
}

impl RuleCounts {
    fn json(&self, namespace: &str) -> Value {
        let RuleCounts { database, file, envoy } = self;
        json!({ "namespace": namespace, "rules": { "database": database, "file": file, "envoy": envoy } })
    }
}

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "namespaces": [], "next_cursor": null })));
    }
    let page = call.page()?;
    let wanted = call.namespaces();
    let mut counts = counts(call).await?;
    counts.retain(|name, _| {
        wanted.as_ref().is_none_or(|wanted| wanted.contains(name)) && page.after.as_ref().is_none_or(|last| name > last)
    });
    let max_bytes = page.limit as usize;
    let namespaces: Vec<Value> = counts.iter().take(max_bytes).map(|(name, counts)| counts.json(name)).collect();
    let last = counts.keys().nth(max_bytes.saturating_sub(1)).filter(|_| counts.len() > max_bytes);
    let next = call.cursor(last.map(String::as_str));
    Ok(AdminResponse::json(&json!({ "namespaces": namespaces, "next_cursor": next })))
}

async fn counts(call: &AdminCall<'_>) -> Result<BTreeMap<String, RuleCounts>, AdminProblem> {
    let mut counts: BTreeMap<String, RuleCounts> = BTreeMap::new();
    if let Some(control) = &call.state.control {
        for (name, _) in control.namespaces().await? {
            counts.entry(name).or_default();
        }
        for (name, rules) in control.rules_by_namespace().await? {
            counts.entry(name).or_default().database = rules;
        }
    }
    for rule in (call.state.node.file_rules)().iter() {
        let count = counts.entry(rule.namespace.clone()).or_default();
        match rule.kind {
            FileKind::Rules => count.file += 1,
            FileKind::Envoy => count.envoy += 1,
        }
    }
    Ok(counts)
}
