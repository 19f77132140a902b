//! What operators see of the traffic: only that of their namespaces, and no client key in plain text.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate_control::record::Role;
use tollgate_core::{Attribute, ManualClock, Request, Span};
use tollgate_engine::{Engine, rules_from_yaml};
use tollgate_service::ServiceObserver;
use tollgate_service::traffic::TrafficMonitor;
use tollgate_store::Memory;

use crate::rig::{JSON, Rig};

/// An engine whose decisions a monitor watches, in two namespaces with the same rule.
struct Callers {
    engines: [Engine<Memory>; 2],
}

impl Callers {
    fn new(clock: &ManualClock, traffic: &Arc<TrafficMonitor>) -> Callers {
        let engine = |namespace: &str, number: u64| {
            let rules = format!(
                "namespace: {namespace}\nrules:\n  - {{ name: orders, key_by: client_key, limit: {{ requests: 3, window: 1m, algorithm: token_bucket }} }}\n"
            );
            let observer = ServiceObserver::new(Arc::default(), None).with_traffic(Some(traffic.clone()));
            let engine = Engine::on_clock(rules_from_yaml(&rules).unwrap(), clock.clone()).with_observer(observer);
            engine.swap_rules_as(rules_from_yaml(&rules).unwrap(), number);
            engine
        };
        Callers { engines: [engine("a", 2), engine("b", 3)] }
    }

    /// So many requests of a client of `a` (0) or `b` (1).
    fn ask(&self, namespace: usize, client: &str, times: usize) {
        let request = Request::new().in_namespace(["a", "b"][namespace]).with(Attribute::ClientKey, client);
        (0..times).for_each(|_| drop(self.engines[namespace].decide_now(&request)));
    }
}

async fn get(rig: &Rig, token: &str, path: &str) -> Value {
    rig.call_as(token, "GET", path, "", "").await.expect(200).json()
}

