//! Penalties that have begun: counted, and written to the database, where operators see and lift them.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant as TokioInstant, MissedTickBehavior, interval, timeout};
use tollgate_control::{BegunPenalty, Control, DatedRows, Instant, Retention};
use tollgate_core::{Charge, Clock, Digest, Limit, SlidingLog, Span};
use tollgate_engine::Penalty;
use tollgate_telemetry::{LogThrottle, MetricFamilies, MetricsPage, OTHER};
use tracing::warn;

use crate::events::{EventKind, EventQueue, OperatorEvent};
use crate::violations::KeyHashing;

/// Most penalties that wait for the database; further ones are in force and not listed.
const WAITING_MAX: usize = 10_000;
/// Most rules with a series of their own.
const SERIES_MAX: usize = 200;
/// How often penalties are written.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// How long the final write may take.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long rows of ended penalties are kept.
const RETENTION: Duration = Duration::from_secs(7 * 86_400);
/// How often they are deleted.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60);

/// Penalties that this node began.
#[derive(Debug, Default)]
pub struct Penalties {
    waiting: Mutex<Vec<Penalty>>,
    counts: Mutex<BTreeMap<(String, String), u64>>,
    events: Arc<EventQueue>,
}

impl Penalties {
    /// Tells webhooks through this queue.
    pub fn new(events: Arc<EventQueue>) -> Penalties {
        Penalties { events, ..Penalties::default() }
    }

    /// Notes one.
    pub(crate) fn begun(&self, penalty: &Penalty) {
        let Penalty { namespace, rule, .. } = penalty;
        {
            let mut counts = self.counts.lock();
            let labels = (namespace.clone(), rule.clone());
            let is_new = counts.len() >= SERIES_MAX && !counts.contains_key(&labels);
            *counts.entry(if is_new { (OTHER.to_owned(), OTHER.to_owned()) } else { labels }).or_default() += 1;
        }
        self.events.push(|| event(penalty));
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push(penalty.clone());
        }
    }
}

fn event(penalty: &Penalty) -> OperatorEvent {
    let Penalty { namespace, rule, client, bucket, number, begun, lasts } = penalty;
    let (begun_at, ends_at) = (Instant::from(*begun), Instant::from(begun.after(*lasts)));
    OperatorEvent {
        namespace: Some(namespace.clone()),
        rule: Some(rule.clone()),
        client: Some(client.clone()),
        occasion: format!("{} {number} {begun_at}", bucket_name(bucket)),
        summary: format!("The rule {rule} refuses one client until {ends_at}: its penalty number {number}."),
        data: json!({ "number": number, "begun_at": begun_at.to_string(), "ends_at": ends_at.to_string() }),
        ..OperatorEvent::of(EventKind::PenaltyBegun)
    }
}

/// A bucket as rows name it.
fn bucket_name(bucket: &Charge) -> String {
    let Digest([a, b]) = bucket.bucket;
    format!("{a:016x}{b:016x}")
}

impl MetricFamilies for Penalties {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let counts = self.counts.lock().clone().into_iter();
        let series = counts.map(|((namespace, rule), count)| ([("namespace", namespace), ("rule", rule)], count));
        page.counters("tollgate_penalties", "Penalties that this node began", series)
    }
}

/// Writes penalties to the database.
pub struct PenaltyWriter {
    /// Those that have begun.
    pub penalties: Arc<Penalties>,
    /// The database.
    pub control: Control,
    /// Tells the age of rows.
    pub clock: Arc<dyn Clock>,
    /// How clients are named.
    pub client_keys: KeyHashing,
    /// The name of this node; empty if all nodes share the buckets.
    pub node: String,
}

impl PenaltyWriter {
    /// Writes every second until `end`, and then what is left.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let mut ticks = interval(WRITE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let throttle = LogThrottle::by_the_minute();
        let mut end = std::pin::pin!(end);
        let mut retention = Retention {
            rows: DatedRows::Penalties,
            keep: RETENTION,
            most: None,
            interval: PRUNE_INTERVAL,
            due: TokioInstant::now(),
        };
        loop {
            tokio::select! {
                () = &mut end => break,
                _ = ticks.tick() => {}
            }
            self.write(&throttle).await;
            let _ = retention.prune(&self.control, self.clock.wall()).await; // again in a minute
        }
        let _ = timeout(FINAL_WRITE_TIMEOUT, self.write(&throttle)).await;
    }

    async fn write(&self, throttle: &LogThrottle) {
        let begun = std::mem::take(&mut *self.penalties.waiting.lock());
        if begun.is_empty() {
            return;
        }
        let rows: Vec<BegunPenalty> = begun.iter().map(|penalty| self.row(penalty)).collect();
        if let Err(error) = self.control.record_penalties(&rows).await {
            if let Some(unsaid) = throttle.admit("penalties") {
                warn!(%error, unsaid, "penalties are in force, and not in the database yet");
            }
            let mut waiting = self.penalties.waiting.lock();
            let room = WAITING_MAX.saturating_sub(waiting.len());
            waiting.extend(begun.into_iter().take(room));
        }
    }

    fn row(&self, penalty: &Penalty) -> BegunPenalty {
        let Penalty { namespace, rule, client, bucket, number, begun, lasts } = penalty;
        BegunPenalty {
            bucket: bucket_name(bucket),
            identity: i64::from(bucket.identity),
            node: self.node.clone(),
            namespace: namespace.clone(),
            rule_id: rule.clone(),
            client_key: self.client_keys.of(client),
            number: i64::try_from(*number).unwrap_or(i64::MAX),
            begun_at: Instant::from(*begun),
            ends_at: Instant::from(begun.after(*lasts)),
        }
    }
}

/// The bucket of a stored penalty; `None` if the row is none of ours.
pub fn bucket_of(bucket: &str, identity: i64) -> Option<Charge> {
    let word = |range| u64::from_str_radix(bucket.get(range)?, 16).ok();
    let digest = Digest([word(0..16)?, word(16..32).filter(|_| bucket.len() == 32)?]);
    let limit = Limit::SlidingLog(SlidingLog::new(1, Span::SECOND).ok()?);
    Some(Charge { identity: u32::try_from(identity).ok()?, ..Charge::new(digest, limit, 0) })
}
