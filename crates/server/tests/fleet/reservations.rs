//! The vectors of reservations over HTTP: in memory, and on nodes that share Redis, Valkey or a cluster.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tollgate_config::{Config, StoreSettings};
use tollgate_lab::redis::{Flavour, RedisCluster, RedisServer};
use tollgate_testkit::vectors::{ReservationCall, ReservationVectors, VectorReport};

use crate::node::store;
use crate::rig::Rig;

const VECTORS: &str = include_str!("../../../testkit/vectors/reservations.json");
const STEPS: usize = 89;

fn vectors() -> ReservationVectors {
    ReservationVectors::parse(VECTORS).unwrap_or_else(|error| panic!("{error}"))
}

fn path(op: &str) -> String {
    match op {
        "acquire" | "renew" | "release" => format!("/v1/slots/{op}"),
        op => format!("/v1/{op}"),
    }
}

async fn ask(node: &Rig, client: &str, call: ReservationCall) -> Value {
    let ReservationCall { op, receipt, cost, costs } = call;
    let mut body = Map::new();
    match receipt {
        Some(receipt) => body.insert("reservation".to_owned(), json!(receipt)),
        None => body.insert("client_key".to_owned(), json!(client)),
    };
    body.extend(cost.map(|cost| ("cost".to_owned(), json!(cost))));
    if !matches!(op.as_str(), "renew" | "release") {
        body.insert("costs".to_owned(), json!(costs));
    }
    node.post(&path(&op), &Value::Object(body).to_string()).await.json()
}

async fn left(node: &Rig, client: &str) -> Value {
    let costs = json!({ "input_tokens": 0, "output_tokens": 0 });
    let body = json!({ "client_key": client, "cost": 0, "costs": costs, "peek": true });
    let answer = node.post("/v1/check", &body.to_string()).await.json();
    let rules = answer["rules"].as_array().into_iter().flatten();
    rules.map(|rule| (rule["rule"].as_str().unwrap_or_default().to_owned(), rule["remaining"].clone())).collect()
}

/// Every call goes to the next node.
async fn agrees(nodes: &[Rig]) {
    let mut report = VectorReport::default();
    for case in &vectors().cases {
        let mut calls = 0;
        let call = async |call: ReservationCall| {
            calls += 1;
            ask(&nodes[calls % nodes.len()], &case.name, call).await
        };
        case.run(call, async || left(&nodes[0], &case.name).await, &mut report).await;
    }
    let shown: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    assert_eq!((report.passed, report.failed), (STEPS, 0), "{}", shown.join("\n"));
}

/// Two nodes over a store. They remember no refusals, because a settlement at one node makes room at the other.
async fn pair(url: &str) -> [Rig; 2] {
    let rules = vectors().rules;
    let node = || {
        let settings = StoreSettings { deny_cache_ttl: Duration::ZERO, ..store(url) };
        Rig::open(&rules, |config, dir| {
            let secret = dir.join("secret");
            std::fs::write(&secret, "the same secret for both of them").expect("a file");
            *config = Config { store: settings, secret_file: Some(secret), ..config.clone() };
        })
    };
    [node().await, node().await]
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_in_memory_agree_with_their_vectors() {
    agrees(&[Rig::start(&vectors().rules)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_in_redis_agree_with_their_vectors() {
    let redis = RedisServer::start();
    agrees(&pair(&redis.url()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_in_valkey_agree_with_their_vectors() {
    let valkey = RedisServer::of(Flavour::Valkey);
    agrees(&pair(&valkey.url()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_in_a_cluster_agree_with_their_vectors() {
    let cluster = RedisCluster::start();
    agrees(&pair(&cluster.url()).await).await;
}

/// How often Redis ran a script.
fn script_calls(redis: &RedisServer) -> u64 {
    let statistics = redis.client().fields(&["INFO", "commandstats"]);
    let calls = |command: &str| {
        let line = statistics.get(command)?;
        line.split(',').find_map(|part| part.strip_prefix("calls="))?.parse::<u64>().ok()
    };
    ["cmdstat_evalsha", "cmdstat_eval"].into_iter().filter_map(calls).sum()
}

const FOUR: &str = "key_by: client_key
rules:
  - { name: requests, limit: { requests: 100, window: 1m } }
  - { name: input, meter: input_tokens, limit: { amount: 30000, window: 1m, algorithm: fixed_window } }
  - { name: credits, meter: output_tokens, quota: { amount: 100000, every: month } }
  - { name: streams, limit: { algorithm: concurrency, slots: 3, slot_ttl: 60s } }
";

#[tokio::test(flavor = "multi_thread")]
async fn three_meters_and_a_slot_are_one_script_call() {
    let redis = RedisServer::start();
    let node = Rig::open(FOUR, |config, _| *config = Config { store: store(&redis.url()), ..config.clone() }).await;
    let reserve = async || {
        let body = json!({ "client_key": "user:1", "costs": { "input_tokens": 10, "output_tokens": 20 } });
        node.post("/v1/reserve", &body.to_string()).await.json()
    };
    assert_eq!(reserve().await["allowed"], json!(true)); // loads the script
    let before = script_calls(&redis);
    let answer = reserve().await;
    assert_eq!((&answer["allowed"], answer["rules"].as_array().map(Vec::len)), (&json!(true), Some(4)), "{answer}");
    assert_eq!(script_calls(&redis) - before, 1);
    let receipt = answer["reservation"].clone();
    let more = json!({ "reservation": receipt, "costs": { "output_tokens": 5 } });
    assert_eq!(node.post("/v1/extend", &more.to_string()).await.json()["allowed"], json!(true));
    assert_eq!(script_calls(&redis) - before, 2, "an extension with its turn and its slot, too");
}
