//! What the watch task notices. Names begin with the row of the fault matrix.

use tollgate_lab::patience::promised;
use tollgate_lab::redis::RedisServer;
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::key::BucketKey;

use crate::rig::{PATIENT, config, consume, request, take, until, warm};

#[tokio::test]
async fn f21_an_emptied_store_is_noticed_within_a_second() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    until("the first look", || primary.nodes().is_some()).await;
    assert_eq!(primary.stats().epoch_changes, 0);
    server.client().call(&["FLUSHALL"]);
    let noticed = until("noticed", || primary.stats().epoch_changes == 1);
    promised("an emptied store is noticed", std::time::Duration::from_secs(1), noticed).await;
    assert_eq!(primary.health().phase, Phase::Closed);
}

#[tokio::test]
async fn nodes_are_counted_and_those_that_leave_are_not() {
    let server = RedisServer::start();
    let first = warm(config(server.port())).await;
    until("alone", || first.nodes() == Some(1)).await;
    let second = warm(config(server.port())).await;
    until("both", || first.nodes() == Some(2) && second.nodes() == Some(2)).await;
    second.leave().await;
    second.retire();
    until("alone again", || first.nodes() == Some(1)).await;
}

#[tokio::test]
async fn nodes_that_died_are_dropped() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    until("alone", || primary.nodes() == Some(1)).await;
    let key = "tg:{AAA}nodes";
    let mut client = server.client();
    let now = primary.store_time().unwrap().nanos() / 1_000_000_000;
    client.call(&["ZADD", key, &(now - 8).to_string(), "slow", &(now - 20).to_string(), "dead"]);
    until("one is counted, one is dropped", || primary.nodes() == Some(2)).await;
    until("and later both", || primary.nodes() == Some(1)).await;
}

#[tokio::test]
async fn keys_of_our_own_do_not_stay_for_ever() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    until("seen", || primary.nodes().is_some()).await;
    let mut client = server.client();
    let keys = client.call(&["KEYS", "*"]);
    let keys = keys.array().unwrap();
    assert!((2..=3).contains(&keys.len()), "{keys:?}");
    for key in keys {
        let key = std::str::from_utf8(key.text().unwrap()).unwrap();
        assert!(key.starts_with("tg:"), "{key}");
        assert!(client.call(&["PTTL", key]).integer().unwrap() > 0, "{key}");
    }
}

#[tokio::test]
async fn eviction_is_known() {
    let server = RedisServer::start_with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let primary = warm(config(server.port())).await;
    until("the policy is known", || primary.health().policy == "allkeys-lru").await;
}

/// How often scripts were called by hash.
fn calls(server: &RedisServer) -> String {
    let statistics = server.client().fields(&["INFO", "commandstats"]);
    statistics
        .get("cmdstat_evalsha")
        .map(|line| line.split(',').next().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

/// Also a writable replica: its counts are lost with the next synchronisation.
#[tokio::test]
async fn f25_nothing_is_decided_by_a_server_that_is_known_to_be_a_replica() {
    let (server, other) = (RedisServer::start_with(&["--replica-read-only", "no"]), RedisServer::start());
    let primary = warm(config(server.port())).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    server.client().succeed(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
    until("a replica", || primary.health().replica).await;
    let before = calls(&server);
    for bucket in 0..50 {
        assert!(primary.ask(request(consume(bucket)), 0, PATIENT).await.is_err());
    }
    assert_eq!(calls(&server), before, "nothing is asked there");
    server.client().succeed(&["REPLICAOF", "NO", "ONE"]);
    until("a primary again", || !primary.health().replica).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
}

/// F32: also buckets that are not touched any more.
#[tokio::test]
async fn f32_idle_buckets_without_an_expiry_are_found() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    let bucket = BucketKey::of(&consume(1)).to_string();
    let mut client = server.client();
    client.succeed(&["SET", &bucket, "1700000000000000000"]);
    let (window, secret) = ("tg:{HAA}AAAAAAAAAAAAAAAAAAAAAB", "tg:{AAA}secret");
    client.succeed(&["SET", window, "twelve bytes"]);
    client.succeed(&["SET", secret, "kept"]);
    until("one is gone, one will be", || {
        client.call(&["PTTL", &bucket]).integer() == Some(-2) && client.call(&["PTTL", window]).integer() > Some(0)
    })
    .await;
    // Counted when the reply is read, after the server has done it.
    until("both are counted", || primary.stats().mended >= 2).await;
    assert_eq!(primary.stats().mended, 2);
    assert_eq!(client.call(&["PTTL", secret]).integer(), Some(-1), "what is no bucket is left alone");
}
