//! The store as nodes use it: several of them, on one server, behind Sentinels, and on a cluster.

#![expect(clippy::indexing_slicing, reason = "a test that reads out of bounds has found its bug")]

mod cluster;
mod one;
mod sentinel;

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Ask, Charge, Digest, FixedWindow, Limit, Outcome, Span};
use tollgate_lab::patience;
use tollgate_store::{MonotonicClock, Outcomes, Store, StoreError, Taken};
use tollgate_store_redis::{RedisConfig, RedisStore};

/// Long enough for a machine that is busy with something else.
const WITHIN: Span = Span::from_secs(2);

fn config(url: &str) -> RedisConfig {
    RedisConfig { within: WITHIN, ..RedisConfig::new(url.parse().expect("a URL")) }
}

async fn node(config: RedisConfig) -> Arc<RedisStore> {
    let store = RedisStore::start(config, Arc::new(MonotonicClock::new()));
    store.ready(Span::from_secs(10)).await.expect("the store is there");
    Arc::new(store)
}

/// A window so long that none turns during a test.
fn window(limit: u64) -> Limit {
    Limit::FixedWindow(FixedWindow::new(limit, Span::from_secs(86_400 * 365)).expect("a limit"))
}

/// A charge on the bucket `number` of an identity.
fn charge(identity: u32, number: u64, limit: Limit) -> Charge {
    let bucket = Digest([u64::from(identity) << 32 | number, number]);
    Charge { identity, ..Charge::new(bucket, limit, 1) }
}

async fn take(store: &RedisStore, charges: &[Charge]) -> Result<(Taken, Vec<Outcome>), StoreError> {
    let mut outcomes = Outcomes::new();
    let taken = store.take(charges, WITHIN, &mut outcomes).await?;
    assert_eq!(outcomes.len(), charges.len(), "one outcome per charge");
    Ok((taken, outcomes.to_vec()))
}

async fn used(store: &RedisStore, charge: &Charge) -> u64 {
    let (_, outcomes) = take(store, &[Charge { ask: Ask::Peek(0), ..*charge }]).await.expect("the store answers");
    outcomes[0].used
}

/// Waits for a condition.
fn until(what: &str, holds: impl Fn() -> bool) {
    tokio::task::block_in_place(|| patience::until(what, Duration::from_secs(30), holds));
}
