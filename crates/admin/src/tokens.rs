//! Tokens: create, list, revoke.

use serde_json::{Value, json};
use tollgate_control::record::{Role, TokenRecord};
use tollgate_control::{Instant, TokenDraft};
use tollgate_rules::problem::quote;
use tollgate_rules::{check, duration};

use super::access::{AdminAccess, NamespaceScope};
use super::body_fields::BodyFields;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, HttpMethod, RequestBody, ResponseContent, Tag};
use super::json;
use super::percent;
use super::problem::AdminProblem;
use super::response::AdminResponse;
use tollgate_service::admin_tokens::AdminIdentity;

const ADMIN: AdminAccess = AdminAccess::Needs(Role::Admin);

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        access: ADMIN,
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Json("TokenList"))],
        ..AdminEndpoint::get("/v1/tokens", "listTokens", Tag::Tokens, "List tokens", |call| Box::pin(list(call)))
    },
    AdminEndpoint {
        detail: "The token itself is answered once and never again: only a hash of it is kept. One that is made by a \
                 token that expires does not outlive that.",
        access: ADMIN,
        scope: NamespaceScope::Nothing,
        body: RequestBody::Json(&["TokenInput"]),
        responses: &[(201, ResponseContent::Created("CreatedToken"))],
        ..AdminEndpoint::change(HttpMethod::Post, "/v1/tokens", "createToken", Tag::Tokens, "Make a token", |call| {
            Box::pin(create(call))
        })
    },
    AdminEndpoint {
        access: ADMIN,
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Json("Token"))],
        ..AdminEndpoint::get("/v1/tokens/{token_id}", "getToken", Tag::Tokens, "Read about a token", |call| {
            Box::pin(get(call))
        })
    },
    AdminEndpoint {
        detail: "This node takes it no more at once, all others as soon as they hear of it.",
        access: ADMIN,
        scope: NamespaceScope::Nothing,
        responses: &[(204, ResponseContent::Nothing)],
        ..AdminEndpoint::change(
            HttpMethod::Delete,
            "/v1/tokens/{token_id}",
            "revokeToken",
            Tag::Tokens,
            "Revoke a token",
            |call| Box::pin(revoke(call)),
        )
    },
];

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let tokens = call.control()?.tokens().await?;
    let tokens: Value = tokens.iter().filter(|token| is_theirs(call, token)).map(show).collect();
    Ok(AdminResponse::json(&json!({ "tokens": tokens })))
}

async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    find(call).await.map(|token| AdminResponse::json(&show(&token)))
}

async fn create(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let draft = read(call)?;
    let (record, token) = call.control()?.create_token(&draft, &call.author()).await?;
    call.state.tokens.add(&record);
    (call.state.node.notify_nodes)();
    let mut body = show(&record);
    if let Value::Object(members) = &mut body {
        members.insert("token".to_owned(), token.into());
    }
    Ok(AdminResponse::json(&body).created(format!("/v1/tokens/{}", percent::encode(&record.token_id))))
}

async fn revoke(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let token = find(call).await?;
    call.control()?.revoke_token(&token.token_id, &call.author()).await?;
    call.state.tokens.remove(&token.token_id);
    (call.state.node.notify_nodes)();
    Ok(AdminResponse::nothing(204))
}

async fn find(call: &AdminCall<'_>) -> Result<TokenRecord, AdminProblem> {
    let tokens = call.control()?.tokens().await?;
    let token = tokens.into_iter().find(|token| token.token_id == call.id() && is_theirs(call, token));
    token.ok_or_else(|| AdminProblem::not_found("such token"))
}

/// An admin of some namespaces manages only tokens that are limited to these.
fn is_theirs(call: &AdminCall<'_>, token: &TokenRecord) -> bool {
    call.identity().is_some_and(|identity| may_give(identity, token.namespaces.as_deref()))
}

fn may_give(identity: &AdminIdentity, namespaces: Option<&[String]>) -> bool {
    match (&identity.namespaces, namespaces) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(_), Some(theirs)) => theirs.iter().all(|name| identity.may_see(name)),
    }
}

fn read(call: &AdminCall<'_>) -> Result<TokenDraft, AdminProblem> {
    const FIELDS: &[&str] = &["name", "role", "namespaces", "expires_at", "expires_in"];
    let mut fields = BodyFields::of(json::object(call.body)?, FIELDS);
    let name = fields.required_text("name", "what it is for, for people");
    let role = fields.required_word("role", &Role::ALL.map(Role::name), Role::named);
    let namespaces = fields.texts("namespaces").map(|mut names| {
        names.sort_unstable();
        names.dedup();
        names
    });
    for name in namespaces.iter().flatten().filter(|name| !check::is_label(name)) {
        let message = format!("{} cannot be a namespace", quote(name));
        fields.refuse("namespaces", "bad-name", message, check::LABEL_HELP);
    }
    if namespaces.as_ref().is_some_and(Vec::is_empty) {
        fields.refuse("namespaces", "out-of-range", "namespaces is empty", "name some, or leave it out for all");
    }
    let mut expires_at = expiry(&mut fields, call.state.now());
    // A token cannot outlive the one that created it.
    if let Some(end) = call.identity().and_then(|identity| identity.expires_at) {
        if expires_at.is_some_and(|wanted| wanted > end) {
            let message = format!("a token cannot outlive the one that makes it, which expires at {end}");
            fields.refuse(
                "expires_at",
                "not-yours",
                message,
                "choose that instant or an earlier one, or use another token",
            );
        }
        expires_at = expires_at.or(Some(end));
    }
    if call.identity().is_some_and(|identity| !may_give(identity, namespaces.as_deref())) {
        let help = "name some of the namespaces that your own token is for";
        fields.refuse("namespaces", "not-yours", "a token cannot give more than it has", help);
    }
    fields.rest()?;
    let role = role.unwrap_or(Role::Viewer);
    Ok(TokenDraft { name, role, namespaces, expires_at })
}

/// The end that a body gives, as an instant or from now on.
pub(super) fn expiry(fields: &mut BodyFields, now: Instant) -> Option<Instant> {
    let at = fields.time("expires_at");
    let within = fields.text("expires_in").and_then(|text| match duration::parse(&text) {
        Ok(nanos) => Some(Instant(now.0.saturating_add(i64::try_from(nanos / 1000).unwrap_or(i64::MAX)))),
        Err(fault) => {
            fields.refuse("expires_in", "bad-duration", fault.message, &fault.help);
            None
        }
    });
    if at.is_some() && within.is_some() {
        fields.refuse("expires_in", "out-of-range", "expires_at and expires_in say the same", "leave one of them out");
    }
    if at.is_some_and(|at| at <= now) {
        fields.refuse("expires_at", "out-of-range", "expires_at is not in the future", "");
    }
    at.or(within)
}

fn show(token: &TokenRecord) -> Value {
    let TokenRecord { token_id, name, role, namespaces, created_at, created_by, expires_at, last_used_at, hash: _ } =
        token;
    json!({
        "token_id": token_id,
        "name": name,
        "role": role.name(),
        "namespaces": namespaces,
        "created_at": created_at.to_string(),
        "created_by": created_by,
        "expires_at": expires_at.map(|at| at.to_string()),
        "last_used_at": last_used_at.map(|at| at.to_string()),
    })
}
