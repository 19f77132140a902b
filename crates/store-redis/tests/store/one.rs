//! One server.

use tollgate_core::{Receipt, Source};
use tollgate_store_redis::Bell;
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::key::Key;
use tollgate_testkit::redis::{Flavour, Server};

use super::*;

/// E3: the only form of a decision in Redis that may be called exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e03_many_callers_at_many_nodes_pass_exactly_as_often_as_allowed() {
    for flavour in Flavour::ALL {
        exactly_as_often_as_allowed(&Server::of(flavour)).await;
    }
}

async fn exactly_as_often_as_allowed(server: &Server) {
    let limit = charge(1, 1, window(100));
    let mut callers = Vec::new();
    for _ in 0..4 {
        let store = node(config(&server.url())).await;
        for _ in 0..8 {
            let store = store.clone();
            callers.push(tokio::spawn(async move {
                let mut passed = 0;
                for _ in 0..40 {
                    let (taken, _) = take(&store, &[limit]).await.expect("the store answers");
                    passed += u64::from(taken.allowed);
                }
                passed
            }));
        }
    }
    let mut passed = 0;
    for caller in callers {
        passed += caller.await.expect("callers do not panic");
    }
    assert_eq!(passed, 100);
}

#[tokio::test]
async fn a_receipt_made_by_one_node_is_honoured_once_by_any() {
    let server = Server::start();
    let (one, other) = (node(config(&server.url())).await, node(config(&server.url())).await);
    let charge = charge(1, 1, window(5));
    let (_, outcomes) = take(&one, &[charge]).await.expect("the store answers");
    let receipt = || [Receipt { number: Some(77), ..Receipt::of(&charge, &outcomes[0]) }];
    assert_eq!(other.give_back(&receipt()).await, Ok(1));
    assert_eq!(one.give_back(&receipt()).await, Ok(0));
    assert_eq!(used(&one, &charge).await, 0);
}

#[tokio::test]
async fn all_nodes_find_the_same_secret() {
    let server = Server::start();
    let (one, other) = (node(config(&server.url())).await, node(config(&server.url())).await);
    let secret = one.secret().await.expect("the store answers");
    assert_eq!(other.secret().await, Ok(secret));
    assert_ne!(secret, [0; 16]);
}

#[tokio::test]
async fn a_flood_of_identities_shares_the_overflow_bucket_and_resets_nobody() {
    let server = Server::start();
    let store = node(RedisConfig { new_keys_per_second: 5, ..config(&server.url()) }).await;
    let victim = charge(1, 1, window(1));
    assert!(take(&store, &[victim]).await.expect("the store answers").0.allowed);
    let (mut own, mut shared, mut refused) = (0, 0u64, 0);
    for number in 0..200 {
        let (taken, outcomes) = take(&store, &[charge(2 + number, 1, window(1))]).await.expect("the store answers");
        match outcomes[0].source {
            Source::Overflow => shared += 1,
            _ => own += 1,
        }
        refused += u32::from(!taken.allowed);
    }
    assert!((45..100).contains(&own), "{own} buckets of their own: fifty at once, then five a second");
    assert!(shared > 0 && refused > 0, "{shared} in the overflow bucket, which has an end: {refused}");
    assert!(!take(&store, &[victim]).await.expect("the store answers").0.allowed, "whoever has a bucket keeps it");
    assert_eq!(store.stats().slots.overflowed, shared);
}

/// What somebody else put under a key of ours is nobody's bucket, and harms nobody but whoever it stands for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_value_under_one_key_harms_nobody_else() {
    let server = Server::start();
    let store = node(config(&server.url())).await;
    let spoilt = charge(1, 1, window(1_000));
    server.client().succeed(&["RPUSH", &Key::of(&spoilt).to_string(), "foreign"]);
    let mut callers = Vec::new();
    for number in 0..16 {
        let store = store.clone();
        callers.push(tokio::spawn(async move {
            for _ in 0..50 {
                let own = take(&store, &[charge(2 + number, 1, window(1_000))]).await;
                assert!(own.is_ok_and(|(taken, _)| taken.allowed), "caller {number} suffers for another");
                assert!(take(&store, &[spoilt]).await.is_err(), "a list is no window");
            }
        }));
    }
    for caller in callers {
        caller.await.expect("nobody suffers");
    }
    let (health, stats) = store.stats().primaries.remove(0);
    assert_eq!((health.phase, stats.openings), (Phase::Closed, 0));
}

#[tokio::test]
async fn forgotten_buckets_are_unused() {
    let server = Server::start();
    let store = node(config(&server.url())).await;
    let charge = charge(1, 1, window(5));
    let _ = take(&store, &[charge]).await.expect("the store answers");
    store.forget(&[charge]).await.expect("the store answers");
    assert_eq!(used(&store, &charge).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bell_that_one_node_rings_is_heard_by_the_others_also_after_the_line_was_cut() {
    let server = Server::of(Flavour::ALL[0]);
    let (one, other) = (node(config(&server.url())).await, node(config(&server.url())).await);
    let mut bell = other.bell();
    let heard = async |bell: &mut Bell<'_>| tokio::time::timeout(Duration::from_secs(10), bell.heard()).await.is_ok();
    assert!(heard(&mut bell).await, "whoever begins to listen may have missed something");
    one.ring().await;
    assert!(heard(&mut bell).await);
    server.client().succeed(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert!(heard(&mut bell).await, "whoever lost the line may have missed something");
    one.ring().await;
    assert!(heard(&mut bell).await);
}
