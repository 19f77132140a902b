//! This server: who one is to it, how it is, and what it says about its own API.

use serde_json::{Value, json};
use tollgate_control::Kind;

use super::call::Call;
use super::endpoint::{Access, Content, Endpoint, NamespaceScope, Tag};
use super::node::{Database, Quarantined, Status};
use super::problem::AdminProblem;
use super::response::AdminResponse;
use super::{docs, openapi};
use tollgate_service::mask::Mask;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        reach: NamespaceScope::Nothing,
        answers: &[(200, Content::Json("Whoami"))],
        ..Endpoint::get("/v1/whoami", "whoAmI", Tag::Server, "Who the token is", |call| {
            Box::pin(async move { whoami(call) })
        })
    },
    Endpoint {
        detail: "What this node serves, how its database is, and which rows it cannot use.",
        reach: NamespaceScope::Nothing,
        answers: &[(200, Content::Json("Status"))],
        ..Endpoint::get("/v1/status", "getStatus", Tag::Server, "How this node is", |call| {
            Box::pin(async move { Ok(status(call)) })
        })
    },
    Endpoint {
        access: Access::Open,
        reach: NamespaceScope::Nothing,
        answers: &[(200, Content::Text("application/json"))],
        ..Endpoint::get("/openapi.json", "getOpenApi", Tag::Server, "This description, as OpenAPI 3.1", |_| {
            Box::pin(async { Ok(AdminResponse::text("application/json", openapi::text())) })
        })
    },
    Endpoint {
        access: Access::Open,
        reach: NamespaceScope::Nothing,
        answers: &[(200, Content::Text("text/html; charset=utf-8"))],
        ..Endpoint::get("/docs", "getDocs", Tag::Server, "This description, as a page", |_| {
            Box::pin(async { Ok(AdminResponse::text("text/html; charset=utf-8", docs::page())) })
        })
    },
    Endpoint {
        access: Access::Open,
        reach: NamespaceScope::Nothing,
        answers: &[(200, Content::Text("text/css; charset=utf-8"))],
        ..Endpoint::get("/docs/style.css", "getDocsStyle", Tag::Server, "How the page looks", |_| {
            Box::pin(async { Ok(AdminResponse::text("text/css; charset=utf-8", docs::STYLE)) })
        })
    },
    Endpoint {
        access: Access::Open,
        reach: NamespaceScope::Nothing,
        answers: &[(200, Content::Text("text/javascript; charset=utf-8"))],
        ..Endpoint::get("/docs/script.js", "getDocsScript", Tag::Server, "What the page can do", |_| {
            Box::pin(async { Ok(AdminResponse::text("text/javascript; charset=utf-8", docs::SCRIPT)) })
        })
    },
];

fn whoami(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    let who = call.who().ok_or_else(|| AdminProblem::new(401, "no_token", "Send a token."))?;
    Ok(AdminResponse::json(&json!({
        "token_id": who.token_id,
        "name": who.name,
        "role": who.role.name(),
        "namespaces": who.namespaces,
        "expires_at": who.expires_at.map(|at| at.to_string()),
    })))
}

/// What is told of a file to a token for some namespaces: a file may be of others.
const HIDDEN: &str = "a rules file could not be loaded";

fn status(call: &Call<'_>) -> AdminResponse {
    let Status { node, serving, generation, database, refreshed_at, quarantined, store, file_errors } =
        (call.admin.node.status)();
    let error = if let Database::Away(error) = &database { Some(error.as_str()) } else { None };
    let mask = call.mask();
    let sees_all = call.who().is_some_and(|who| who.namespaces.is_none());
    let theirs = quarantined.iter().filter(|row| call.who().is_some_and(|who| who.may_see(&row.namespace)));
    AdminResponse::json(&json!({
        "node": node,
        "serving": serving,
        "generation": generation,
        "database": { "state": database.name(), "error": error },
        "refreshed_at": refreshed_at.map(|at| at.to_string()),
        "mode": call.admin.switchboard.setting().mode.name(),
        "store": store.iter().map(|server| json!({ "address": server.address, "state": server.state })).collect::<Value>(),
        "file_errors": file_errors.iter().map(|error| if sees_all { error.as_str() } else { HIDDEN }).collect::<Value>(),
        "quarantined": theirs.map(|row| show(row, &mask)).collect::<Value>(),
    }))
}

fn show(row: &Quarantined, mask: &Mask<'_>) -> Value {
    let Quarantined { kind, namespace, id, reason } = row;
    let (is_client, is_override) = (kind == Kind::Client.name(), kind == Kind::Override.name());
    let id = if is_client { mask.key(id) } else { id.clone() };
    // Reasons quote the row, and with it the client's key.
    let reason = if mask.hides() && (is_client || is_override) { "it is not valid" } else { reason.as_str() };
    json!({ "kind": kind, "namespace": namespace, "id": id, "reason": reason })
}
