//! Schemas of webhooks and penalties.

use serde_json::{Value, json};
use tollgate_control::record::DeliveryState;
use tollgate_service::EventKind;

use super::builders::{self, answer, described, list, maybe_time, text, time, together, word};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let events = json!({
        "type": "array",
        "items": word(&EventKind::ALL.map(EventKind::name), "A kind of event."),
        "description": "The kinds of events that are sent to it; all if it is left out or null.",
    });
    let url = json!({ "type": "string", "maxLength": 2048, "description": "Where events are sent, by POST. It is often a secret." });
    let name = json!({ "type": "string", "maxLength": 200, "description": "For people." });
    let webhook = json!({
        "webhook_id": text("Its id."),
        "name": name,
        "url": url,
        "events": builders::nullable(&events),
        "fingerprint": json!({ "type": "string", "pattern": "^[0-9a-f]{8}$", "description": "The beginning of the digest of its secret." }),
        "created_by": text("Who made it."),
        "created_at": time("When it was made."),
        "version": json!({ "type": "integer", "format": "int64", "description": "The generation that made it." }),
    });
    let secret = json!({ "secret": text("What messages are signed with: `whsec_` and 32 bytes in base64. It is never told again.") });
    let number = |text: &str| json!({ "type": "integer", "format": "int64", "description": text });
    let delivery = json!({
        "delivery_id": number("Its number; later ones are larger."),
        "webhook_id": text("Of which webhook."),
        "event_id": text("The same for every attempt: the header field webhook-id."),
        "event": word(&EventKind::ALL.map(EventKind::name), "The kind of the event."),
        "state": word(&DeliveryState::ALL.map(DeliveryState::name), "Whether it arrived."),
        "attempts": number("How often it was sent."),
        "next_at": maybe_time("When it is tried next."),
        "status": described(json!({ "type": ["integer", "null"], "format": "int64" }), "Of the last response."),
        "error": described(json!({ "type": ["string", "null"] }), "Why the last attempt had no response."),
        "created_at": time("When the event occurred."),
        "updated_at": time("When it was last tried."),
        "body": described(json!({ "type": ["object", "null"] }), "What is sent."),
    });
    let penalty = json!({
        "penalty_id": json!({ "type": "string", "pattern": "^[0-9a-f]{32}$", "description": "Its id: the digest of the bucket." }),
        "namespace": text("Of which namespace."),
        "rule_id": text("By which rule."),
        "client_key": text("Whose it is, as a digest."),
        "number": number("How many are remembered of it, this one included."),
        "node": described(
            json!({ "type": ["string", "null"] }),
            "The node that has it in its memory and alone can lift it, as NAME@ADDRESS; null if all nodes share it.",
        ),
        "begun_at": time("When it began."),
        "ends_at": time("When it ends."),
    });
    vec![
        ("Penalty", answer(penalty)),
        ("PenaltyList", list("penalties", "Penalty")),
        ("Webhook", answer(webhook.clone())),
        ("CreatedWebhook", described(answer(together(&[&webhook, &secret])), "A webhook that was just made.")),
        ("WebhookInput", builders::input(&json!({ "url": url, "name": name, "events": events }), &["url"])),
        ("WebhookList", list("webhooks", "Webhook")),
        ("Delivery", answer(delivery)),
        ("DeliveryList", list("deliveries", "Delivery")),
    ]
}
