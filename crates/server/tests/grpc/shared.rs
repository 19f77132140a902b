//! A store that has to be waited for: every call gets a task, streams go to it together, and what is late is told so.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::timeout;
use tollgate_config::StoreSettings;
use tollgate_lab::redis::RedisServer;
use tollgate_proto::v1::checked::Result as Checked;
use tollgate_proto::v1::{BatchCheckRequest, StreamChecksRequest};
use tonic::Code;

use crate::raw::{CHECK, Raw, framed};
use crate::rig::{FULL, PATIENCE, RULES, Rig, about, check};
use crate::wire::sent;

async fn rig(redis: &RedisServer) -> Rig {
    Rig::open(RULES, |config, _| config.store = patient(&redis.url())).await
}

/// Settings of a store at this URL, with patience for a machine that is busy with other tests.
pub fn patient(url: &str) -> StoreSettings {
    let (timeout, decision_deadline) = (Duration::from_secs(5), Duration::from_secs(10));
    StoreSettings { place: url.parse().unwrap(), timeout, decision_deadline, ..StoreSettings::default() }
}

#[tokio::test]
async fn checks_batches_and_streams_are_decided_by_the_store() {
    let redis = RedisServer::start();
    let rig = rig(&redis).await;
    let mut client = rig.client().await;
    let first = check(&mut client, about("a")).await;
    assert_eq!((first.remaining, first.mode.as_str()), (Some(FULL - 1), "store"));

    let batch = BatchCheckRequest { requests: vec![about("a"); 100] };
    let results = client.batch_check(batch).await.unwrap().into_inner().results;
    assert_eq!(results.len(), 100);
    assert_eq!(rig.left_to("a").await, FULL - 101);

    let (ask, asked) = sent();
    for id in 0..300 {
        let client_key = if id % 3 == 0 { "b" } else { "c" };
        ask.send(StreamChecksRequest { id, request: Some(about(client_key)) }).unwrap();
    }
    drop(ask);
    let mut answers = client.stream_checks(asked).await.unwrap().into_inner();
    let mut count: HashMap<u64, u32> = HashMap::new();
    for id in 0..300 {
        let answer = timeout(PATIENCE, answers.message()).await.unwrap().unwrap().expect("an answer");
        let Some(Checked::Decision(decision)) = answer.checked.unwrap().result else { panic!("no decision") };
        assert_eq!(answer.id, id, "in order, whatever the store answered first");
        *count.entry(u64::from(id % 3 == 0)).or_default() += u32::from(decision.allowed);
    }
    assert_eq!((count[&1], count[&0]), (100, 200));
    assert_eq!((rig.left_to("b").await, rig.left_to("c").await), (FULL - 100, FULL - 200));
    assert!(answers.message().await.unwrap().is_none());
}

#[tokio::test]
async fn a_caller_in_a_hurry_is_answered_without_the_store_and_not_charged_there() {
    let redis = RedisServer::start();
    let rig = rig(&redis).await;
    rig.answers_others().await;
    redis.stop();
    let raw = Raw::connect(&rig).await;
    for _ in 0..20 {
        let answer = raw.call(CHECK, &[("grpc-timeout", "100m")], framed(&about("a"))).await;
        // In time from this node's share, unless this machine is too busy to be in time.
        assert!(matches!(answer.code, Some(Code::Ok | Code::DeadlineExceeded)), "{answer:?}");
    }
    redis.cont();
    rig.answers_others().await;
    assert_eq!(rig.left_to("a").await, FULL, "the store charges nothing for callers that have gone");
}

#[tokio::test]
async fn a_rule_that_refuses_while_the_store_is_away_says_why() {
    let redis = RedisServer::start();
    let place = redis.url().parse().unwrap();
    let rules = "rules: [{ name: shut, on_fail: deny, key_by: client_key, limit: { requests: 10, window: 1h } }]";
    let rig = Rig::open(rules, |config, _| config.store = StoreSettings { place, ..StoreSettings::default() }).await;
    let mut client = rig.client().await;
    drop(redis);
    let refused = check(&mut client, about("a")).await;
    assert_eq!((refused.allowed, refused.mode.as_str()), (false, "closed"));
    assert_eq!((refused.error_code.as_str(), refused.retry_after_ms), ("store_unavailable", Some(1000)));
}
