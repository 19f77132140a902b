//! Whether the store decides: asked with the script that decides, not with a ping that stays green while scripts fail.

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

/// How long an answer is good for: whoever asks often learns the same, and the store is not asked more often for it.
const CACHED_FOR: Duration = Duration::from_millis(250);
/// How long the store may take to say how it is, for those who only want to know whether it was ever there.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Asks the store how it is.
#[derive(Debug, Default)]
pub struct StoreProbe {
    last: Mutex<Option<(Instant, Arc<[ProbedShard]>)>>,
    /// The store was there once.
    seen: AtomicBool,
}

/// One primary server, when it was last asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedShard {
    /// Where it is.
    pub address: String,
    /// Whether it answers.
    pub state: ShardState,
    /// Why not.
    pub error: Option<String>,
}

impl StoreProbe {
    /// Every primary that is known of a shared store; `None` for a store in memory, which cannot be away.
    pub async fn probe(&self, store: &ConfiguredStore) -> Option<Arc<[ProbedShard]>> {
        let ConfiguredStore::Shared(node) = store else { return None };
        let mut last = self.last.lock().await; // one at a time: others wait for the same answer
        if let Some((at, known)) = &*last
            && at.elapsed() < CACHED_FOR
        {
            return Some(known.clone());
        }
        let found: Arc<[ProbedShard]> = node.fleet.inner().probe().await.into_iter().map(probed).collect();
        *last = Some((Instant::now(), found.clone()));
        Some(found)
    }

    /// Whether the store was there since the start. It is asked only while nobody knows of any decision that it made.
    pub async fn was_reachable(&self, store: &ConfiguredStore) -> bool {
        if self.note_reachable(store) {
            return true;
        }
        let shards = timeout(PROBE_TIMEOUT, self.probe(store)).await.unwrap_or_else(|_| Some([].into()));
        let is_up = shards.is_none_or(|shards| shards.iter().any(|shard| shard.state == ShardState::Up));
        self.seen.fetch_or(is_up, Ordering::Relaxed);
        is_up
    }

    /// Notes whether the store has decided anything yet; also a store in memory is there.
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

/// Whether a script was answered with anything but a refusal.
fn decided(stats: &PrimaryStats) -> bool {
    stats.latency.count > stats.refusals.iter().map(|(_, count)| count).sum()
}

fn probed((health, error): (Health, Option<StoreError>)) -> ProbedShard {
    let Health { address, phase, trouble, .. } = health;
    let state = match (phase, &error) {
        (Phase::Closed, Some(_)) => ShardState::Down, // it was asked just now; the breaker may not know yet
        (phase, _) => state(phase),
    };
    let error = error.map(|error| trouble.unwrap_or_else(|| error.to_string()));
    ProbedShard { address: address.to_string(), state, error }
}
