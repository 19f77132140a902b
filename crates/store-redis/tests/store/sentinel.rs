//! A primary that the Sentinels name, and its successor.

use tollgate_lab::redis::Sentinels;
use tollgate_store_redis::Health;

use super::*;

/// F14: no call is sent while there is no primary; the new one is found without a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f14_the_new_primary_is_found_after_a_failover() {
    let sentinels = Sentinels::start();
    let store = node(config(&sentinels.url())).await;
    let charge = charge(1, 1, window(1_000_000));
    assert!(take(&store, &[charge]).await.expect("the store answers").0.allowed);
    let old = sentinels.primary();
    sentinels.servers[old].stop();
    let short = Span::from_millis(50);
    let mut outcomes = Outcomes::new();
    while store.take(&[charge], short, &mut outcomes).await.is_ok() {}
    let new = sentinels.servers[1 - old].port();
    let promoted = tokio::task::block_in_place(|| sentinels.wait_for_failover_from(old));
    let is_new = |health: &Health| health.address.port == new && health.connected;
    let found = patience::Watch::start();
    until("the new primary is found", || store.stats().primaries.iter().any(|(health, _)| is_new(health)));
    assert!(
        found.elapsed().as_secs() < 3,
        "found {:?} after it was promoted, which took {promoted:?}",
        found.elapsed()
    );
    assert!(take(&store, &[charge]).await.expect("the new primary answers").0.allowed);
    sentinels.servers[old].cont();
}
