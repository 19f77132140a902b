//! A node of a fleet whose store cannot be reached: it serves all the same, and says how.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use tollgate_config::{AuthSource, Config, StorePlace, StoreSettings};
use tollgate_server::run::Server;

use crate::rig::{Rig, call};

const RULES: &str = "
key_by: client_key
rules:
  - { name: shared, limit: { requests: 10, window: 1h, algorithm: fixed_window } }
  - { name: open, match: { tier: open }, on_fail: allow, replaces: [shared], limit: { requests: 1, window: 1h } }
  - { name: shut, match: { tier: shut }, on_fail: deny, replaces: [shared], limit: { requests: 1, window: 1h } }
  - { name: held, match: { tier: held }, replaces: [shared], limit: { algorithm: concurrency, slots: 4, slot_ttl: 10s } }
";

/// A store on a port without a listener, and the rest as for a fleet of two.
fn away(config: &mut Config, dir: PathBuf) {
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let place: StorePlace = format!("redis://user:hunter2@{nobody}").parse().expect("a URL");
    config.store = StoreSettings { place, nodes: Some(2), ..StoreSettings::default() };
    let secret = dir.join("secret");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("a file");
    config.secret_file = Some(secret);
}

async fn rig() -> Rig {
    Rig::open(RULES, away).await
}

