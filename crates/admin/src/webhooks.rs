//! Webhooks: create, list, test, delete; and what was sent to them.
//!
//! Only for admins of everything: a webhook makes this server call out, and its URL is often a secret.

use serde_json::{Value, json};
use tollgate_control::record::{DeliveryRecord, Role, WebhookRecord};
use tollgate_rules::problem::quote;
use tollgate_service::EventKind;
use tollgate_webhooks::Webhooks;

use super::access::{AdminAccess, NamespaceScope};
use super::body_fields::BodyFields;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, HttpMethod, RequestBody, ResponseContent, Tag};
use super::json;
use super::parameter::{CURSOR, LIMIT};
use super::percent;
use super::problem::AdminProblem;
use super::response::AdminResponse;

const ADMIN: AdminAccess = AdminAccess::Needs(Role::Admin);
const ALL: &str = "/v1/webhooks";
const ONE: &str = "/v1/webhooks/{webhook_id}";

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        access: ADMIN,
        scope: NamespaceScope::Everything,
        responses: &[(200, ResponseContent::Json("WebhookList"))],
        ..AdminEndpoint::get(ALL, "listWebhooks", Tag::Webhooks, "List webhooks", |call| Box::pin(list(call)))
    },
    AdminEndpoint {
        detail: "The secret that messages are signed with is answered once and never again: it is stored nowhere. Needs \
                 the setting `webhooks`; `webhook_hosts` and `webhook_private_networks` say which URLs are allowed.",
        access: ADMIN,
        scope: NamespaceScope::Everything,
        body: RequestBody::Json(&["WebhookInput"]),
        responses: &[(201, ResponseContent::Created("CreatedWebhook"))],
        ..AdminEndpoint::change(HttpMethod::Post, ALL, "createWebhook", Tag::Webhooks, "Make a webhook", |call| {
            Box::pin(create(call))
        })
    },
    AdminEndpoint {
        access: ADMIN,
        scope: NamespaceScope::Everything,
        responses: &[(200, ResponseContent::Json("Webhook"))],
        ..AdminEndpoint::get(ONE, "getWebhook", Tag::Webhooks, "Read about a webhook", |call| Box::pin(get(call)))
    },
    AdminEndpoint {
        detail: "What waits for it is not sent any more, and what was sent is forgotten.",
        access: ADMIN,
        scope: NamespaceScope::Everything,
        responses: &[(204, ResponseContent::Nothing)],
        ..AdminEndpoint::change(HttpMethod::Delete, ONE, "deleteWebhook", Tag::Webhooks, "Delete a webhook", |call| {
            Box::pin(delete(call))
        })
    },
    AdminEndpoint {
        detail: "Sends a message of the kind `test`, whatever kinds the webhook wants, and answers how the first attempt \
                 ended.",
        access: ADMIN,
        scope: NamespaceScope::Everything,
        responses: &[(200, ResponseContent::Json("Delivery"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/webhooks/{webhook_id}/test",
            "testWebhook",
            Tag::Webhooks,
            "Send a test message",
            |call| Box::pin(test(call)),
        )
    },
    AdminEndpoint {
        detail: "The latest first; kept for a week.",
        access: ADMIN,
        scope: NamespaceScope::Everything,
        query: &[LIMIT, CURSOR],
        responses: &[(200, ResponseContent::Json("DeliveryList"))],
        ..AdminEndpoint::get(
            "/v1/webhooks/{webhook_id}/deliveries",
            "listDeliveries",
            Tag::Webhooks,
            "What was sent to a webhook",
            |call| Box::pin(deliveries(call)),
        )
    },
];

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let webhooks: Value = call.control()?.webhooks().await?.iter().map(WebhookRecord::json).collect();
    Ok(AdminResponse::json(&json!({ "webhooks": webhooks, "next_cursor": null })))
}

async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    Ok(AdminResponse::json(&call.control()?.webhook(call.id()).await?.json()))
}

async fn create(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let mut fields = BodyFields::of(json::object(call.body)?, &["url", "name", "events"]);
    let url = fields.required_text("url", "where events are sent, such as \"https://hooks.example.com/x\"");
    let name = fields.text("name").unwrap_or_default();
    let events = fields.texts("events");
    for unknown in events.iter().flatten().filter(|name| EventKind::named(name).is_none()) {
        let known = EventKind::ALL.map(EventKind::name).join(", ");
        fields.refuse(
            "events",
            "unknown-value",
            format!("{} is no event", quote(unknown)),
            &format!("some of {known}"),
        );
    }
    fields.rest()?;
    let events = events.map(|events| events.iter().filter_map(|name| EventKind::named(name)).collect());
    let (record, secret) = running(call)?.create(name, &url, events, &call.author()).await?;
    (call.state.node.notify_nodes)();
    let mut body = record.json();
    if let Value::Object(members) = &mut body {
        members.insert("secret".to_owned(), secret.into());
    }
    Ok(AdminResponse::json(&body).created(format!("{ALL}/{}", percent::encode(&record.webhook_id))))
}

async fn delete(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    call.control()?.delete_webhook(call.id(), &call.author()).await?;
    (call.state.node.notify_nodes)();
    Ok(AdminResponse::nothing(204))
}

async fn test(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let delivery = running(call)?.test(call.id()).await?;
    Ok(AdminResponse::json(&delivery.json()))
}

async fn deliveries(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let webhook = call.control()?.webhook(call.id()).await?;
    let listing = call.control()?.deliveries(&webhook.webhook_id, &call.page()?).await?;
    let deliveries: Value = listing.entries.iter().map(DeliveryRecord::json).collect();
    let next = call.cursor(listing.next.as_deref());
    Ok(AdminResponse::json(&json!({ "deliveries": deliveries, "next_cursor": next })))
}

/// The webhooks of this node, if it sends to them.
fn running<'a>(call: &AdminCall<'a>) -> Result<&'a Webhooks, AdminProblem> {
    call.control()?;
    call.state.webhooks.as_ref().ok_or_else(|| {
        let detail = "Webhooks are off here: start this server with --webhooks, or set `webhooks: true`.";
        AdminProblem::new(409, "webhooks_off", detail)
    })
}
