//! Reads changed buckets, writes what the store said to the database, and deletes old periods.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant as TokioInstant, MissedTickBehavior, interval, timeout};
use tollgate_control::{Control, DatedRows, Error, Instant, PeriodUsage, Retention};
use tollgate_core::{Charge, Clock, Outcome, Owner, QuotaBucket, Span, Time};
use tollgate_engine::Engine;
use tollgate_store::Store;
use tollgate_telemetry::LogThrottle;
use tracing::{error, warn};

use super::reading::{BucketOwner, ChangedBucket, PeriodKey, SeenUsage, hex, units};
use super::{UsageHistoryMetrics, UsageTracker};
use crate::store::ConfiguredStore;
use crate::violations::KeyHashing;

/// How often changes are written.
const WRITE_INTERVAL: Duration = Duration::from_secs(2);
/// How often the writer looks whether a period is about to end: its last usage can only be read before.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long before the end of a period its changes are read at every poll.
const NEAR_END: Span = Span::from_secs(10);
/// How long a bucket is tried to be read after the end of its period by this node's clock, if the store is away.
const READ_AFTER_END: Span = Span::from_secs(60);
/// Buckets read between two writes.
const READS_MAX: usize = 4096;
/// Buckets that wait while the database or the store is away: about 40 MiB.
const WAITING_MAX: usize = 100_000;
/// Rows written in one transaction: a rule change waits for at most one.
const ROWS_AT_ONCE: usize = 1000;
/// How often old rows are deleted, unless more are left.
const PRUNE_INTERVAL: Duration = Duration::from_secs(600);
/// Most rows in the database, whatever their age: a flood of new clients must not fill it.
const ROWS_MAX: u32 = 20_000_000;
/// How long the final write may take: less than the server waits for the writer, so that losses are still logged.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_millis(2500);

/// The parts of a [`UsageWriter`].
pub struct UsageWriterConfig {
    /// What changed.
    pub tracker: Arc<UsageTracker>,
    /// Reads the store.
    pub engine: Arc<Engine<ConfiguredStore>>,
    /// The database.
    pub control: Control,
    /// Counts what was written.
    pub metrics: Arc<UsageHistoryMetrics>,
    /// How long ended periods are kept.
    pub retention: Duration,
    /// Tells the age of rows.
    pub clock: Arc<dyn Clock>,
    /// The key of this site, with which client keys are hashed; `None` stores them in plain text.
    pub site_key: Option<[u8; 32]>,
    /// The name of this node: buckets in its memory are its own.
    pub node: String,
}

/// Moves usage from the store to the database.
pub struct UsageWriter {
    pub(super) config: UsageWriterConfig,
    /// Buckets not read or not written yet.
    waiting: BTreeMap<PeriodKey, ChangedBucket>,
    at_rest: KeyHashing,
    /// The name of this node in rows; empty if all nodes share the buckets.
    node: String,
    /// The next shard of a store in memory whose restored usage is to be written.
    restored_shard: usize,
    write_at: TokioInstant,
    retention: Retention,
    throttle: LogThrottle,
}

impl UsageWriter {
    /// A writer with nothing to write yet.
    pub fn new(config: UsageWriterConfig) -> UsageWriter {
        let at_rest = config.site_key.as_ref().map_or(KeyHashing::plain(), |key| KeyHashing::hashed(key));
        let node = if config.engine.store().is_shared() { String::new() } else { config.node.clone() };
        let retention = Retention {
            rows: DatedRows::Usage,
            keep: config.retention,
            most: Some(ROWS_MAX),
            interval: PRUNE_INTERVAL,
            due: TokioInstant::now(),
        };
        UsageWriter {
            config,
            waiting: BTreeMap::new(),
            at_rest,
            node,
            restored_shard: 0,
            write_at: TokioInstant::now(),
            retention,
            throttle: LogThrottle::by_the_minute(),
        }
    }