async fn check(rig: &Rig, body: &str) -> (bool, String) {
    let answer = rig.post("/v1/check", body).await;
    assert_eq!(answer.status, 200, "{}", answer.head);
    let json = answer.json();
    (json["allowed"] == true, json["mode"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn decides_by_the_policy_of_each_rule_and_says_so() {
    let rig = rig().await;
    let mut admitted = 0;
    for _ in 0..10 {
        let (allowed, mode) = check(&rig, r#"{"client_key":"user:1"}"#).await;
        assert_eq!(mode, "fallback");
        admitted += u32::from(allowed);
    }
    assert_eq!(admitted, 5, "its share of two nodes");
    for _ in 0..3 {
        assert_eq!(check(&rig, r#"{"client_key":"user:1","tier":"open"}"#).await, (true, "open".to_owned()));
        assert_eq!(check(&rig, r#"{"client_key":"user:1","tier":"shut"}"#).await, (false, "closed".to_owned()));
    }
    let body = r#"{"client_key":"user:1","tier":"shut"}"#;
    let plain = rig.post("/v1/check", body).await;
    assert_eq!((plain.status, &plain.json()["error_code"]), (200, &"store_unavailable".into()));
    let refused = rig.post("/v1/check?status=429", body).await;
    assert_eq!(
        (refused.status, &refused.json()["error"]),
        (503, &"store_unavailable".into()),
        "no limit of the caller"
    );
    let wait: u64 = refused.field("retry-after").and_then(|wait| wait.parse().ok()).expect("seconds");
    assert!((1..=3).contains(&wait) && refused.field("ratelimit").is_none(), "{}", refused.head);
    let entries = |tier: &str| {
        let entries = format!(r#"[{{"key":"client_key","value":"user:1"}},{{"key":"tier","value":"{tier}"}}]"#);
        format!(r#"{{"domain":"default","descriptors":[{{"entries":{entries}}}]}}"#)
    };
    let refused = rig.post("/json", &entries("shut")).await;
    assert_eq!((refused.status, &refused.json()["overallCode"]), (503, &"OVER_LIMIT".into()), "{}", refused.head);
    assert_eq!(rig.post("/json", &entries("open")).await.status, 200);
    let page = call(&rig.admin, "GET", "/metrics", "", "").await;
    let page = String::from_utf8(page.body).expect("text");
    for line in [
        "tollgate_fallback_decisions_total{policy=\"local\"} 10",
        "tollgate_fallback_decisions_total{policy=\"allow\"} 4",
        "tollgate_fallback_decisions_total{policy=\"deny\"} 6",
        "tollgate_fleet_nodes 2",
    ] {
        assert!(page.lines().any(|own| own == line), "{line} is missing in\n{page}");
    }
    assert!(!page.contains("hunter2"));
}

#[tokio::test]
async fn a_batch_is_answered_in_order() {
    let rig = rig().await;
    let requests: Vec<String> = (0..500)
        .map(|number| match number % 3 {
            0 => format!(r#"{{"client_key":"user:{number}","tier":"open"}}"#),
            1 => format!(r#"{{"client_key":"user:{number}","tier":"shut"}}"#),
            _ => r#"{"client_key":"user:2","ip":"nowhere"}"#.to_owned(),
        })
        .collect();
    let answer = rig.post("/v1/check/batch", &format!("{{\"requests\":[{}]}}", requests.join(","))).await.json();
    let results = answer["results"].as_array().expect("a list");
    assert_eq!(results.len(), 500);
    for (number, result) in results.iter().enumerate() {
        match number % 3 {
            0 => assert_eq!(result["mode"], "open", "{number}: {result}"),
            1 => assert_eq!(result["mode"], "closed", "{number}: {result}"),
            _ => assert_eq!(result["code"], "bad_address", "{number}: {result}"),
        }
    }
}

#[tokio::test]
async fn is_ready_and_says_that_it_is_degraded() {
    let rig = rig().await;
    for _ in 0..3 {
        let ready = rig.call("GET", "/ready", "", "").await;
        assert_eq!(ready.status, 200);
        let said = String::from_utf8(ready.body).expect("text");
        assert_eq!(said, r#"{"ready":true,"degraded":true,"store":[{"shard":0,"state":"down"}]}"#);
    }
    let ready = call(&rig.admin, "GET", "/ready", "", "").await.json();
    let shard = &ready["store"][0];
    assert!(shard["address"].as_str().is_some_and(|address| address.starts_with("127.0.0.1:")), "{ready}");
    assert!(shard["error"].as_str().is_some_and(|error| !error.is_empty()), "{ready}");
    assert!(!ready.to_string().contains("hunter2"));
    assert_eq!(rig.call("GET", "/live", "", "").await.json().to_string(), r#"{"live":true}"#);
}

#[tokio::test]
async fn what_was_reserved_here_is_settled_here() {
    let rig = rig().await;
    let reserved = rig.post("/v1/reserve", r#"{"client_key":"user:1","cost":5}"#).await.json();
    assert_eq!((&reserved["allowed"], &reserved["mode"]), (&true.into(), &"fallback".into()));
    let receipt = reserved["reservation"].as_str().expect("a receipt");
    let settle = |rig: &Rig| {
        let address = rig.data.first().expect("an address").clone();
        let body = format!(r#"{{"reservation":"{receipt}","cost":1}}"#);
        async move { call(&address, "POST", "/v1/settle", "Content-Type: application/json\r\n", &body).await }
    };
    let other = Rig::open(RULES, away).await;
    let foreign = settle(&other).await;
    assert_eq!((foreign.status, foreign.json()["code"].as_str()), (409, Some("foreign_receipt")));
    assert_eq!(settle(&rig).await.json()["settled"], true);
    let (allowed, _) = check(&rig, r#"{"client_key":"user:1","cost":4}"#).await;
    assert!(allowed, "four of five came back");
    let held = rig.post("/v1/slots/acquire", r#"{"client_key":"user:1","tier":"held"}"#).await.json();
    let slot = held["slot"].as_str().expect("a slot");
    let renewed = rig.post("/v1/slots/renew", &format!(r#"{{"slot":"{slot}"}}"#)).await.json();
    assert_eq!(renewed["renewed"], true);
    let released = rig.post("/v1/slots/release", &format!(r#"{{"slot":"{slot}"}}"#)).await.json();
    assert_eq!(released["released"], true);
}

#[tokio::test]
async fn without_a_secret_of_its_own_it_does_not_start_and_says_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = Config::for_test();
    away(&mut config, dir.path().to_owned());
    config.secret_file = None;
    let error = Server::open(config, None).await.err().expect("no start");
    let text = format!("{error:#}");
    assert!(text.contains("cannot reach the store redis://user:…@127.0.0.1:"), "{text}");
    assert!(text.contains("secret_file"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_password_file_that_is_none_is_refused_by_the_name_of_its_setting() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = Config::for_test();
    away(&mut config, dir.path().to_owned());
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "\n").expect("a file");
    for (file, said) in [(dir.path().join("none"), "cannot read"), (empty, "is empty")] {
        config.store.place = "redis://127.0.0.1:1".parse().expect("a URL");
        config.store.password_file = Some(file);
        let error = Server::open(config.clone(), None).await.err().expect("no start");
        let text = format!("{error:#}");
        assert!(text.starts_with("store_password_file: ") && text.contains(said), "{text}");
    }
}

#[tokio::test]
async fn is_ready_for_requests_but_not_for_those_who_ask_for_its_health() {
    let rig = rig().await;
    assert_eq!(rig.call("GET", "/ready", "", "").await.status, 200);
    assert_eq!(rig.call("GET", "/healthcheck", "", "").await.status, 500, "the store was never there");
    rig.end().await;
}

#[tokio::test]
async fn drains_although_nobody_hears_of_it() {
    let mut config = Config::for_test();
    let dir = tempfile::tempdir().expect("a directory");
    away(&mut config, dir.path().to_owned());
    let server = Server::open(config, None).await.expect("a server");
    let drain = server.drain();
    let served = tokio::spawn(server.run());
    drain.begin();
    assert_eq!(tokio::time::timeout(Duration::from_secs(10), served).await.expect("in time").expect("no panic"), 0);
}

/// Forward-auth: the client did nothing wrong, and a proxy that would let it pass can be told otherwise.
#[tokio::test]
async fn a_proxy_is_told_that_the_store_is_away() {
    for (closed_status, expected) in [(503, 503), (429, 429)] {
        let rig = Rig::open(RULES, |config, dir| {
            away(config, dir);
            config.auth.source = AuthSource::Path;
            config.auth.closed_status = closed_status;
            config.auth.attributes = vec!["tier=x-tier".parse().expect("an attribute")];
        })
        .await;
        let refused = rig.call("GET", "/v1/auth/a", "X-Tier: shut\r\n", "").await;
        assert_eq!((refused.status, &refused.json()["error_code"]), (expected, &"store_unavailable".into()));
        assert!(refused.field("retry-after").is_some());
        assert_eq!(rig.call("GET", "/v1/auth/a", "X-Tier: open\r\n", "").await.status, 200);
    }
}
