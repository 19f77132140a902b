//! Writes counted violations to the database, and deletes old ones.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant as TokioInstant, MissedTickBehavior, interval, timeout};
use tollgate_control::{Control, DatedRows, Error, Instant, Retention, Violation};
use tollgate_core::Clock;
use tollgate_telemetry::LogThrottle;
use tracing::{error, warn};

use super::{KeyHashing, ViolationMetrics, Violations};

/// How often counts are written.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// How often old rows are deleted, unless more are left.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60);
/// Rows written in one transaction: a rule change waits for at most one.
const ROWS_AT_ONCE: usize = 1000;
/// Rows that wait while the database is away; the oldest are dropped.
const WAITING_MAX: usize = 20_000;
/// Most rows in the database, whatever their age: a flood of new clients must not fill it.
const ROWS_MAX: u32 = 1_000_000;
/// How long the final write may take: less than the server waits for the writer, so that losses are still logged.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_millis(1500);

/// The parts of a [`ViolationWriter`].
pub struct ViolationWriterConfig {
    /// The counts in memory.
    pub violations: Arc<Violations>,
    /// The database.
    pub control: Control,
    /// Counts what was written and what was lost.
    pub metrics: Arc<ViolationMetrics>,
    /// How long rows are kept.
    pub retention: Duration,
    /// Tells the age of rows.
    pub clock: Arc<dyn Clock>,
    /// The key of this site, with which client keys are hashed; `None` stores them in plain text.
    pub site_key: Option<[u8; 32]>,
}

/// Moves counts from memory to the database.
pub struct ViolationWriter {
    pub(super) config: ViolationWriterConfig,
    /// Rows not written yet, the oldest first.
    waiting: BTreeMap<RowKey, Violation>,
    at_rest: KeyHashing,
    retention: Retention,
    throttle: LogThrottle,
}

/// A row, by its minute first.
type RowKey = (Instant, String, String, Option<String>, bool);

impl ViolationWriter {
    /// A writer with nothing to write yet.
    pub fn new(config: ViolationWriterConfig) -> ViolationWriter {
        let at_rest = config.site_key.as_ref().map_or(KeyHashing::plain(), |key| KeyHashing::hashed(key));
        let retention = Retention {
            rows: DatedRows::Violations,
            keep: config.retention,
            most: Some(ROWS_MAX),
            interval: PRUNE_INTERVAL,
            due: TokioInstant::now(),
        };
        ViolationWriter { config, waiting: BTreeMap::new(), at_rest, retention, throttle: LogThrottle::by_the_minute() }
    }

    /// Writes every few seconds until `end`, and then what is left.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let mut ticks = interval(WRITE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut end = std::pin::pin!(end);
        loop {
            let work = async {
                ticks.tick().await;
                self.write().await;
                self.prune().await;
            };
            tokio::select! {
                () = &mut end => break, // an interrupted write stays queued, and may be written twice
                () = work => {}
            }
        }
        let _ = timeout(FINAL_WRITE_TIMEOUT, self.write()).await;
        let lost = self.waiting.values().map(|violation| violation.refused).sum();
        if lost > 0 {
            self.config.metrics.dropped(count(lost));
            warn!(refusals = lost, "the database is unavailable: the last violations were not written");
        }
    }

    /// Writes what was counted since, and what could not be written before.
    pub async fn write(&mut self) {
        self.collect_counts();
        self.write_rows().await;
        self.config.metrics.waiting(self.waiting.len());
    }

    async fn write_rows(&mut self) {
        while !self.waiting.is_empty() {
            let batch: Vec<Violation> = self.waiting.values().take(ROWS_AT_ONCE).cloned().collect();
            let refusals = count(batch.iter().map(|violation| violation.refused).sum());
            match self.config.control.record_violations(&batch).await {
                Ok(()) => self.config.metrics.written(refusals),
                Err(error @ (Error::Unavailable(_) | Error::Full(_) | Error::Schema(_))) => {
                    return self.log_failure(&error, "violations stay in memory until the database is available");
                }
                Err(error) => {
                    // It would be rejected again, and block all later rows.
                    self.config.metrics.dropped(refusals);
                    error!(%error, rows = batch.len(), "the database rejects violations; they are dropped");
                }
            }
            let rest = self.waiting.keys().nth(batch.len()).cloned();
            self.waiting = rest.map(|rest| self.waiting.split_off(&rest)).unwrap_or_default();
        }
    }

    fn collect_counts(&mut self) {
        for mut violation in self.config.violations.drain() {
            violation.client_key = self.at_rest.of(&violation.client_key);
            let Violation { minute, namespace, client_key, rule_id, is_shadow, .. } = &violation;
            let key = (*minute, namespace.clone(), client_key.clone(), rule_id.clone(), *is_shadow);
            match self.waiting.get_mut(&key) {
                Some(earlier) => earlier.add(&violation),
                None => drop(self.waiting.insert(key, violation)),
            }
        }
        while self.waiting.len() > WAITING_MAX {
            if let Some((_, oldest)) = self.waiting.pop_first() {
                self.config.metrics.dropped(count(oldest.refused));
            }
        }
    }

    /// Deletes rows that are too old or too many, if it is time to.
    pub async fn prune(&mut self) {
        if let Err(error) = self.retention.prune(&self.config.control, self.config.clock.wall()).await {
            self.log_failure(&error, "old violations could not be deleted");
        }
    }

    fn log_failure(&self, error: &Error, what: &str) {
        if let Some(unsaid) = self.throttle.admit("violations") {
            warn!(%error, unsaid, "{what}");
        }
    }
}

fn count(refusals: i64) -> u64 {
    u64::try_from(refusals).unwrap_or(0)
}
