//! Two primaries of a cluster: slots on another server, and migrating slots.

use std::sync::Arc;
use std::time::Duration;
use tollgate_lab::patience;
use tollgate_lab::redis::{RedisClient, RedisServer};

use tollgate_store_redis::failure::{Failure, Redirected};
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::script::{ScriptAnswer, ScriptRequest};
use tollgate_store_redis::{HostPort, Layout, Primary, Redirect, RedisConfig};

use crate::rig::{PATIENT, config, consume, request, start, take};

fn text(client: &mut RedisClient, parts: &[&str]) -> String {
    let reply = client.call(parts);
    String::from_utf8_lossy(reply.text().unwrap_or_else(|| panic!("{parts:?}: {reply:?}"))).into_owned()
}

/// Slots 0 to 8191, and the others.
fn pair() -> (RedisServer, RedisServer) {
    let start = || RedisServer::start_with(&["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]);
    let (low, high) = (start(), start());
    text(&mut low.client(), &["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]);
    text(&mut high.client(), &["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]);
    text(&mut low.client(), &["CLUSTER", "MEET", "127.0.0.1", &high.port().to_string()]);
    for server in [&low, &high] {
        let mut client = server.client();
        patience::until("two servers are a cluster", Duration::from_secs(20), || {
            let info = text(&mut client, &["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_slots_assigned:16384")
        });
    }
    (low, high)
}

fn clustered(port: u16) -> RedisConfig {
    let mut config = config(port);
    config.url.layout = Layout::Cluster;
    config
}

/// A bucket whose slot is at least so high.
fn bucket(from: u16) -> u64 {
    (1..).find(|bucket| (from..from + 4096).contains(&BucketKey::of(&consume(*bucket)).slot())).unwrap()
}

fn elsewhere(asked: Result<ScriptAnswer, Failure<ScriptRequest>>) -> Redirected<ScriptRequest> {
    match asked {
        Err(Failure::Redirected(elsewhere)) => *elsewhere,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirections_give_the_question_back() {
    let (low, high) = pair();
    let (primary, other) = (start(clustered(low.port())), start(clustered(high.port())));
    let charge = consume(bucket(8192));
    let slot = BucketKey::of(&charge).slot();

    let moved = elsewhere(primary.ask(request(charge), slot, PATIENT).await);
    let to = HostPort::new("127.0.0.1", high.port());
    assert_eq!(moved.redirect, Redirect::Moved { slot, to: to.clone() });
    assert!(matches!(other.ask(moved.work, slot, PATIENT).await, Ok(ScriptAnswer::Taken { .. })));

    let charge = consume(bucket(0));
    let slot = BucketKey::of(&charge).slot();
    let (mut source, mut target) = (low.client(), high.client());
    let (from, into) = (text(&mut source, &["CLUSTER", "MYID"]), text(&mut target, &["CLUSTER", "MYID"]));
    text(&mut target, &["CLUSTER", "SETSLOT", &slot.to_string(), "IMPORTING", &from]);
    text(&mut source, &["CLUSTER", "SETSLOT", &slot.to_string(), "MIGRATING", &into]);
    let ask = elsewhere(primary.ask(request(charge), slot, PATIENT).await);
    assert_eq!(ask.redirect, Redirect::Ask { slot, to });
    let back = elsewhere(other.ask(ask.work, slot, PATIENT).await);
    assert!(matches!(back.redirect, Redirect::Moved { .. }), "without ASKING it is not its slot yet");
    assert!(matches!(other.ask_asking(back.work, slot, PATIENT).await, Ok(ScriptAnswer::Taken { .. })));
    assert_eq!((primary.stats().openings, other.stats().openings), (0, 0), "redirections are healthy answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_different_slots_travel_together_in_calls_of_their_own() {
    let (low, _high) = pair();
    let primary: Arc<Primary> = start(clustered(low.port()));
    let buckets: Vec<u64> = (1..).filter(|bucket| BucketKey::of(&consume(*bucket)).slot() < 8192).take(32).collect();
    take(&primary, consume(buckets[0]), PATIENT).await.unwrap();
    let before = primary.stats();
    let callers: Vec<_> = buckets
        .iter()
        .flat_map(|bucket| [*bucket, *bucket])
        .map(|bucket| {
            let primary = primary.clone();
            tokio::spawn(async move { take(&primary, consume(bucket), PATIENT).await })
        })
        .collect();
    for caller in callers {
        assert!(caller.await.unwrap().unwrap());
    }
    let stats = primary.stats();
    assert_eq!(stats.requests - before.requests, 64);
    assert!(stats.script_calls - before.script_calls >= 32, "one slot, one call");
    assert!(stats.flushes - before.flushes < 40, "but not one flight each: {}", stats.flushes - before.flushes);
}

#[tokio::test]
async fn a_cluster_without_slots_is_down() {
    let server = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    let primary = start(clustered(server.port()));
    let charge = consume(1);
    let asked = primary.ask(request(charge), BucketKey::of(&charge).slot(), PATIENT).await;
    assert_eq!(elsewhere(asked).redirect, Redirect::ClusterDown);
}