/// A rig in whose namespaces clients were refused.
async fn busy() -> (Rig, Callers, String) {
    let rig = Rig::start().await;
    let callers = Callers::new(&rig.clock, &rig.traffic);
    callers.ask(0, "user:alice", 10);
    callers.ask(1, "user:bob", 20);
    rig.traffic.collect();
    rig.clock.advance(Span::from_secs(2));
    let token = rig.token(Role::Operator, Some(&["a"])).await;
    (rig, callers, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_one_namespace_sees_nothing_of_another() {
    let (rig, _, token) = busy().await;
    let all = get(&rig, &rig.operator, "/v1/decisions?namespace=b&limit=1").await;
    let of_b = all["decisions"][0]["decision_id"].as_str().unwrap().to_owned();
    let client_of_b = all["decisions"][0]["client"].as_str().unwrap().to_owned();
    let overview = get(&rig, &token, "/v1/traffic/overview").await;
    assert_eq!(overview["totals"], json!({ "allowed": 3, "denied": 7, "shadow_denied": 0, "cost": 3 }), "{overview}");
    assert_eq!(overview["limited_now"], 1);
    for path in [
        "/v1/traffic/overview",
        "/v1/traffic/top",
        "/v1/traffic/top?by=consuming",
        "/v1/traffic/top?by=closest",
        "/v1/traffic/top?by=newly_denied",
        "/v1/decisions",
        "/v1/decisions?client=user:bob",
        "/v1/traffic/overview?namespace=b",
        "/v1/traffic/top?namespace=b",
        "/v1/decisions?namespace=b",
    ] {
        let answer = get(&rig, &token, path).await.to_string();
        assert!(
            !answer.contains(&client_of_b) && !answer.contains("\"b\"") && !answer.contains("bob"),
            "{path}: {answer}"
        );
    }
    let path = format!("/v1/decisions/{of_b}");
    assert_eq!(rig.call_as(&token, "GET", &path, "", "").await.expect(404).code(), "no_such_decision");
    assert_eq!(get(&rig, &rig.operator, &path).await["namespace"], "b");
    for query in ["client=user:bob", "namespace=b", "rule=orders&namespace=b"] {
        let series = get(&rig, &token, &format!("/v1/traffic/series?{query}")).await;
        let sum: u64 = series["denied"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
        assert_eq!(sum, 0, "{query}");
    }
    let preview = json!({ "namespace": "b", "rule": "orders", "limit": { "requests": 1 } }).to_string();
    assert_eq!(rig.call_as(&token, "POST", "/v1/preview", JSON, &preview).await.expect(403).code(), "other_namespace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_explained_and_found_by_key_and_by_digest() {
    let (rig, ..) = busy().await;
    let found = get(&rig, &rig.operator, "/v1/decisions?client=user:alice&allowed=false&limit=2").await;
    let decision = &found["decisions"][0];
    assert_eq!(found["decisions"].as_array().unwrap().len(), 2);
    for (name, expected) in [
        ("rule", json!("orders")),
        ("namespace", json!("a")),
        ("allowed", json!(false)),
        ("limit", json!(3)),
        ("window_ms", json!(60_000)),
        ("override", json!(false)),
        ("used", json!(3)),
        ("remaining", json!(0)),
        ("retry_after_ms", json!(20_000)),
        ("mode", json!("store")),
        ("node", json!("a")),
        ("generation", json!(2)),
    ] {
        assert_eq!(decision[name], expected, "{name}: {decision}");
    }
    assert!(decision["limited_since"].is_string() && decision["ends_at"].is_string());
    let digest = decision["client"].as_str().unwrap();
    assert!(digest.starts_with("user:#") && !found.to_string().contains("alice"), "{found}");
    let by_digest =
        get(&rig, &rig.operator, &format!("/v1/decisions?client={}&allowed=false&limit=2", digest.replace('#', "%23")))
            .await;
    assert_eq!(by_digest, found);
    let next = found["next_before"].as_str().unwrap();
    let rest = get(&rig, &rig.operator, &format!("/v1/decisions?client=user:alice&before={next}")).await;
    assert_eq!(rest["decisions"].as_array().unwrap().len(), 8);
    assert_eq!(rig.get("/v1/decisions/xyz").await.expect(400).code(), "bad_decision_id");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_limit_is_tried_before_it_is_in_force() {
    let (rig, callers, _) = busy().await;
    callers.ask(1, "user:carol", 3);
    rig.traffic.collect();
    rig.clock.advance(Span::from_secs(1));
    let preview = |limit: Value| json!({ "namespace": "b", "rule": "orders", "limit": limit });
    let doubled = rig.send("POST", "/v1/preview", preview(json!({ "requests": 20 }))).await.expect(200).json();
    assert_eq!((&doubled["refused_max"], &doubled["limit_now"]["requests"]), (&json!(0), &json!(3)), "{doubled}");
    let halved = rig.send("POST", "/v1/preview", preview(json!({ "requests": 1 }))).await.expect(200).json();
    let (least, most) = (halved["refused_min"].as_u64().unwrap(), halved["refused_max"].as_u64().unwrap());
    assert!(
        least <= most && most > 0 && halved["summary"].as_str().unwrap().contains("would have refused"),
        "{halved}"
    );
    let wrong = rig.send("POST", "/v1/preview", preview(json!({ "request": 1, "window": "soon" }))).await.expect(400);
    assert_eq!(wrong.faults().len(), 2, "{}", wrong.text());
    rig.send("POST", "/v1/preview", json!({ "namespace": "b", "rule": "none", "limit": {} })).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_callers_never_reach_a_page_as_they_are() {
    let rig = Rig::start().await;
    let callers = Callers::new(&rig.clock, &rig.traffic);
    let hostile =
        ["<script>alert(1)</script>", "a\u{1b}[2J\r\nX: y", "'; DROP TABLE", "\u{202e}evil", "user:<img src=x>"];
    hostile.iter().for_each(|client| callers.ask(0, client, 5));
    rig.traffic.collect();
    rig.clock.advance(Span::SECOND);
    for path in ["/v1/traffic/overview", "/v1/traffic/top", "/v1/decisions", "/v1/traffic/top?by=closest"] {
        for token in [&rig.viewer, &rig.operator] {
            let answer = rig.call_as(token, "GET", path, "", "").await.expect(200).text();
            assert!(answer.contains('#'), "{path}: {answer}");
            for part in ["script", "\u{1b}", "DROP", "\u{202e}", "<img"] {
                assert!(!answer.contains(part), "{path}: {answer}");
            }
        }
    }
}

/// Reads a stream until it contains a text.
pub async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut text = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&text).contains(wanted) {
            let mut piece = [0; 4096];
            let bytes = stream.read(&mut piece).await.unwrap();
            assert!(bytes > 0, "the stream ended: {}", String::from_utf8_lossy(&text));
            text.extend_from_slice(&piece[..bytes]);
        }
    };
    timeout(Duration::from_secs(60), read).await.expect("an event in time");
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn ninety_streams_see_what_happens_though_one_never_reads() {
    let rig = Rig::start().await;
    let callers = Callers::new(&rig.clock, &rig.traffic);
    let of_b = format!("Authorization: Bearer {}\r\n", rig.token(Role::Viewer, Some(&["b"])).await);
    let of_all = format!("Authorization: Bearer {}\r\n", rig.operator);
    let (silent, _never_read) = rig.stream("/v1/events", &of_all).await;
    assert_eq!((silent.status, silent.field("content-type")), (200, Some("text/event-stream")));
    let mut streams = Vec::new();
    for _ in 0..3 {
        let of_all = format!("Authorization: Bearer {}\r\n", rig.token(Role::Viewer, None).await);
        for _ in 0..30 {
            streams.push(rig.stream("/v1/events", &of_all).await.1);
        }
    }
    let (head, mut narrow) = rig.stream("/v1/events?rule=orders", &of_b).await;
    head.expect(200);
    callers.ask(0, "user:alice", 4);
    callers.ask(1, "user:bob", 4);
    rig.clock.advance(Span::SECOND);
    rig.traffic.collect();
    for stream in &mut streams {
        let text = read_until(stream, "event: tick").await;
        assert!(text.contains("\"namespace\":\"a\"") && text.contains("\"namespace\":\"b\""), "{text}");
    }
    let text = read_until(&mut narrow, "event: tick").await;
    assert!(text.contains("\"namespace\":\"b\"") && !text.contains("\"namespace\":\"a\""), "{text}");
    assert!(text.contains("event: denied") && text.contains("user:#") && !text.contains("bob"), "{text}");
    // A flood fills what the silent reader has room for; the others go on.
    for _ in 0..2000 {
        callers.ask(0, "user:alice", 1);
        rig.traffic.collect();
    }
    rig.clock.advance(Span::SECOND);
    rig.traffic.collect();
    read_until(&mut streams[0], "event: tick").await;
    let refused = rig.head_of("/v1/events", "").await;
    assert_eq!(refused.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_is_in_the_audit_without_the_key() {
    let rig = Rig::start().await;
    let reset = json!({ "client": "user:alice", "rule": "orders", "reason": "ticket 1" });
    rig.send("POST", "/v1/counters/reset", reset.clone()).await.expect(404); // there are no rules
    let audit = rig.get("/v1/audit?kind=counter").await.expect(200).json();
    assert_eq!(audit["audit"], json!([]), "what was refused was not done");

    let rules = "rules: [{ name: orders, key_by: client_key, limit: { requests: 3, window: 1m } }]";
    rig.engine.swap_rules(rules_from_yaml(rules).unwrap());
    let request = Request::new().with(Attribute::ClientKey, "user:alice");
    for _ in 0..3 {
        assert!(rig.engine.decide(&request).await.is_allowed());
    }
    let answer = rig.send("POST", "/v1/counters/reset", reset).await.expect(200).json();
    assert_eq!(answer["rules"], json!(["orders"]));
    assert!(rig.engine.decide(&request).await.is_allowed());
    let audit = rig.get("/v1/audit?kind=counter").await.expect(200).json();
    let row = &audit["audit"][0];
    assert_eq!((&row["after"]["rule_id"], &row["after"]["reason"]), (&json!("orders"), &json!("ticket 1")), "{audit}");
    assert!(!audit.to_string().contains("alice"), "{audit}");
}
