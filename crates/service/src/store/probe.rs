//! Probes the store with the script that decides: a ping would succeed while scripts fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tollgate_store::StoreError;
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::{Health, PrimaryStats};

use super::ConfiguredStore;
use super::figures::state;
use tollgate_telemetry::ShardState;

/// How long a result is reused, so that frequent health checks do not load the store.
const CACHED_FOR: Duration = Duration::from_millis(250);
/// How long a probe may take where only past reachability matters.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Probes the store and caches the result.
#[derive(Debug, Default)]
pub struct StoreProbe {
    last: Mutex<Option<(Instant, Arc<[ProbedShard]>)>>,
    /// True once the store was reachable.
    seen: AtomicBool,
}

/// The result of the last probe of one primary server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedShard {
    /// Its address.
    pub address: String,
    /// Whether it is up.
    pub state: ShardState,
    /// The error, if it is not.
    pub error: Option<String>,
}

impl StoreProbe {
    /// Every known primary of a shared store; `None` for a store in memory, which is always reachable.
    pub async fn probe(&self, store: &ConfiguredStore) -> Option<Arc<[ProbedShard]>> {
        let ConfiguredStore::Shared(node) = store else { return None };
        let mut last = self.last.lock().await; // one probe at a time: concurrent callers share its result
        if let Some((at, known)) = &*last
            && at.elapsed() < CACHED_FOR
        {
            return Some(known.clone());
        }
        let found: Arc<[ProbedShard]> = node.fleet.inner().probe().await.into_iter().map(probed).collect();
        *last = Some((Instant::now(), found.clone()));
        Some(found)
    }

    /// True if the store was reachable since the start. Probes it only until it has made a first decision.
    pub async fn was_reachable(&self, store: &ConfiguredStore) -> bool {
        if self.note_reachable(store) {
            return true;
        }
        let shards = timeout(PROBE_TIMEOUT, self.probe(store)).await.unwrap_or_else(|_| Some([].into()));
        let is_up = shards.is_none_or(|shards| shards.iter().any(|shard| shard.state == ShardState::Up));
        self.seen.fetch_or(is_up, Ordering::Relaxed);
        is_up
    }

    /// Notes whether the store has made a decision yet; a store in memory counts as reachable.
    pub fn note_reachable(&self, store: &ConfiguredStore) -> bool {
        let has_decided = || match store {
            ConfiguredStore::Shared(node) => {
                node.fleet.inner().stats().primaries.iter().any(|(_, stats)| decided(stats))
            }
            _ => true,
        };
        if !self.seen.load(Ordering::Relaxed) && has_decided() {
            self.seen.store(true, Ordering::Relaxed);
        }
        self.seen.load(Ordering::Relaxed)
    }
}

/// True if a script call got a reply other than an error.
fn decided(stats: &PrimaryStats) -> bool {
    stats.latency.count > stats.errors.iter().map(|(_, count)| count).sum()
}

fn probed((health, error): (Health, Option<StoreError>)) -> ProbedShard {
    let Health { address, phase, trouble, .. } = health;
    let state = match (phase, &error) {
        (Phase::Closed, Some(_)) => ShardState::Down, // the probe is newer than the breaker's state
        (phase, _) => state(phase),
    };
    let error = error.map(|error| trouble.unwrap_or_else(|| error.to_string()));
    ProbedShard { address: address.to_string(), state, error }
}
