//! Tollgate on Redis: builds stores and nodes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::anyhow;
use tollgate_core::Span;
use tollgate_engine::{Engine, EngineConfig};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::{Fleet, FleetConfig, MonotonicClock};
use tollgate_store_redis::{PrimaryStats, RedisConfig, RedisStore, StoreUrl};

/// An engine that asks Redis every time.
pub type Exact = Engine<RedisStore>;
/// An engine of a fleet: decides locally where its rules allow it.
pub type FleetEngine = Engine<Fleet<RedisStore>>;

/// How long leased units may be spent.
pub const LEASE_TTL: Duration = Duration::from_secs(1);
/// The interval of the upkeep of leases.
const UPKEEP: Duration = Duration::from_millis(50);
/// Timeout of the first connection.
const CONTACT: Span = Span::from_secs(5);
/// Timeout of a decision: with the default of 25 ms, other processes on the core of Redis would turn checks into
/// fallbacks.
const PATIENCE: Span = Span::from_secs(1);

/// Rules from YAML. All nodes have to make the same keys: the secret is fixed.
pub fn rules(text: &str) -> anyhow::Result<RuleSet> {
    let file = tollgate_rules::read("bench", text).map_err(|report| anyhow!("{report}"))?;
    RuleSet::compile(&[file], &CompileOptions::reproducible()).map_err(|problems| anyhow!("{problems:?}"))
}

/// An engine on a store.
pub async fn exact(url: &str, rules: RuleSet) -> anyhow::Result<Arc<Exact>> {
    let config = EngineConfig { within: PATIENCE, deadline: PATIENCE, ..EngineConfig::default() };
    Ok(Arc::new(Engine::new(store(url, PATIENCE, 1).await?, rules).with_config(config)))
}

/// The same with the default timeout.
pub async fn exact_by_default(url: &str, rules: RuleSet) -> anyhow::Result<Arc<Exact>> {
    let config = EngineConfig::default();
    Ok(Arc::new(Engine::new(store(url, config.within, 1).await?, rules).with_config(config)))
}

/// Why a store did not decide, by cause; `None` if it always did.
pub fn troubles(store: &RedisStore) -> Option<String> {
    let all = store.stats().primaries.into_iter().fold(PrimaryStats::default(), |sum, (_, stats)| sum.and(&stats));
    let kinds = [
        ("came too late", all.expired),
        ("unanswered", all.indeterminate),
        ("never sent", all.withdrawn),
        ("too many waiting", all.saturated),
        ("breaker open", all.turned_away),
    ];
    let counted: Vec<String> =
        kinds.iter().filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{kind}: {count}")).collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

/// One node of `nodes`, with its upkeep.
pub async fn node(url: &str, number: u64, nodes: u64, rules_text: &str) -> anyhow::Result<Arc<FleetEngine>> {
    let clock = Arc::new(MonotonicClock::new());
    let config = FleetConfig { nodes, lease_ttl: Span::from(LEASE_TTL), ..FleetConfig::default() };
    let fleet = Fleet::new(store(url, PATIENCE, number).await?, config, clock.clone());
    let config = EngineConfig { nodes, within: PATIENCE, deadline: PATIENCE, ..EngineConfig::default() };
    let engine = Arc::new(Engine::with_clock(fleet, rules(rules_text)?, clock).with_config(config));
    tokio::spawn(tend(Arc::downgrade(&engine)));
    Ok(engine)
}

async fn store(url: &str, within: Span, number: u64) -> anyhow::Result<RedisStore> {
    let url: StoreUrl = url.parse().map_err(|error| anyhow!("{url}: {error}"))?;
    // All users are new at first, and none of them is meant to share a bucket.
    let node = format!("bench-{number}");
    let config = RedisConfig { node, within, new_keys_per_second: u64::MAX, ..RedisConfig::new(url) };
    let store = RedisStore::start(config, Arc::new(MonotonicClock::new()));
    store.ready(CONTACT).await.map_err(|error| anyhow!("{error}"))?;
    Ok(store)
}

/// Runs the upkeep of a node until it is dropped.
async fn tend(node: Weak<FleetEngine>) {
    let mut ticks = tokio::time::interval(UPKEEP);
    loop {
        ticks.tick().await;
        let Some(node) = node.upgrade() else { return };
        node.store().upkeep().await;
    }
}
