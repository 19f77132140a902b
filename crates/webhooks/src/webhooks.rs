//! What the admin API does with webhooks: make one, test one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant as TokioInstant, sleep};
use tollgate_control::record::{DeliveryRecord, WebhookRecord};
use tollgate_control::{Author, Control, DeliveryDraft, Error, FieldError, Instant, Result, WebhookDraft};
use tollgate_core::Clock;
use tollgate_service::{EventKind, OperatorEvent};

use crate::message::draft_of;
use crate::policy::WebhookPolicy;
use crate::secret::WebhookSecret;

/// How long a test waits for its message to be sent.
const TEST_TIMEOUT: Duration = Duration::from_secs(8);
/// How often it looks.
const TEST_POLL: Duration = Duration::from_millis(50);

/// Webhooks of a node that sends to them.
#[derive(Clone)]
pub struct Webhooks {
    /// The database.
    pub control: Control,
    /// Which URLs a webhook may have.
    pub policy: WebhookPolicy,
    /// The key that secrets are derived from.
    pub site_key: [u8; 32],
    /// Tells when events occur.
    pub clock: Arc<dyn Clock>,
    /// The name of this node.
    pub node: String,
    /// Notified when there is something to send.
    pub due: Arc<Notify>,
}

impl Webhooks {
    /// Makes a webhook. Returns its record, and its secret, which is shown once.
    pub async fn create(
        &self,
        name: String,
        url: &str,
        events: Option<Vec<EventKind>>,
        author: &Author,
    ) -> Result<(WebhookRecord, String)> {
        let url = self.policy.url(url).map_err(|refusal| {
            let help = "write https://HOST/PATH with a public host; see the settings webhook_hosts and webhook_private_networks";
            let (field, code) = ("url".to_owned(), "bad-url".to_owned());
            Error::Invalid(vec![FieldError { field, code, message: refusal.to_string(), help: Some(help.to_owned()) }])
        })?;
        let webhook_id = WebhookDraft::new_id()?;
        let secret = WebhookSecret::derive(&self.site_key, &webhook_id);
        let events = events.map(|events| events.into_iter().map(|event| event.name().to_owned()).collect());
        let (url, fingerprint) = (url.to_string(), secret.fingerprint());
        let draft = WebhookDraft { webhook_id, name, url, events, fingerprint };
        let record = self.control.create_webhook(&draft, author).await?;
        self.due.notify_one();
        Ok((record, secret.shown()))
    }

    /// Sends a test message, and waits for the outcome of its first attempt.
    pub async fn test(&self, webhook_id: &str) -> Result<DeliveryRecord> {
        let webhook = self.control.webhook(webhook_id).await?;
        let now = Instant::from(self.clock.wall());
        let event = OperatorEvent {
            summary: "This is a test of a webhook of Tollgate.".to_owned(),
            data: json!({ "webhook_id": webhook.webhook_id }),
            occasion: WebhookDraft::new_id()?,
            ..OperatorEvent::of(EventKind::Test)
        };
        let draft: DeliveryDraft = draft_of(&event, &webhook.webhook_id, &self.node, now, None)?;
        self.control.queue_deliveries(std::slice::from_ref(&draft), now).await?;
        self.due.notify_one();
        let deadline = TokioInstant::now() + TEST_TIMEOUT;
        loop {
            let delivery = self.control.delivery(&webhook.webhook_id, &draft.event_id).await?;
            if delivery.status.is_some() || delivery.error.is_some() || TokioInstant::now() >= deadline {
                return Ok(delivery);
            }
            sleep(TEST_POLL).await;
        }
    }
}
