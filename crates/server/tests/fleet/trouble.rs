//! The store goes, and comes back.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tollgate_config::{Config, StoreSettings};
use tollgate_lab::patience::eventually;
use tollgate_lab::redis::RedisServer;

use crate::log::Log;
use crate::node::{PATIENCE, node, store};
use crate::rig::{Rig, call};

const RULES: &str = "
key_by: client_key
rules:
  - { name: local, match: { tier: local }, limit: { requests: 100, window: 1d, algorithm: fixed_window } }
  - { name: shut, match: { tier: shut }, on_fail: deny, limit: { requests: 100, window: 1d } }
  - { name: slots, match: { tier: slots }, limit: { algorithm: concurrency, slots: 5, slot_ttl: 10s } }
";

const LOCAL: &str = r#"{"client_key":"user:1","tier":"local"}"#;

/// What `/ready` says once it says this about being degraded; an answer is good for a quarter of a second.
async fn ready(rig: &Rig, degraded: bool) -> Value {
    let ask = async || {
        let answer = call(&rig.admin, "GET", "/ready", "", "").await;
        let body = answer.json();
        assert_eq!((answer.status, &body["ready"]), (200, &true.into()), "{body}");
        Some(body).filter(|body| body["degraded"] == degraded)
    };
    eventually(if degraded { "degraded" } else { "no longer degraded" }, PATIENCE, ask).await
}

/// Waits until the node has left the mark by which it knows the data again.
async fn until_watched(redis: &RedisServer) {
    until_key(redis, "tg:*epoch*").await;
}

/// Waits until the store has a key of this pattern.
async fn until_key(redis: &RedisServer, pattern: &str) {
    let has = || redis.client().call(&["KEYS", pattern]).array().is_some_and(|keys| !keys.is_empty());
    eventually(pattern, PATIENCE, async || has().then_some(())).await;
}

