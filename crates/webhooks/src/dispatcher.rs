//! Writes events down, claims what is due, sends it, and writes how that ended.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant as TokioInstant, MissedTickBehavior, interval};
use tollgate_control::change_feed::ChangeFeedState;
use tollgate_control::record::{DeliveryRecord, DeliveryState, WebhookRecord};
use tollgate_control::{DatedRows, DeliveryAttempt, DeliveryDraft, Error, Instant, Result, Retention};
use tollgate_core::Span;
use tollgate_service::EventQueue;
use tollgate_service::violations::KeyHashing;
use tollgate_telemetry::LogThrottle;
use tracing::{info, warn};

use crate::message::draft_of;
use crate::metrics::WebhookMetrics;
use crate::secret::WebhookSecret;
use crate::webhooks::Webhooks;

/// How often events are written down, and what is due is sent.
const SEND_INTERVAL: Duration = Duration::from_secs(1);
/// How often the webhooks are read, if no change is heard of.
const READ_INTERVAL: Duration = Duration::from_secs(30);
/// Messages sent at once by a node: one that flaps must not become a flood at its receiver.
const AT_ONCE: u32 = 8;
/// How long one attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a claim lasts: longer than any attempt, with its writes.
const CLAIM: Span = Span::from_secs(60);
/// Attempts before a message is given up, about two hours after the first.
const ATTEMPTS_MAX: i64 = 8;
/// The pause after the first attempt; each further one is three times as long, up to an hour.
const FIRST_PAUSE: Span = Span::from_secs(10);
const PAUSE_MAX: Span = Span::from_secs(3600);
/// Events that wait for the database; the oldest are dropped.
const WAITING_MAX: usize = 1000;
/// How long deliveries are kept.
const RETENTION: Duration = Duration::from_secs(7 * 86_400);
const PRUNE_INTERVAL: Duration = Duration::from_secs(600);

/// The parts of a [`WebhookDispatcher`].
pub struct WebhookDispatcherConfig {
    /// Database, policy and keys.
    pub webhooks: Webhooks,
    /// Where events come from.
    pub events: Arc<EventQueue>,
    /// Tells that the webhooks have changed.
    pub changes: watch::Receiver<ChangeFeedState>,
    /// Counts messages.
    pub metrics: Arc<WebhookMetrics>,
    /// How clients are named in messages.
    pub client_keys: KeyHashing,
}

/// Sends events to webhooks.
pub struct WebhookDispatcher {
    config: WebhookDispatcherConfig,
    webhooks: Arc<Vec<WebhookRecord>>,
    /// Not written down yet, oldest first.
    waiting: VecDeque<DeliveryDraft>,
    read_at: TokioInstant,
    generation: Option<i64>,
    retention: Retention,
    throttle: LogThrottle,
}

impl WebhookDispatcher {
    /// A dispatcher that has read nothing yet.
    pub fn new(config: WebhookDispatcherConfig) -> WebhookDispatcher {
        let now = TokioInstant::now();
        let retention =
            Retention { rows: DatedRows::Deliveries, keep: RETENTION, most: None, interval: PRUNE_INTERVAL, due: now };
        WebhookDispatcher {
            config,
            webhooks: Arc::default(),
            waiting: VecDeque::new(),
            read_at: now,
            generation: None,
            retention,
            throttle: LogThrottle::by_the_minute(),
        }
    }

