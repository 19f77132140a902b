//! What is sent for an event.

use serde_json::{Value, json};
use tollgate_control::{DeliveryDraft, Instant, Result, WebhookDraft};
use tollgate_service::OperatorEvent;
use tollgate_service::violations::KeyHashing;

/// What is sent for an event to a webhook. Without `keys` there is no client in it.
pub(crate) fn draft_of(
    event: &OperatorEvent,
    webhook_id: &str,
    node: &str,
    now: Instant,
    keys: Option<&KeyHashing>,
) -> Result<DeliveryDraft> {
    let client = event.client.as_ref().zip(keys).map(|(client, keys)| keys.of(client));
    let (namespace, rule) = (event.namespace.as_deref(), event.rule.as_deref());
    let occurrence = json!([event.kind.name(), namespace, rule, client, event.occasion]).to_string();
    let event_id = WebhookDraft::new_id()?.replacen("wh_", "evt_", 1);
    let body = json!({
        "id": event_id,
        "event": event.kind.name(),
        "time": now.to_string(),
        "node": node,
        "namespace": namespace,
        "rule": rule,
        "client": client,
        "summary": event.summary,
        "data": event.data,
    });
    let (webhook_id, event) = (webhook_id.to_owned(), event.kind.name().to_owned());
    Ok(DeliveryDraft { webhook_id, occurrence, event_id, event, body: Value::to_string(&body) })
}
