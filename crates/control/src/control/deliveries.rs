//! What is sent to webhooks: written once, claimed by one node, tried until it arrives or is given up.

use super::Control;
use crate::db::{Sql, SqlRow, Tx, sql};
use crate::page;
use crate::record::{DeliveryRecord, DeliveryState};
use crate::{Error, Instant, Listing, Page, Result};

/// Longest error that is kept, in bytes.
const ERROR_BYTES_MAX: usize = 300;

/// An event for one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryDraft {
    /// The webhook.
    pub webhook_id: String,
    /// The same for the same event, whichever node noticed it.
    pub occurrence: String,
    /// The id that the receiver sees.
    pub event_id: String,
    /// The kind of the event.
    pub event: String,
    /// What is sent.
    pub body: String,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// The delivery.
    pub delivery_id: i64,
    /// What becomes of it.
    pub state: DeliveryState,
    /// When it is tried again, if it waits.
    pub next_at: Instant,
    /// The status of the response.
    pub status: Option<i64>,
    /// Why there was none.
    pub error: Option<String>,
}

/// Deliveries that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingDeliveries {
    /// All of them.
    pub in_all: u64,
    /// Those whose time has come, also if a node is sending them.
    pub due: u64,
}

impl Control {
    /// Writes events that are not written yet, due at once; returns how many were new. A webhook that is gone gets none.
    pub async fn queue_deliveries(&self, drafts: &[DeliveryDraft], now: Instant) -> Result<u64> {
        let drafts = drafts.to_vec();
        let queue = async move |tx: &mut Tx| {
            let mut queued = 0;
            for draft in &drafts {
                let DeliveryDraft { webhook_id, occurrence, event_id, event, body } = draft;
                let mut sql = sql!(
                    "INSERT INTO webhook_deliveries (webhook_id, occurrence, event_id, event, body, next_at, \
                     created_at, updated_at) "
                );
                let values = [occurrence, event_id, event, body].map(Into::into).into_iter();
                let select = match tx.is_postgres() {
                    true => {
                        "SELECT webhook_id, ?::TEXT, ?::TEXT, ?::TEXT, ?::TEXT, ?::TIMESTAMPTZ, ?::TIMESTAMPTZ, ?::TIMESTAMPTZ"
                    }
                    false => "SELECT webhook_id, ?, ?, ?, ?, ?, ?, ?",
                };
                sql.and(select, values.chain([now.into(), now.into(), now.into()]));
                sql.and(" FROM webhooks WHERE webhook_id = ? ON CONFLICT DO NOTHING", [webhook_id.into()]);
                queued += tx.run(sql).await?;
            }
            Ok(queued)
        };
        self.write_unaudited(queue).await
    }

    /// Takes deliveries that are due; until `until` no other node takes them. A node that ends meanwhile leaves them to
    /// another, which may send them a second time: receivers know them by their id.
    pub async fn claim_deliveries(&self, now: Instant, until: Instant, most: u32) -> Result<Vec<DeliveryRecord>> {
        let claim = async move |tx: &mut Tx| {
            let mut sql = sql!("UPDATE webhook_deliveries SET attempts = attempts + 1");
            sql.and(", claimed_until = ?, updated_at = ?", [until.into(), now.into()]);
            sql.and(" WHERE delivery_id IN (SELECT delivery_id FROM webhook_deliveries WHERE state = 'waiting'", []);
            sql.and(" AND next_at <= ? AND (claimed_until IS NULL OR claimed_until <= ?)", [now.into(), now.into()]);
            sql.and(" ORDER BY next_at, delivery_id LIMIT ?", [most.into()]);
            sql.and(if tx.is_postgres() { " FOR UPDATE SKIP LOCKED)" } else { ")" }, []);
            sql.and(" RETURNING ", []);
            sql.and(COLUMNS, []);
            tx.all(sql).await?.iter().map(read).collect()
        };
        self.write_unaudited(claim).await
    }