    /// Runs until `end`. What was written down is sent by another node, or after the next start.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let mut ticks = interval(SEND_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let due = self.config.webhooks.due.clone();
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                () = due.notified() => {}
                _ = ticks.tick() => {}
            }
            tokio::select! {
                () = &mut end => return, // a claim that is cut off ends by itself
                done = self.step() => if let Err(error) = done {
                    self.log_failure(&error);
                },
            }
        }
    }

    /// One round of everything.
    pub async fn step(&mut self) -> Result<()> {
        self.read_webhooks().await?;
        self.collect();
        self.write_down().await?;
        if self.webhooks.is_empty() {
            return Ok(());
        }
        while self.send_due().await? {}
        self.retention.prune(&self.config.webhooks.control, self.config.webhooks.clock.wall()).await
    }

    async fn read_webhooks(&mut self) -> Result<()> {
        let generation = self.config.changes.borrow().generation;
        let is_due = self.generation != Some(generation) || TokioInstant::now() >= self.read_at;
        if !is_due {
            return Ok(());
        }
        self.webhooks = Arc::new(self.config.webhooks.control.webhooks().await?);
        self.generation = Some(generation);
        self.read_at = TokioInstant::now() + READ_INTERVAL;
        self.config.events.want(!self.webhooks.is_empty());
        Ok(())
    }

    /// Takes the events that were noticed: one draft for every webhook that wants it.
    fn collect(&mut self) {
        let now = Instant::from(self.config.webhooks.clock.wall());
        let (events, lost) = self.config.events.drain();
        self.config.metrics.dropped(lost);
        for event in events {
            for webhook in self.webhooks.iter().filter(|webhook| webhook.wants(event.kind.name())) {
                let keys = Some(&self.config.client_keys);
                if let Ok(draft) = draft_of(&event, &webhook.webhook_id, &self.config.webhooks.node, now, keys) {
                    self.waiting.push_back(draft);
                }
            }
        }
        while self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
            self.config.metrics.dropped(1);
        }
    }

    async fn write_down(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let now = Instant::from(self.config.webhooks.clock.wall());
        let drafts = self.waiting.make_contiguous();
        match self.config.webhooks.control.queue_deliveries(drafts, now).await {
            Ok(_) => self.waiting.clear(),
            Err(error @ (Error::Unavailable(_) | Error::Full(_) | Error::Schema(_))) => return Err(error),
            Err(error) => {
                // They would be rejected again, and block all later ones.
                self.config.metrics.dropped(self.waiting.len() as u64);
                self.waiting.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sends what is due, several at once; true if there may be more.
    async fn send_due(&mut self) -> Result<bool> {
        let now = self.config.webhooks.clock.wall();
        let control = &self.config.webhooks.control;
        let waiting = control.waiting_deliveries(now.into()).await?;
        self.config.metrics.waiting(waiting.in_all);
        if waiting.due == 0 {
            return Ok(false);
        }
        let claimed = control.claim_deliveries(now.into(), now.after(CLAIM).into(), AT_ONCE).await?;
        let mut sending = JoinSet::new();
        let more = claimed.len() == AT_ONCE as usize;
        for delivery in claimed {
            let webhook = self.webhooks.iter().find(|webhook| webhook.webhook_id == delivery.webhook_id).cloned();
            let webhooks = self.config.webhooks.clone();
            sending.spawn(async move { attempt(&webhooks, webhook, delivery).await });
        }
        let mut attempts = Vec::new();
        while let Some(done) = sending.join_next().await {
            attempts.extend(done.ok()); // one that panicked is claimed again
        }
        attempts.iter().for_each(|attempt| self.note(attempt));
        let now = Instant::from(self.config.webhooks.clock.wall());
        self.config.webhooks.control.finish_deliveries(&attempts, now).await?;
        Ok(more)
    }

    fn note(&self, attempt: &DeliveryAttempt) {
        let DeliveryAttempt { delivery_id, state, status, error, .. } = attempt;
        match state {
            DeliveryState::Delivered => self.config.metrics.delivered(),
            DeliveryState::Waiting => self.config.metrics.retried(),
            DeliveryState::Failed => self.config.metrics.failed(),
        }
        if *state != DeliveryState::Delivered
            && let Some(unsaid) = self.throttle.admit("attempt")
        {
            info!(delivery_id, status, error, unsaid, "a webhook did not take a message");
        }
    }

    fn log_failure(&self, error: &Error) {
        if let Some(unsaid) = self.throttle.admit("webhooks") {
            warn!(%error, unsaid, "webhooks wait for the database");
        }
    }
}

/// Sends one message once.
async fn attempt(webhooks: &Webhooks, webhook: Option<WebhookRecord>, delivery: DeliveryRecord) -> DeliveryAttempt {
    let outcome = match webhook {
        Some(webhook) => send(webhooks, &webhook, &delivery).await,
        None => Err("the webhook is not known here yet".to_owned()),
    };
    let now = webhooks.clock.wall();
    let is_last = delivery.attempts >= ATTEMPTS_MAX;
    let (state, status, error) = match outcome {
        Ok(status) if status.is_success() => (DeliveryState::Delivered, Some(status), None),
        Ok(status) => {
            let is_over = is_last || status == StatusCode::GONE;
            let error = status.is_redirection().then(|| "redirects are not followed".to_owned());
            (if is_over { DeliveryState::Failed } else { DeliveryState::Waiting }, Some(status), error)
        }
        Err(error) => (if is_last { DeliveryState::Failed } else { DeliveryState::Waiting }, None, Some(error)),
    };
    DeliveryAttempt {
        delivery_id: delivery.delivery_id,
        state,
        next_at: now.after(pause(delivery.attempts)).into(),
        status: status.map(|status| i64::from(status.as_u16())),
        error,
    }
}

/// The pause after so many attempts.
fn pause(attempts: i64) -> Span {
    let exponent = u32::try_from(attempts.saturating_sub(1).clamp(0, 20)).unwrap_or(20);
    Span::from_nanos(FIRST_PAUSE.nanos().saturating_mul(3_u64.saturating_pow(exponent))).min(PAUSE_MAX)
}

async fn send(
    webhooks: &Webhooks,
    webhook: &WebhookRecord,
    delivery: &DeliveryRecord,
) -> std::result::Result<StatusCode, String> {
    let url = webhooks.policy.url(&webhook.url).map_err(|refusal| refusal.to_string())?;
    let secret = WebhookSecret::derive(&webhooks.site_key, &webhook.webhook_id);
    if secret.fingerprint() != webhook.fingerprint {
        return Err("this node has another secret_file than the one the webhook was made with; make the webhook anew"
            .to_owned());
    }
    let seconds = webhooks.clock.wall().nanos() / 1_000_000_000;
    let signature = secret.signature(&delivery.event_id, seconds, &delivery.body);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static("tollgate-webhooks"));
    let fields = [
        ("webhook-id", delivery.event_id.clone()),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", signature),
    ];
    for (name, value) in fields {
        let value = HeaderValue::from_str(&value).map_err(|_| format!("{name} cannot be sent"))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    let body = Bytes::from(delivery.body.clone());
    let sent = webhooks.policy.client().post(&url, &headers, body, ATTEMPT_TIMEOUT).await;
    sent.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour() {
        let pauses: Vec<u64> = (1..=ATTEMPTS_MAX).map(|attempts| pause(attempts).nanos() / 1_000_000_000).collect();
        assert_eq!(pauses, [10, 30, 90, 270, 810, 2430, 3600, 3600]);
        assert_eq!(pause(i64::MAX), PAUSE_MAX);
    }
}
