//! Clocks that are set. Names begin with the row of the fault matrix.
//!
//! Only the offset between the store's clock and this node's matters, so the tests move this node's.

use std::sync::Arc;

use tollgate_core::Span;
use tollgate_lab::redis::RedisServer;
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::{Primary, RedisContext};

use crate::rig::{PATIENT, Shifted, config, consume, take, used};

async fn skewed_primary() -> (RedisServer, Arc<Shifted>, Arc<Primary>) {
    let (server, clock) = (RedisServer::start(), Shifted::new());
    let config = config(server.port());
    let primary = Primary::start(config.url.hosts[0].clone(), RedisContext::new(config, clock.clone()));
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    (server, clock, primary)
}

#[tokio::test]
async fn f34_a_call_that_seems_late_is_sent_once_more_by_the_right_clock() {
    let (_server, clock, primary) = skewed_primary().await;
    clock.shift_by_secs(-3600);
    assert!(take(&primary, consume(1), PATIENT).await.unwrap(), "the caller notices nothing");
    let stats = primary.stats();
    assert_eq!((stats.expired, stats.resent, stats.clock_steps), (1, 1, 1));
    assert_eq!(used(&primary, 1).await, 2);
    assert_eq!((primary.stats().expired, primary.health().phase), (1, Phase::Closed));
}

#[tokio::test]
async fn f33_a_clock_that_goes_back_is_noticed() {
    let (_server, clock, primary) = skewed_primary().await;
    clock.shift_by_secs(3600);
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    assert_eq!((primary.stats().expired, primary.stats().clock_steps), (0, 1));
    let store = primary.store_time().unwrap();
    let ours = crate::rig::now();
    assert!(store.since(ours).plus(ours.since(store)) < Span::from_secs(1), "the store's time is the real one");
    assert_eq!(used(&primary, 1).await, 2);
}
