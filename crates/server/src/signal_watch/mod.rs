//! What a node notices about itself once a second: for webhooks, and for the ratio of the rule cache.

mod denial_spikes;
mod rule_cache;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tollgate_core::{Clock, Time};
use tollgate_engine::Engine;
use tollgate_service::store::ConfiguredStore;
use tollgate_service::{EventKind, EventQueue, OperatorEvent};
use tollgate_telemetry::{DecisionMetrics, ShardState};

use self::denial_spikes::DenialSpikes;
pub(crate) use self::rule_cache::RuleCacheMetrics;
use crate::families::DatabaseState;
use crate::rule_sources::FileStates;

/// Ticks of one second in a minute.
const TICKS_OF_A_MINUTE: u64 = 60;
/// Seconds without fallback after which another one is an event of its own.
const CALM_TICKS: u64 = 60;
/// Events of the whole fleet that fall into the same ten minutes are one.
const OCCASION_NANOS: u64 = 600_000_000_000;
/// Longest error that is sent.
const ERROR_BYTES_MAX: usize = 1000;

/// What is watched.
pub(crate) struct SignalWatch {
    pub(crate) engine: Arc<Engine<ConfiguredStore>>,
    pub(crate) metrics: Arc<DecisionMetrics>,
    pub(crate) files: FileStates,
    pub(crate) database: DatabaseState,
    pub(crate) rule_cache: Arc<RuleCacheMetrics>,
    pub(crate) events: Arc<EventQueue>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seen: SeenSignals,
}

/// What was seen before.
#[derive(Debug, Default)]
pub(crate) struct SeenSignals {
    ticks: u64,
    spikes: DenialSpikes,
    /// Denials when the minute began.
    denials: u64,
    fallbacks: u64,
    fallback_at: Option<u64>,
    down: BTreeSet<String>,
    errors: BTreeSet<String>,
}

impl SignalWatch {
    /// Looks at everything. Called once a second.
    pub(crate) fn tick(&mut self) {
        self.seen.ticks += 1;
        let wall = self.clock.wall();
        self.watch_rules(wall);
        self.watch_breakers(wall);
        self.watch_fallback(wall);
        if self.seen.ticks.is_multiple_of(TICKS_OF_A_MINUTE) {
            self.watch_denials(wall);
        }
    }

    fn watch_rules(&mut self, wall: Time) {
        let errors: BTreeSet<String> = self.files.0.iter().filter_map(|file| file.borrow().error.clone()).collect();
        let is_latest = errors.is_empty() && self.database.is_up();
        self.rule_cache.note(self.metrics.decisions(), is_latest);
        for error in errors.difference(&self.seen.errors) {
            let error = error.get(..error.floor_char_boundary(ERROR_BYTES_MAX)).unwrap_or_default();
            self.events.push(|| OperatorEvent {
                occasion: format!("{} {error}", occasion(wall)),
                summary: "New rules cannot be loaded; the last good ones stay in force.".to_owned(),
                data: json!({ "error": error }),
                ..OperatorEvent::of(EventKind::ReloadFailing)
            });
        }
        self.seen.errors = errors;
    }

    fn watch_breakers(&mut self, wall: Time) {
        let shards = self.engine.store().figures().map(|figures| figures.shards).unwrap_or_default();
        let down = shards.into_iter().filter(|shard| shard.state == ShardState::Down).map(|shard| shard.address);
        let down: BTreeSet<String> = down.collect();
        for address in down.difference(&self.seen.down) {
            self.events.push(|| OperatorEvent {
                occasion: format!("{} {address}", occasion(wall)),
                summary: format!("The breaker of the store {address} is open: its limits are decided by on_fail."),
                data: json!({ "address": address }),
                ..OperatorEvent::of(EventKind::BreakerOpen)
            });
        }
        self.seen.down = down;
    }

    fn watch_fallback(&mut self, wall: Time) {
        let fallbacks = self.metrics.fallbacks();
        let new = fallbacks - std::mem::replace(&mut self.seen.fallbacks, fallbacks).min(fallbacks);
        if new == 0 {
            return;
        }
        let ticks = self.seen.ticks;
        let before = self.seen.fallback_at.replace(ticks);
        if before.is_none_or(|before| ticks - before > CALM_TICKS) {
            self.events.push(|| OperatorEvent {
                occasion: occasion(wall),
                summary: "Requests are decided without the store, as on_fail of their rules says.".to_owned(),
                data: json!({ "decisions": new }),
                ..OperatorEvent::of(EventKind::FallbackActive)
            });
        }
    }

    fn watch_denials(&mut self, wall: Time) {
        let denials = self.metrics.denials();
        let new = denials.saturating_sub(std::mem::replace(&mut self.seen.denials, denials));
        let Some(spike) = self.seen.spikes.minute(new) else { return };
        self.events.push(|| OperatorEvent {
            occasion: occasion(wall),
            summary: format!(
                "{} requests were denied within a minute; {} are usual at this node.",
                spike.denials, spike.usual
            ),
            data: json!({ "denials": spike.denials, "usual": spike.usual }),
            ..OperatorEvent::of(EventKind::DenialSpike)
        });
    }
}

fn occasion(wall: Time) -> String {
    (wall.nanos() / OCCASION_NANOS).to_string()
}