    /// Writes every few seconds until `end`, and then what is left.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut end = std::pin::pin!(end);
        loop {
            let work = async {
                ticks.tick().await;
                if self.is_due() {
                    self.write().await;
                    self.prune().await;
                }
            };
            tokio::select! {
                () = &mut end => break, // an interrupted write stays queued, and may be written twice
                () = work => {}
            }
        }
        let _ = timeout(FINAL_WRITE_TIMEOUT, self.write()).await;
        if !self.waiting.is_empty() {
            let buckets = self.waiting.len();
            self.config.metrics.dropped(buckets as u64);
            warn!(buckets, "the database or the store is unavailable: the last usage is written when it changes again");
        }
    }

    fn is_due(&mut self) -> bool {
        let first = self.waiting.keys().map(|(_, end)| *end).min();
        let first = first.map_or(self.config.tracker.earliest_end(), |end| end.min(self.config.tracker.earliest_end()));
        let is_due = TokioInstant::now() >= self.write_at || first <= self.config.clock.wall().after(NEAR_END);
        if is_due {
            self.write_at = TokioInstant::now() + WRITE_INTERVAL;
        }
        is_due
    }

    /// Reads and writes what changed since, and what could not be read or written before.
    pub async fn write(&mut self) {
        self.collect();
        if self.write_restored().await {
            self.read().await;
            self.write_rows().await;
        }
        self.config.metrics.waiting(self.waiting.len());
    }

    fn collect(&mut self) {
        for (key, changed) in self.config.tracker.drain() {
            let is_full = self.waiting.len() >= WAITING_MAX;
            match self.waiting.entry(key) {
                Entry::Occupied(known) => known.into_mut().join(changed),
                Entry::Vacant(_) if is_full => self.config.metrics.dropped(1),
                Entry::Vacant(place) => drop(place.insert(changed)),
            }
        }
    }

    /// Reads the buckets whose usage may be less than what was seen last.
    async fn read(&mut self) {
        let unread = self.waiting.iter().filter(|(_, changed)| changed.must_read).take(READS_MAX);
        let (keys, reads): (Vec<PeriodKey>, Vec<Charge>) = unread.map(|(key, changed)| (*key, changed.read)).unzip();
        let mut seen: Vec<(Outcome, Time)> = Vec::with_capacity(reads.len());
        let read = self.config.engine.read_buckets(&reads, |_, outcome, now| seen.push((*outcome, now))).await;
        for (key, (outcome, now)) in keys.into_iter().zip(seen) {
            self.note_read(key, &outcome, now);
        }
        if let Err(error) = read {
            self.config.metrics.failed();
            let wall = self.config.clock.wall();
            let is_late = |(_, end): &PeriodKey| end.after(READ_AFTER_END) < wall;
            self.waiting.iter_mut().filter(|(key, _)| is_late(key)).for_each(|(_, late)| late.must_read = false);
            if let Some(unsaid) = self.throttle.admit("read") {
                warn!(%error, unsaid, "usage could not be read from the store; trying again");
            }
        }
    }

    /// Notes what the store said of a bucket at `now`, which may be after the end of the period: then what was seen last
    /// is all that is known of it, if anything is.
    fn note_read(&mut self, key: PeriodKey, outcome: &Outcome, now: Time) {
        let Some(mut changed) = self.waiting.remove(&key) else { return };
        let (bucket, end) = key;
        changed.must_read = false;
        let is_over = now >= end;
        if is_over && changed.seen.is_some() {
            self.waiting.insert(key, changed.clone());
        }
        if is_over && outcome.used == 0 {
            return;
        }
        // If the calendar of the client has changed, the period has another end, which replaces the row of this one.
        let end = if outcome.used > 0 { outcome.stamp } else { end };
        changed.seen = Some(SeenUsage::of(outcome, now));
        match self.waiting.entry((bucket, end)) {
            Entry::Occupied(other) => other.into_mut().read_again(changed),
            Entry::Vacant(place) => drop(place.insert(changed)),
        }
    }

    /// Writes the rows of buckets that need not be read.
    async fn write_rows(&mut self) {
        loop {
            let ready = self.waiting.iter().filter(|(_, changed)| !changed.must_read).take(ROWS_AT_ONCE);
            let keys: Vec<PeriodKey> = ready.map(|(key, _)| *key).collect();
            let row = |key: &PeriodKey| self.waiting.get(key)?.row(key, &self.node, |text| self.at_rest.of(text));
            let rows: Vec<PeriodUsage> = keys.iter().filter_map(row).collect();
            if keys.is_empty() || !self.record(&rows).await {
                return;
            }
            keys.iter().for_each(|key| drop(self.waiting.remove(key)));
        }
    }

    /// Writes rows; false if they must be written later.
    async fn record(&self, rows: &[PeriodUsage]) -> bool {
        match self.config.control.record_usage(rows).await {
            Ok(()) => self.config.metrics.written(rows.len() as u64),
            Err(error @ (Error::Unavailable(_) | Error::Full(_) | Error::Schema(_))) => {
                self.config.metrics.failed();
                self.log_failure(&error, "usage stays in memory until the database is available");
                return false;
            }
            Err(error) => {
                // It would be rejected again, and block all later rows.
                self.config.metrics.dropped(rows.len() as u64);
                error!(%error, rows = rows.len(), "the database rejects usage; the rows are dropped");
            }
        }
        true
    }

    /// Writes the usage that a journal restored: it may be later than the rows of the last process. Returns false if it
    /// must be called again.
    async fn write_restored(&mut self) -> bool {
        let engine = self.config.engine.clone();
        let Some(memory) = engine.store().in_process() else { return true };
        let mut buckets: Vec<QuotaBucket> = Vec::new();
        while self.restored_shard < memory.shards() {
            buckets.clear();
            memory.copy_quotas(self.restored_shard, &mut buckets);
            let now = memory.clock().wall();
            let running = buckets.iter().filter(|bucket| bucket.usage.end() > now);
            let rows: Vec<PeriodUsage> = running.map(|bucket| self.restored_row(bucket, now)).collect();
            for rows in rows.chunks(ROWS_AT_ONCE) {
                if !self.record(rows).await {
                    return false;
                }
            }
            self.restored_shard += 1;
        }
        true
    }

    fn restored_row(&self, bucket: &QuotaBucket, now: Time) -> PeriodUsage {
        let rules = self.config.engine.rules();
        let rule = rules.rules.rule_of_owner(Owner::new(bucket.owner)).and_then(|rule| rules.rules.rule(rule));
        let owner = rule.map(BucketOwner::of_rule);
        let (namespace, rule_id) = owner.map(|owner| (owner.namespace, owner.rule)).unwrap_or_default();
        PeriodUsage {
            bucket: hex(bucket.bucket),
            node: self.node.clone(),
            namespace,
            rule_id,
            client_key: None,
            organisation: None,
            period_start: None,
            period_end: Instant::from(bucket.usage.end()),
            used: units(bucket.usage.used()),
            limit_value: None,
            as_of: Instant::from(now),
        }
    }

    /// Deletes periods that ended long ago, or are too many, if it is time to.
    pub async fn prune(&mut self) {
        if let Err(error) = self.retention.prune(&self.config.control, self.config.clock.wall()).await {
            self.log_failure(&error, "old usage could not be deleted");
        }
    }

    fn log_failure(&self, error: &Error, what: &str) {
        if let Some(unsaid) = self.throttle.admit("usage") {
            warn!(%error, unsaid, "{what}");
        }
    }
}
