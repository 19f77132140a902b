//! Webhooks: create, list, delete. Secrets never reach this crate.

use super::Control;
use crate::db::{Json, SqlRow, Tx, sql};
use crate::edit::fleet_change;
use crate::error::field_error;
use crate::record::WebhookRecord;
use crate::token_secret::TokenSecret;
use crate::write_tx::WriteTx;
use crate::{Author, Error, RecordKind, Result};

/// Most webhooks: each event is written, and sent, once for each.
const WEBHOOKS_MAX: usize = 50;
/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 200;

/// A webhook to be created. Its URL was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDraft {
    /// Its id, of [`WebhookDraft::new_id`]: the caller derives the secret from it.
    pub webhook_id: String,
    /// Its name, to be read by people.
    pub name: String,
    /// Where events are sent.
    pub url: String,
    /// The kinds of events; `None` for all.
    pub events: Option<Vec<String>>,
    /// The beginning of the SHA-256 of its secret.
    pub fingerprint: String,
}

impl WebhookDraft {
    /// A new id: 60 random bits, so that none is used twice.
    pub fn new_id() -> Result<String> {
        Ok(format!("wh_{}", TokenSecret::new()?.id()))
    }

    fn check(&self) -> Result<()> {
        let mut faults = Vec::new();
        if self.name.chars().count() > NAME_CHARS_MAX || self.name.chars().any(char::is_control) {
            let message = format!("longer than {NAME_CHARS_MAX} characters, or with control characters");
            faults.push(field_error("name", "bad-name", &message, "write a short name on one line"));
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::Invalid(faults)) }
    }
}

impl Control {
    /// All webhooks, oldest first.
    pub async fn webhooks(&self) -> Result<Vec<WebhookRecord>> {
        self.read(async |tx| list(tx).await).await
    }

    /// One webhook.
    pub async fn webhook(&self, webhook_id: &str) -> Result<WebhookRecord> {
        self.read(async |tx| find(webhook_id, tx).await).await
    }

    /// Creates a webhook.
    pub async fn create_webhook(&self, draft: &WebhookDraft, author: &Author) -> Result<WebhookRecord> {
        draft.check()?;
        let (draft, maker) = (draft.clone(), author.id.clone());
        let create = async move |write: &mut WriteTx| {
            if list(&mut write.tx).await?.len() >= WEBHOOKS_MAX {
                return Err(Error::Conflict(format!("there are {WEBHOOKS_MAX} webhooks; delete one first")));
            }
            let webhook = WebhookRecord {
                webhook_id: draft.webhook_id.clone(),
                name: draft.name.clone(),
                url: draft.url.clone(),
                events: draft.events.clone(),
                fingerprint: draft.fingerprint.clone(),
                created_by: maker.clone(),
                created_at: write.at,
                version: write.generation,
            };
            insert(&webhook, &mut write.tx).await?;
            write.record(fleet_change(RecordKind::Webhook, &webhook.webhook_id, None, Some(webhook.audit_json())));
            Ok(webhook)
        };
        self.write(author, "create", create).await.map(|(made, _)| made)
    }

    /// Deletes a webhook, with its deliveries.
    pub async fn delete_webhook(&self, webhook_id: &str, author: &Author) -> Result<()> {
        let webhook_id = webhook_id.to_owned();
        let delete = async move |write: &mut WriteTx| {
            let webhook = find(&webhook_id, &mut write.tx).await?;
            write.tx.run(sql!("DELETE FROM webhook_deliveries WHERE webhook_id = $1", &webhook_id)).await?;
            write.tx.run(sql!("DELETE FROM webhooks WHERE webhook_id = $1", &webhook_id)).await?;
            write.record(fleet_change(RecordKind::Webhook, &webhook_id, Some(webhook.audit_json()), None));
            Ok(())
        };
        self.write(author, "delete", delete).await.map(|((), _)| ())
    }
}

const COLUMNS: &str =
    "SELECT webhook_id, name, url, events, fingerprint, created_by, created_at, version FROM webhooks";

async fn list(tx: &mut Tx) -> Result<Vec<WebhookRecord>> {
    let mut query = sql!(COLUMNS);
    query.and(" ORDER BY created_at, webhook_id", []);
    tx.all(query).await?.iter().map(read).collect()
}

async fn find(webhook_id: &str, tx: &mut Tx) -> Result<WebhookRecord> {
    let mut query = sql!(COLUMNS);
    query.and(" WHERE webhook_id = ?", [webhook_id.into()]);
    let row = tx.one(query).await?;
    row.as_ref().map(read).transpose()?.ok_or_else(|| Error::NotFound(format!("webhook {webhook_id}")))
}

async fn insert(webhook: &WebhookRecord, tx: &mut Tx) -> Result<()> {
    tx.run(sql!(
        "INSERT INTO webhooks (webhook_id, name, url, events, fingerprint, created_by, created_at, version) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &webhook.webhook_id,
        &webhook.name,
        &webhook.url,
        webhook.events.clone().map(serde_json::Value::from),
        &webhook.fingerprint,
        &webhook.created_by,
        webhook.created_at,
        webhook.version,
    ))
    .await
    .map(|_| ())
}

fn read(row: &SqlRow) -> Result<WebhookRecord> {
    let events = row.get::<Option<Json>>(3)?;
    let events = events.map(|Json(events)| serde_json::from_value(events)).transpose();
    Ok(WebhookRecord {
        webhook_id: row.get(0)?,
        name: row.lossy_text(1)?,
        url: row.get(2)?,
        events: events.map_err(|error| Error::Unexpected(format!("column events: {error}")))?,
        fingerprint: row.get(4)?,
        created_by: row.lossy_text(5)?,
        created_at: row.get(6)?,
        version: row.get(7)?,
    })
}