    /// Writes how attempts ended.
    pub async fn finish_deliveries(&self, attempts: &[DeliveryAttempt], now: Instant) -> Result<()> {
        let attempts = attempts.to_vec();
        let finish = async move |tx: &mut Tx| {
            for attempt in &attempts {
                let error = attempt.error.as_deref().map(|error| shortened(error).to_owned());
                tx.run(sql!(
                    "UPDATE webhook_deliveries SET state = $1, next_at = $2, claimed_until = NULL, status = $3, \
                     error = $4, updated_at = $5 WHERE delivery_id = $6",
                    attempt.state.name(),
                    attempt.next_at,
                    attempt.status,
                    error,
                    now,
                    attempt.delivery_id,
                ))
                .await?;
            }
            Ok(())
        };
        self.write_unaudited(finish).await
    }

    /// Deliveries of a webhook, the latest first.
    pub async fn deliveries(&self, webhook_id: &str, page: &Page) -> Result<Listing<DeliveryRecord>> {
        let (webhook_id, page) = (webhook_id.to_owned(), page.clone());
        self.read(async move |tx| {
            let mut query = select();
            query.and(" WHERE webhook_id = ?", [(&webhook_id).into()]);
            query.and_if(" AND delivery_id < ?", page.after_number()?);
            query.and(" ORDER BY delivery_id DESC LIMIT ?", [i64::try_from(page.limit() + 1).unwrap_or(1).into()]);
            let mut entries = tx.all(query).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
            let more = entries.len() > page.limit();
            entries.truncate(page.limit());
            let last = entries.last().filter(|_| more);
            let next = last.map(|last| page::cursor(&last.delivery_id.into()));
            Ok(Listing { entries, next })
        })
        .await
    }

    /// One delivery, by the id of its event.
    pub async fn delivery(&self, webhook_id: &str, event_id: &str) -> Result<DeliveryRecord> {
        let (webhook_id, event_id) = (webhook_id.to_owned(), event_id.to_owned());
        self.read(async move |tx| {
            let mut query = select();
            query.and(" WHERE webhook_id = ? AND event_id = ?", [(&webhook_id).into(), (&event_id).into()]);
            let row = tx.one(query).await?;
            row.as_ref().map(read).transpose()?.ok_or_else(|| Error::NotFound(format!("delivery {event_id}")))
        })
        .await
    }

    /// How many deliveries wait.
    pub async fn waiting_deliveries(&self, now: Instant) -> Result<WaitingDeliveries> {
        self.read(async move |tx| {
            let row = tx
                .one(sql!(
                    "SELECT COUNT(*), COUNT(CASE WHEN next_at <= $1 THEN 1 END) FROM webhook_deliveries \
                     WHERE state = 'waiting'",
                    now
                ))
                .await?;
            let Some(row) = row else { return Ok(WaitingDeliveries::default()) };
            let count = |place| row.get::<i64>(place).map(|count| u64::try_from(count).unwrap_or(0));
            Ok(WaitingDeliveries { in_all: count(0)?, due: count(1)? })
        })
        .await
    }
}

const COLUMNS: &str = "delivery_id, webhook_id, event_id, event, body, state, attempts, next_at, status, error, \
                       created_at, updated_at";

fn select() -> Sql {
    let mut query = sql!("SELECT ");
    query.and(COLUMNS, []);
    query.and(" FROM webhook_deliveries", []);
    query
}

fn read(row: &SqlRow) -> Result<DeliveryRecord> {
    let state: String = row.get(5)?;
    Ok(DeliveryRecord {
        delivery_id: row.get(0)?,
        webhook_id: row.get(1)?,
        event_id: row.get(2)?,
        event: row.get(3)?,
        body: row.lossy_text(4)?,
        state: DeliveryState::named(&state).unwrap_or(DeliveryState::Failed),
        attempts: row.get(6)?,
        next_at: row.get(7)?,
        status: row.get(8)?,
        error: row.get(9)?,
        created_at: row.get(10)?,
        updated_at: row.get(11)?,
    })
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(ERROR_BYTES_MAX)).unwrap_or(text)
}
