//! Webhooks, and what is sent to them.

use serde_json::{Value, json};

use crate::Instant;

/// A stored webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRecord {
    /// Its id; its secret is derived from it.
    pub webhook_id: String,
    /// Its name, to be read by people.
    pub name: String,
    /// Where events are sent.
    pub url: String,
    /// The kinds of events; `None` for all.
    pub events: Option<Vec<String>>,
    /// The beginning of the SHA-256 of its secret: a node with another key notices that it cannot sign.
    pub fingerprint: String,
    /// The id of the token that created it.
    pub created_by: String,
    /// When it was created.
    pub created_at: Instant,
    /// The generation that made it.
    pub version: i64,
}

impl WebhookRecord {
    /// True if events of this kind are sent to it.
    pub fn wants(&self, event: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.iter().any(|wanted| wanted == event))
    }

    /// The representation in the audit, which more people read: a path is often a secret.
    pub fn audit_json(&self) -> Value {
        let mut shown = self.json();
        if let Some(url) = shown.get_mut("url") {
            let origin: Vec<&str> = self.url.splitn(4, '/').take(3).collect();
            *url = format!("{}/…", origin.join("/")).into();
        }
        shown
    }

    /// The representation in the API.
    pub fn json(&self) -> Value {
        json!({
            "webhook_id": self.webhook_id,
            "name": self.name,
            "url": self.url,
            "events": self.events,
            "fingerprint": self.fingerprint,
            "created_by": self.created_by,
            "created_at": self.created_at.to_string(),
            "version": self.version,
        })
    }
}

/// One event for one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Its number; later ones are larger.
    pub delivery_id: i64,
    /// The webhook.
    pub webhook_id: String,
    /// The same for every attempt.
    pub event_id: String,
    /// The kind of the event.
    pub event: String,
    /// What is sent.
    pub body: String,
    /// Whether it arrived.
    pub state: DeliveryState,
    /// How often it was sent.
    pub attempts: i64,
    /// When it is tried next, if it is.
    pub next_at: Instant,
    /// The status of the last response.
    pub status: Option<i64>,
    /// Why the last attempt had none.
    pub error: Option<String>,
    /// When the event occurred.
    pub created_at: Instant,
    /// When it was last tried.
    pub updated_at: Instant,
}

/// Whether a message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// It will be tried, or tried again.
    Waiting,
    /// A response of 2xx.
    Delivered,
    /// Given up.
    Failed,
}

impl DeliveryState {
    /// All states.
    pub const ALL: [DeliveryState; 3] = [DeliveryState::Waiting, DeliveryState::Delivered, DeliveryState::Failed];

    /// The name in rows and responses.
    pub const fn name(self) -> &'static str {
        match self {
            DeliveryState::Waiting => "waiting",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Failed => "failed",
        }
    }

    /// The state of that name.
    pub fn named(name: &str) -> Option<DeliveryState> {
        DeliveryState::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl DeliveryRecord {
    /// The representation in the API.
    pub fn json(&self) -> Value {
        json!({
            "delivery_id": self.delivery_id,
            "webhook_id": self.webhook_id,
            "event_id": self.event_id,
            "event": self.event,
            "state": self.state.name(),
            "attempts": self.attempts,
            "next_at": (self.state == DeliveryState::Waiting).then(|| self.next_at.to_string()),
            "status": self.status,
            "error": self.error,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "body": serde_json::from_str::<Value>(&self.body).unwrap_or(Value::Null),
        })
    }
}
