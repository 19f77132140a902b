//! One truth for all nodes: limits, receipts, slots and names of buckets.

use tollgate_lab::redis::RedisServer;

use crate::node::node;
use crate::rig::Rig;

const RULES: &str = "
key_by: client_key
rules:
  - { name: exact, match: { tier: exact }, limit: { requests: 10, window: 1d, algorithm: fixed_window } }
  - { name: wide, match: { tier: wide }, limit: { requests: 1000, window: 1d, algorithm: fixed_window } }
  - { name: leased, match: { tier: leased }, consistency: leased, limit: { requests: 100000, window: 1d } }
  - { name: behind, match: { tier: behind }, consistency: async, limit: { requests: 100, window: 1d, algorithm: fixed_window } }
  - { name: own, match: { tier: own }, consistency: local, limit: { requests: 100, window: 1d, algorithm: fixed_window } }
  - { name: own-slots, match: { tier: own-slots }, consistency: local, limit: { algorithm: concurrency, slots: 20, slot_ttl: 10s } }
  - { name: slots, match: { tier: slots }, limit: { algorithm: concurrency, slots: 2, slot_ttl: 10s } }
";

#[tokio::test]
async fn p1_a_limit_holds_across_nodes() {
    let redis = RedisServer::start();
    let nodes = [node(&redis, RULES).await, node(&redis, RULES).await];
    let mut admitted = 0;
    for number in 0..30 {
        let answer = nodes[number % 2].check(r#"{"client_key":"user:1","tier":"exact"}"#).await;
        assert_eq!(answer["mode"], "store");
        admitted += u32::from(answer["allowed"] == true);
    }
    assert_eq!(admitted, 10);
    let hits = nodes[0].figure("tollgate_deny_cache_hits_total").await;
    assert!(hits > 0.0, "refusals are remembered");
}

#[tokio::test]
async fn a_batch_goes_to_the_store_together_and_comes_back_in_order() {
    let redis = RedisServer::start();
    let node = node(&redis, RULES).await;
    let before = node.figure("tollgate_redis_calls_total").await;
    let requests: Vec<String> =
        (0..600).map(|number| format!(r#"{{"client_key":"user:{}","tier":"exact"}}"#, number % 50)).collect();
    let answer = node.post("/v1/check/batch", &format!("{{\"requests\":[{}]}}", requests.join(","))).await.json();
    let results = answer["results"].as_array().expect("a list");
    assert_eq!(results.len(), 600);
    for user in 0..50 {
        let own = results.iter().skip(user).step_by(50);
        let admitted = own.filter(|result| result["allowed"] == true).count();
        assert_eq!(admitted, 10, "user:{user} asked twelve times");
    }
    let calls = node.figure("tollgate_redis_calls_total").await - before;
    assert!(calls <= 100.0, "600 checks took {calls} calls");
}

#[tokio::test]
async fn what_one_node_reserved_another_settles_once() {
    let redis = RedisServer::start();
    let (here, there) = (node(&redis, RULES).await, node(&redis, RULES).await);
    let left = || async { there.check(r#"{"client_key":"user:1","tier":"wide","cost":0}"#).await["remaining"].clone() };
    for (cost, settled, expected) in [
        (30, r#"{"settled":true,"refunded":1,"extended":0}"#, 970),
        (130, r#"{"settled":true,"refunded":0,"extended":1,"above":{"requests":30}}"#, 840),
    ] {
        let reserved = here.post("/v1/reserve", r#"{"client_key":"user:1","tier":"wide","cost":100}"#).await.json();
        let receipt = reserved["reservation"].as_str().expect("a receipt");
        let body = format!(r#"{{"reservation":"{receipt}","cost":{cost}}}"#);
        let first = there.post("/v1/settle", &body).await;
        assert_eq!(String::from_utf8_lossy(&first.body), settled);
        assert_eq!(left().await, expected);
        let again = here.post("/v1/settle", &body).await.json();
        assert_eq!((&again["refunded"], &again["extended"]), (&0.into(), &0.into()), "settled elsewhere");
        assert_eq!(left().await, expected);
    }
}

/// What was charged to a node's share is that node's to give back: another one never charged it.
#[tokio::test]
async fn what_a_node_reserved_of_its_share_only_that_node_settles() {
    let redis = RedisServer::start();
    let (here, there) = (node(&redis, RULES).await, node(&redis, RULES).await);
    let one = r#"{"client_key":"user:1","tier":"own","cost":5}"#;
    let used = async |rig: &Rig| {
        let left = rig.check(r#"{"client_key":"user:1","tier":"own","cost":0}"#).await;
        left["limit"].as_u64().unwrap_or(0) - left["remaining"].as_u64().unwrap_or(0)
    };
    for (cost, settled, expected) in [
        (0, r#"{"settled":true,"refunded":1,"extended":0}"#, 5),
        (7, r#"{"settled":true,"refunded":0,"extended":1,"above":{"requests":2}}"#, 17),
    ] {
        let reserved = here.post("/v1/reserve", one).await.json();
        assert_eq!(reserved["mode"], "local", "{reserved}");
        assert_eq!(there.check(one).await["allowed"], true);
        let before = used(&there).await;
        let body = format!(r#"{{"reservation":"{}","cost":{cost}}}"#, reserved["reservation"].as_str().expect("one"));
        let elsewhere = there.post("/v1/settle", &body).await;
        assert_eq!((elsewhere.status, &elsewhere.json()["code"]), (409, &"foreign_receipt".into()));
        assert_eq!(used(&there).await, before, "its share is what it was");
        assert_eq!(String::from_utf8_lossy(&here.post("/v1/settle", &body).await.body), settled);
        assert_eq!(here.post("/v1/settle", &body).await.json()["settled"], false, "once");
        let own = here.check(one).await;
        assert_eq!(own["limit"].as_u64().unwrap_or(0) - own["remaining"].as_u64().unwrap_or(0), expected, "{own}");
    }
}

/// A slot of a node's share is renewed and released where it is held.
#[tokio::test]
async fn a_slot_of_a_share_is_kept_by_its_node() {
    let redis = RedisServer::start();
    let (here, there) = (node(&redis, RULES).await, node(&redis, RULES).await);
    let held = here.post("/v1/slots/acquire", r#"{"client_key":"user:1","tier":"own-slots"}"#).await.json();
    let body = format!(r#"{{"slot":"{}"}}"#, held["slot"].as_str().expect("a slot"));
    assert_eq!(there.post("/v1/slots/renew", &body).await.status, 409);
    assert_eq!(here.post("/v1/slots/renew", &body).await.json()["renewed"], true);
    assert_eq!(there.post("/v1/slots/release", &body).await.status, 409);
    assert_eq!(here.post("/v1/slots/release", &body).await.json()["released"], true);
}

/// A receipt is paid by the store that was charged, and not out of what others have not told it yet.
#[tokio::test]
async fn an_asynchronous_receipt_is_honoured_once_by_all_nodes_together() {
    let redis = RedisServer::start();
    let nodes = [node(&redis, RULES).await, node(&redis, RULES).await];
    let one = |cost: u32| format!(r#"{{"client_key":"user:1","tier":"behind","cost":{cost}}}"#);
    let reserved = nodes[0].post("/v1/reserve", &one(20)).await.json();
    let body = format!(r#"{{"reservation":"{}","cost":0}}"#, reserved["reservation"].as_str().expect("a receipt"));
    let mut refunded = 0;
    for node in &nodes {
        assert_eq!(node.check(&one(10)).await["mode"], "async"); // pending, or told already
        refunded += node.post("/v1/settle", &body).await.json()["refunded"].as_u64().expect("a number");
    }
    assert_eq!(refunded, 1);
    for node in nodes {
        node.end().await; // tells what is left to tell
    }
    let watcher = node(&redis, RULES).await;
    let used = watcher.post("/v1/reserve", &one(1)).await.json();
    assert_eq!(used["remaining"], 79, "two checks of ten, and this one: {used}");
}

#[tokio::test]
async fn slots_are_renewed_and_released_at_any_node() {
    let redis = RedisServer::start();
    let (here, there) = (node(&redis, RULES).await, node(&redis, RULES).await);
    let acquire = r#"{"client_key":"user:1","tier":"slots"}"#;
    let held = here.post("/v1/slots/acquire", acquire).await.json();
    assert_eq!((&held["allowed"], &held["ttl_ms"]), (&true.into(), &10_000.into()));
    assert_eq!(there.post("/v1/slots/acquire", acquire).await.json()["allowed"], true);
    assert_eq!(there.post("/v1/slots/acquire", acquire).await.json()["allowed"], false, "two slots, whoever asks");
    let body = format!(r#"{{"slot":"{}"}}"#, held["slot"].as_str().expect("a slot"));
    assert_eq!(there.post("/v1/slots/renew", &body).await.json()["renewed"], true);
    assert_eq!(there.post("/v1/slots/release", &body).await.json()["released"], true);
    assert_eq!(here.post("/v1/slots/release", &body).await.json()["released"], false, "once");
    assert_eq!(here.post("/v1/slots/acquire", acquire).await.json()["allowed"], true);
}

/// The secret comes from the store, so nodes agree on keys, and an operator finds the bucket that `explain` names.
#[tokio::test]
async fn explain_names_the_key_in_the_store() {
    let redis = RedisServer::start();
    let (here, there) = (node(&redis, RULES).await, node(&redis, RULES).await);
    let body = r#"{"client_key":"user:1","tier":"exact"}"#;
    here.check(body).await;
    let rule = |explained: serde_json::Value| explained["rules"][0].clone();
    let (one, other) =
        (rule(here.post("/v1/explain", body).await.json()), rule(there.post("/v1/explain", body).await.json()));
    assert_eq!((&one["store_key"], &one["slot"]), (&other["store_key"], &other["slot"]));
    assert_eq!((&other["used_before"], &other["consistency"]), (&1.into(), &"exact".into()));
    let key = one["store_key"].as_str().expect("a key");
    assert_eq!(redis.client().number(&["EXISTS", key]), 1, "{key}");
    let own = here.post("/v1/explain", r#"{"client_key":"user:1","tier":"own"}"#).await.json();
    let own =
        own["rules"].as_array().expect("a list").iter().find(|rule| rule["applies"] == true).expect("one").clone();
    assert!(own["bucket"].is_string() && own.get("store_key").is_none(), "a share is in no store: {own}");
    let alone = Rig::start(RULES).post("/v1/explain", body).await.json();
    let rule = &alone["rules"][0];
    assert!(rule["bucket"].is_string() && rule.get("store_key").is_none(), "no store, no key in it: {rule}");
}

#[tokio::test]
async fn p28_a_node_that_ends_gives_its_leases_back() {
    let redis = RedisServer::start();
    let (leaving, staying) = (node(&redis, RULES).await, node(&redis, RULES).await);
    let body = r#"{"client_key":"user:1","tier":"leased"}"#;
    let mut leased = 0;
    for _ in 0..400 {
        leased += u32::from(leaving.check(body).await["mode"] == "lease");
    }
    assert!(leased > 200, "{leased} of 400 were decided by leases");
    assert!(leaving.figure("tollgate_lease_units_granted_total").await > 0.0);
    leaving.end().await;
    let used = staying.post("/v1/explain", body).await.json()["rules"][2]["used_before"].as_u64().expect("a number");
    assert!(used <= 401, "{used} units are gone for 400 checks");
}

/// The fleet usage shedder: a fifth of the slots of all nodes is for critical requests.
#[tokio::test]
async fn slots_that_are_reserved_are_reserved_at_all_nodes() {
    const SHEDDER: &str = "key_by: global
rules: [{ name: fleet, limit: { algorithm: concurrency, slots: 5, slot_ttl: 60s, reserved: 20% } }]\n";
    let redis = RedisServer::start();
    let nodes = [node(&redis, SHEDDER).await, node(&redis, SHEDDER).await];
    let any = r#"{"client_key":"a"}"#;
    let critical = r#"{"client_key":"a","attributes":{"priority":"critical"}}"#;
    let acquire = async |index: usize, body: &str| nodes[index % 2].post("/v1/slots/acquire", body).await.json();
    let mut receipts = Vec::new();
    for index in 0..4 {
        let held = acquire(index, any).await;
        assert_eq!((&held["allowed"], &held["remaining"]), (&true.into(), &(3 - index).into()), "{held}");
        receipts.push(held["slot"].as_str().expect("a slot").to_owned());
    }
    for index in 0..2 {
        let shed = acquire(index, any).await;
        assert_eq!((&shed["allowed"], &shed["error_code"]), (&false.into(), &"overload".into()), "{shed}");
    }
    let refused = nodes[1].post("/v1/slots/acquire?status=429", any).await;
    assert_eq!(refused.status, 503, "{}", refused.head);
    assert_eq!(acquire(1, critical).await["allowed"], true);
    assert_eq!(acquire(0, critical).await["allowed"], false, "now all are in use");
    let renewed = nodes[0].post("/v1/slots/renew", &format!(r#"{{"slot":"{}"}}"#, receipts[0])).await;
    assert_eq!(renewed.status, 200, "a slot that is held is renewed: {}", String::from_utf8_lossy(&renewed.body));
    nodes[0].post("/v1/slots/release", &format!(r#"{{"slot":"{}"}}"#, receipts[0])).await;
    assert_eq!(acquire(1, any).await["allowed"], false, "the free slot is the reserved one");
    assert_eq!(acquire(1, critical).await["allowed"], true);
}
