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
use tollgate_core::{Charge, Clock, Digest, Limit, Sharing, SlidingLog, Span};
use tollgate_engine::{Penalty, UncountedReason};
use tollgate_telemetry::{Counter, LogThrottle, MetricFamilies, MetricsPage, OTHER};
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
#[derive(Debug)]
pub struct Penalties {
    waiting: Mutex<Vec<Penalty>>,
    counts: Mutex<BTreeMap<(String, String), u64>>,
    events: Arc<EventQueue>,
    queue_full: Counter,
    store_failed: Counter,
    throttle: LogThrottle,
}

impl Default for Penalties {
    fn default() -> Penalties {
        Penalties {
            waiting: Mutex::default(),
            counts: Mutex::default(),
            events: Arc::default(),
            queue_full: Counter::default(),
            store_failed: Counter::default(),
            throttle: LogThrottle::by_the_minute(),
        }
    }
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

    /// So many denials do not count.
    pub(crate) fn uncounted(&self, count: u64, reason: UncountedReason) {
        match reason {
            UncountedReason::StoreFailed => self.store_failed.add(count), // logged where the store is watched
            UncountedReason::QueueFull => {
                self.queue_full.add(count);
                if let Some(unsaid) = self.throttle.admit("denials") {
                    warn!(unsaid, "more clients are denied than the store can count: some denials bring no penalty");
                }
            }
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
        page.counters("tollgate_penalties", "Penalties that this node began", series)?;
        let uncounted = [("queue_full", self.queue_full.sum()), ("store_failed", self.store_failed.sum())];
        let uncounted = uncounted.into_iter().map(|(reason, count)| ([("reason", reason)], count));
        page.counters("tollgate_penalty_denials_uncounted", "Denials that do not count towards penalties", uncounted)
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
    /// Which buckets are this node's alone.
    pub holder: PenaltyHolder,
}

/// Which penalties this process has in its own memory, and which all nodes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PenaltyHolder {
    /// This node's name and the address of its admin API: `NAME@ADDRESS`. Nodes of one host have one name and different
    /// addresses; a node that starts again has both again.
    pub node: String,
    /// True if nodes share the buckets of rules that are not `consistency: local`.
    pub is_store_shared: bool,
}

impl PenaltyHolder {
    /// The holder of a bucket, as rows have it: empty if all nodes share it.
    fn of(&self, bucket: &Charge) -> &str {
        if self.is_store_shared && bucket.sharing != Sharing::Local { "" } else { &self.node }
    }

    /// True if this node can lift the penalty.
    pub fn may_lift(&self, penalty: &BegunPenalty) -> bool {
        penalty.node == self.node || (penalty.node.is_empty() && self.is_store_shared)
    }
}

impl PenaltyWriter {
    /// Writes every second until `end`, and then what is left.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let mut ticks = interval(WRITE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let throttle = LogThrottle::by_the_minute();
        let mut end = std::pin::pin!(end);
        let mut is_first = true;
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
            // Before anything of this process is written: its memory was empty at its start.
            if is_first && self.control.end_penalties_of(&self.holder.node, self.clock.wall().into()).await.is_err() {
                continue; // the database is away, and so are the writes
            }
            is_first = false;
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
            node: self.holder.of(bucket).to_owned(),
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
pub fn bucket_of(penalty: &BegunPenalty) -> Option<Charge> {
    let bucket = penalty.bucket.as_str();
    let word = |range| u64::from_str_radix(bucket.get(range)?, 16).ok();
    let digest = Digest([word(0..16)?, word(16..32).filter(|_| bucket.len() == 32)?]);
    let limit = Limit::SlidingLog(SlidingLog::new(1, Span::SECOND).ok()?);
    let sharing = if penalty.node.is_empty() { Sharing::Exact } else { Sharing::Local };
    Some(Charge { identity: u32::try_from(penalty.identity).ok()?, sharing, ..Charge::new(digest, limit, 0) })
}