#[tokio::test]
async fn f01_f02_decides_on_and_returns_to_the_store() {
    let mut redis = RedisServer::start();
    let rig = node(&redis, RULES).await;
    assert_eq!(rig.check(LOCAL).await["mode"], "store");
    ready(&rig, false).await;
    until_watched(&redis).await;
    redis.kill();
    rig.until_mode(LOCAL, "fallback").await;
    assert_eq!(rig.check(r#"{"client_key":"user:1","tier":"shut"}"#).await["mode"], "closed");
    let body = ready(&rig, true).await;
    assert_eq!(body["store"][0]["state"], "down", "{body}");
    assert_eq!(call(&rig.admin, "GET", "/live", "", "").await.status, 200);
    assert!(rig.figure("tollgate_redis_breaker").await > 1.0);
    assert!(rig.figure("tollgate_fallback_decisions_total").await >= 2.0);
    redis.restart();
    rig.until_mode(LOCAL, "store").await;
    ready(&rig, false).await;
    assert!(rig.figure("tollgate_store_epoch_changes_total").await >= 1.0, "its data is gone, and that is counted");
}

/// Halted it keeps its connections and says nothing: the worst it can do to a decision.
#[tokio::test]
async fn f03_a_decision_takes_no_longer_than_its_deadline() {
    let redis = RedisServer::start();
    let url = redis.url();
    let defaults = StoreSettings { place: url.parse().expect("a URL"), ..StoreSettings::default() };
    let rig = Rig::open(RULES, |config, _| config.store = defaults).await;
    rig.until_mode(LOCAL, "store").await;
    redis.stop();
    let batch = format!("{{\"requests\":[{}]}}", [LOCAL; 200].join(","));
    let start = Instant::now();
    let answer = rig.post("/v1/check/batch", &batch).await.json();
    let took = start.elapsed();
    redis.cont();
    let results = answer["results"].as_array().expect("a list");
    assert!(results.iter().all(|result| result["mode"] == "fallback"), "{answer}");
    // 50 ms, and what a busy machine adds; one after the other would be two seconds and more.
    assert!(took < Duration::from_millis(1000), "{took:?}");
}

/// The store may take two seconds here; `Request-Timeout` is shorter, and what it ended charges nothing later.
#[tokio::test]
async fn a_caller_in_a_hurry_is_answered_in_time_and_not_charged_by_the_store() {
    let redis = RedisServer::start();
    let rig = node(&redis, RULES).await;
    rig.until_mode(LOCAL, "store").await;
    redis.stop();
    let (fields, hurried) = ("Request-Timeout: 100ms\r\n", r#"{"client_key":"user:2","tier":"local"}"#);
    for _ in 0..10 {
        let start = Instant::now();
        let answer = rig.call("POST", "/v1/check", fields, hurried).await;
        assert_eq!((answer.status, &answer.json()["mode"]), (200, &"fallback".into()), "{}", answer.head);
        assert!(start.elapsed() < Duration::from_millis(1500), "{:?}", start.elapsed());
    }
    redis.cont();
    rig.until_mode(LOCAL, "store").await;
    let looked = rig.until_mode(r#"{"client_key":"user:2","tier":"local","cost":0}"#, "store").await;
    assert_eq!(looked["remaining"], 100, "{looked}");
}

#[tokio::test]
async fn what_the_store_must_remember_is_not_given_up_while_it_is_away() {
    let mut redis = RedisServer::start();
    let rig = node(&redis, RULES).await;
    let reserved = rig.post("/v1/reserve", r#"{"client_key":"user:1","tier":"local","cost":50}"#).await.json();
    let held = rig.post("/v1/slots/acquire", r#"{"client_key":"user:1","tier":"slots"}"#).await.json();
    redis.kill();
    rig.until_mode(LOCAL, "fallback").await;
    let settle = format!(r#"{{"reservation":"{}","cost":10}}"#, reserved["reservation"].as_str().expect("a receipt"));
    let slot = format!(r#"{{"slot":"{}"}}"#, held["slot"].as_str().expect("a slot"));
    for (path, body) in [("/v1/settle", &settle), ("/v1/slots/renew", &slot), ("/v1/slots/release", &slot)] {
        let answer = rig.post(path, body).await;
        assert_eq!(answer.status, 503, "{path}");
        assert_eq!(answer.field("Retry-After"), Some("1"), "{path}");
        assert_eq!(answer.field("Content-Type"), Some("application/problem+json"), "{path}");
        assert_eq!(answer.json()["code"], "store_unavailable", "{path}");
    }
    redis.restart();
    ready(&rig, false).await; // until then some calls are still turned away
    let settled = rig.post("/v1/settle", &settle).await;
    assert_eq!((settled.status, &settled.json()["settled"]), (200, &true.into()), "the same receipt");
}

/// A store without persistence that restarts has lost the secret that nodes share; those that start later must get the
/// same, or they would count apart.
#[tokio::test]
async fn nodes_that_start_after_the_data_was_lost_count_with_the_others() {
    let mut redis = RedisServer::start();
    let old = node(&redis, RULES).await;
    old.check(LOCAL).await;
    redis.kill();
    redis.restart();
    until_key(&redis, "tg:*secret").await;
    let new = node(&redis, RULES).await;
    let key = |explained: Value| explained["rules"][0]["store_key"].clone();
    let (one, other) = (old.post("/v1/explain", LOCAL).await.json(), new.post("/v1/explain", LOCAL).await.json());
    assert_eq!(key(one), key(other));
}

fn with_secret(url: &str, secret: Option<&str>) -> impl Future<Output = Rig> {
    let (store, secret) = (store(url), secret.map(ToOwned::to_owned));
    Rig::open(RULES, move |config, dir| {
        config.store = store;
        config.secret_file = secret.map(|text| {
            let file = dir.join("secret");
            std::fs::write(&file, text).expect("a file");
            file
        });
    })
}

async fn until_mismatch(rig: &Rig, expected: f64) {
    let ask = async || (rig.figure("tollgate_fleet_secret_mismatch").await == expected).then_some(());
    eventually("the gauge of other secrets", PATIENCE, ask).await;
}

/// Nodes with different secrets share nothing, however well the store works: that is told, to logs and metrics.
#[tokio::test]
async fn nodes_with_different_secrets_are_told_that_they_count_apart() {
    let log = Log::listen();
    for (first, second) in
        [(Some("one secret of 16 bytes"), Some("another, just as long")), (Some("a file's only"), None)]
    {
        let first = first.map(|text| format!("{text}, and more"));
        let redis = RedisServer::start();
        let old = with_secret(&redis.url(), first.as_deref()).await;
        until_key(&redis, "tg:{AAA}fingerprint").await;
        let ttl = redis.client().number(&["PTTL", "tg:{AAA}fingerprint"]);
        assert!((1..=60_000).contains(&ttl), "goes by itself: {ttl}");
        let twin = with_secret(&redis.url(), first.as_deref()).await;
        let other = with_secret(&redis.url(), second).await;
        until_mismatch(&other, 1.0).await;
        for agreeing in [&old, &twin] {
            assert_eq!(agreeing.figure("tollgate_fleet_secret_mismatch").await, 0.0);
        }
        let said = log.count("with another secret: they and this one use different keys");
        assert_eq!(said, 1, "once, then every minute");
        log.clear();
        redis.client().succeed(&["DEL", "tg:{AAA}fingerprint"]); // as if it had not been refreshed for a minute
        until_mismatch(&other, 0.0).await;
    }
}

/// The node does not know its share, because `nodes` is not set: the log says what to do.
#[tokio::test]
async fn a_node_that_starts_alone_in_the_dark_says_that_it_keeps_whole_limits() {
    let mut redis = RedisServer::start();
    redis.kill();
    for (nodes, warned) in [(None, 1), (Some(4), 0)] {
        let log = Log::listen();
        let url = redis.url();
        let rig = Rig::open(RULES, |config, dir| {
            let secret = dir.join("secret");
            std::fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("a file");
            config.store = StoreSettings { nodes, ..store(&url) };
            config.secret_file = Some(secret);
        });
        let answer = rig.await.check(LOCAL).await;
        assert_eq!((&answer["mode"], &answer["limit"]), (&"fallback".into(), &(100 / nodes.unwrap_or(1)).into()));
        assert_eq!(log.count("set `nodes`"), warned);
    }
}

#[tokio::test]
async fn with_a_secret_of_its_own_a_node_starts_before_its_store() {
    let mut redis = RedisServer::start();
    redis.kill();
    let url = redis.url();
    let rig = Rig::open(RULES, |config, dir| {
        let secret = dir.join("secret");
        std::fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("a file");
        (config.store, config.secret_file) = (store(&url), Some(secret));
    });
    let rig = rig.await;
    assert_eq!(rig.check(LOCAL).await["mode"], "fallback");
    redis.restart();
    rig.until_mode(LOCAL, "store").await;
}

/// F61: two nodes of one store decide by different files. Each names the other.
#[tokio::test]
async fn f61_nodes_that_decide_by_other_rules_are_named() {
    let redis = RedisServer::start();
    let named = async |name: &str, rules: &str| {
        let url = redis.url();
        let change = |config: &mut Config| {
            *config = Config { store: store(&url), node: Some(name.to_owned()), ..config.clone() }
        };
        Rig::open(rules, |config, _| change(config)).await
    };
    let other = RULES.replace("requests: 100,", "requests: 99,");
    assert_ne!(other, RULES);
    let (one, two) = (named("one", RULES).await, named("two", &other).await);
    for (node, other) in [(&one, "two"), (&two, "one")] {
        let line = format!("tollgate_fleet_rules_differ{{node=\"{other}-"); // names have a random end
        let ask = async || {
            let page = String::from_utf8(call(&node.admin, "GET", "/metrics", "", "").await.body).expect("text");
            page.lines().any(|own| own.starts_with(&line)).then_some(())
        };
        eventually(&line, Duration::from_secs(60), ask).await;
    }
}
