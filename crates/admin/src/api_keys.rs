//! API keys of clients: create, list, rotate, revoke.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_control::record::ApiKeyRecord;
use tollgate_control::{ApiKeyDraft, ApiKeyFilter};
use tollgate_rules::duration;

use super::access::NamespaceScope;
use super::body_fields::BodyFields;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, EndpointHeader, HttpMethod, RequestBody, ResponseContent, Tag};
use super::json;
use super::parameter::{CURSOR, LIMIT, ParameterKind, parameter, text};
use super::percent;
use super::problem::AdminProblem;
use super::response::AdminResponse;
use super::tokens::expiry;

const ALL: &str = "/v1/keys";
const ONE: &str = "/v1/keys/{key_id}";

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        scope: NamespaceScope::Namespaces,
        query: &[
            text("client_key", "Of this client."),
            parameter("revoked", ParameterKind::OneOf(&["true"]), "Revoked ones too."),
            LIMIT,
            CURSOR,
        ],
        responses: &[(200, ResponseContent::Json("KeyList"))],
        ..AdminEndpoint::get(ALL, "listKeys", Tag::Keys, "List keys", |call| Box::pin(list(call)))
    },
    AdminEndpoint {
        detail: "The key itself is answered once and never again: only a digest of it is kept. Gateways accept it within \
                 two seconds.",
        body: RequestBody::Json(&["KeyInput"]),
        responses: &[(201, ResponseContent::Created("CreatedKey"))],
        ..AdminEndpoint::change(HttpMethod::Post, ALL, "createKey", Tag::Keys, "Make a key for a client", |call| {
            Box::pin(create(call))
        })
    },
    AdminEndpoint {
        headers: &[EndpointHeader::IfNoneMatch],
        responses: &[(200, ResponseContent::Versioned("Key"))],
        ..AdminEndpoint::get(ONE, "getKey", Tag::Keys, "Read about a key", |call| Box::pin(get(call)))
    },
    AdminEndpoint {
        detail: "The key keeps its id, so that its client keeps its usage, and gets another secret, which is answered \
                 once. The old secret stays good for `overlap`; one that an earlier rotation left good ends now.",
        body: RequestBody::Json(&["KeyRotation"]),
        responses: &[(200, ResponseContent::Json("CreatedKey"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/keys/{key_id}/rotate",
            "rotateKey",
            Tag::Keys,
            "Give a key another secret",
            |call| Box::pin(rotate(call)),
        )
    },
    AdminEndpoint {
        detail: "Gateways refuse it within two seconds. It stays in the list of revoked keys.",
        responses: &[(204, ResponseContent::Nothing)],
        ..AdminEndpoint::change(HttpMethod::Delete, ONE, "revokeKey", Tag::Keys, "Revoke a key", |call| {
            Box::pin(revoke(call))
        })
    },
];

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "keys": [], "next_cursor": null })));
    }
    let filter = ApiKeyFilter {
        namespaces: call.namespaces(),
        client_key: call.query().owned("client_key"),
        with_revoked: call.query().flag("revoked").unwrap_or(false),
    };
    let listing = call.control()?.api_keys(&filter, &call.page()?).await?;
    let keys: Value = listing.entries.iter().map(ApiKeyRecord::json).collect();
    let body = json!({ "keys": keys, "next_cursor": call.cursor(listing.next.as_deref()) });
    Ok(AdminResponse::json(&call.mask().value(body)))
}

async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let record = call.control()?.api_key(call.namespace(), call.id()).await?;
    Ok(AdminResponse::json(&call.mask().value(record.json())).version(record.version))
}

async fn create(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    const FIELDS: &[&str] = &["client_key", "name", "namespace", "expires_at", "expires_in"];
    let mut fields = BodyFields::of(json::object(call.body)?, FIELDS);
    fields.same("namespace", call.namespace());
    let draft = ApiKeyDraft {
        namespace: call.namespace().to_owned(),
        client_key: fields.required_text("client_key", "whose it is, such as \"user:42\""),
        name: fields.text("name").unwrap_or_default(),
        expires_at: expiry(&mut fields, call.state.now()),
    };
    fields.rest()?;
    let (record, key) = call.control()?.create_api_key(&draft, &call.author()).await?;
    (call.state.node.notify_nodes)();
    Ok(AdminResponse::json(&shown_once(&record, key)).created(format!("{ALL}/{}", percent::encode(&record.key_id))))
}

async fn rotate(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let mut fields = BodyFields::of(json::object(call.body)?, &["overlap"]);
    let overlap = fields.text("overlap").map_or(Ok(0), |text| duration::parse(&text));
    let overlap = overlap.unwrap_or_else(|fault| {
        fields.refuse("overlap", "bad-duration", fault.message, &fault.help);
        0
    });
    fields.rest()?;
    let overlap = Duration::from_nanos(overlap);
    let rotated = call.control()?.rotate_api_key(call.namespace(), call.id(), overlap, &call.author()).await;
    let (record, key) = rotated?;
    (call.state.node.notify_nodes)();
    Ok(AdminResponse::json(&shown_once(&record, key)))
}

async fn revoke(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    call.control()?.revoke_api_key(call.namespace(), call.id(), &call.author()).await?;
    (call.state.node.notify_nodes)();
    Ok(AdminResponse::nothing(204))
}

/// The record with the whole key. Only operators get here, who see client keys as they are.
fn shown_once(record: &ApiKeyRecord, key: String) -> Value {
    let mut body = record.json();
    if let Value::Object(members) = &mut body {
        members.insert("key".to_owned(), key.into());
    }
    body
}
