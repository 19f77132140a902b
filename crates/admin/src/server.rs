//! This server: the caller's identity, the status of the node, and the description of the API.

use serde_json::{Value, json};
use tollgate_control::RecordKind;

use super::access::{AdminAccess, NamespaceScope};
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, ResponseContent, Tag};
use super::node::{NodeStatus, QuarantinedRow};
use super::node_health::DatabaseHealth;
use super::problem::AdminProblem;
use super::response::AdminResponse;
use tollgate_service::mask::Mask;

/// Assets of the page about the API.
pub(super) const STYLE: &str = include_str!("docs/style.css");
pub(super) const SCRIPT: &str = include_str!("docs/script.js");

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Json("Whoami"))],
        ..AdminEndpoint::get("/v1/whoami", "whoAmI", Tag::Server, "Who the token is", |call| {
            Box::pin(async move { whoami(call) })
        })
    },
    AdminEndpoint {
        detail: "What this node serves, how its database is, and which rows it cannot use.",
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Json("Status"))],
        ..AdminEndpoint::get("/v1/status", "getStatus", Tag::Server, "How this node is", |call| {
            Box::pin(async move { Ok(status(call)) })
        })
    },
    AdminEndpoint {
        access: AdminAccess::Open,
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Text("application/json"))],
        ..AdminEndpoint::get("/openapi.json", "getOpenApi", Tag::Server, "This description, as OpenAPI 3.1", |call| {
            Box::pin(async move { Ok(AdminResponse::text("application/json", (call.state.description.openapi)())) })
        })
    },
    AdminEndpoint {
        access: AdminAccess::Open,
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Text("text/html; charset=utf-8"))],
        ..AdminEndpoint::get("/docs", "getDocs", Tag::Server, "This description, as a page", |call| {
            Box::pin(
                async move { Ok(AdminResponse::text("text/html; charset=utf-8", (call.state.description.page)())) },
            )
        })
    },
    AdminEndpoint {
        access: AdminAccess::Open,
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Text("text/css; charset=utf-8"))],
        ..AdminEndpoint::get("/docs/style.css", "getDocsStyle", Tag::Server, "How the page looks", |_| {
            Box::pin(async { Ok(AdminResponse::text("text/css; charset=utf-8", STYLE)) })
        })
    },
    AdminEndpoint {
        access: AdminAccess::Open,
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Text("text/javascript; charset=utf-8"))],
        ..AdminEndpoint::get("/docs/script.js", "getDocsScript", Tag::Server, "What the page can do", |_| {
            Box::pin(async { Ok(AdminResponse::text("text/javascript; charset=utf-8", SCRIPT)) })
        })
    },
];

fn whoami(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let identity = call.identity().ok_or_else(|| AdminProblem::new(401, "no_token", "Send a token."))?;
    Ok(AdminResponse::json(&json!({
        "token_id": identity.token_id,
        "name": identity.name,
        "role": identity.role.name(),
        "namespaces": identity.namespaces,
        "expires_at": identity.expires_at.map(|at| at.to_string()),
    })))
}

/// Replaces errors of files for tokens that are limited to some namespaces: a file may belong to others.
const HIDDEN: &str = "a rules file could not be loaded";

fn status(call: &AdminCall<'_>) -> AdminResponse {
    let NodeStatus { node, serving, generation, database, refreshed_at, quarantined, store, file_errors } =
        (call.state.node.status)();
    let error = if let DatabaseHealth::Away(error) = &database { Some(error.as_str()) } else { None };
    let mask = call.mask();
    let sees_all = call.identity().is_some_and(|identity| identity.namespaces.is_none());
    let theirs =
        quarantined.iter().filter(|row| call.identity().is_some_and(|identity| identity.may_see(&row.namespace)));
    AdminResponse::json(&json!({
        "node": node,
        "serving": serving,
        "generation": generation,
        "database": { "state": database.name(), "error": error },
        "refreshed_at": refreshed_at.map(|at| at.to_string()),
        "mode": call.state.mode_switch.setting().mode.name(),
        "store": store.iter().map(|server| json!({ "address": server.address, "state": server.state })).collect::<Value>(),
        "file_errors": file_errors.iter().map(|error| if sees_all { error.as_str() } else { HIDDEN }).collect::<Value>(),
        "quarantined": theirs.map(|row| show(row, &mask)).collect::<Value>(),
    }))
}

fn show(row: &QuarantinedRow, mask: &Mask<'_>) -> Value {
    let QuarantinedRow { kind, namespace, id, reason } = row;
    let is_client = kind == RecordKind::Client.name();
    let of_client = is_client || [RecordKind::Override, RecordKind::Grant].iter().any(|of| kind == of.name());
    let id = if is_client { mask.key(id) } else { id.clone() };
    // Reasons quote the row, which contains the client's key.
    let reason = if mask.hides() && of_client { "it is not valid" } else { reason.as_str() };
    json!({ "kind": kind, "namespace": namespace, "id": id, "reason": reason })
}
