//! A request that is shed after the rules charged it is not served, and so not charged.

use crate::app::App;
use crate::rig::{Caller, Rig, until};
use crate::upstreams::closed_port;

/// Requests that hold nothing, that hold a slot, and that have an estimate.
const RULES: &str = "rules:
  - { name: plain, key_by: ip, match: { endpoint: '/plain/*' }, limit: { requests: 100, window: 7d, algorithm: ALGORITHM } }
  - { name: held, key_by: ip, match: { endpoint: '/held/*' }, limit: { requests: 100, window: 7d, algorithm: ALGORITHM } }
  - { name: slots, key_by: ip, match: { endpoint: '/held/*' }, limit: { algorithm: concurrency, slots: 5, slot_ttl: 1m } }
  - { name: units, key_by: ip, meter: units, limit: { amount: 100, window: 7d, algorithm: ALGORITHM } }
";

fn rig(app: &App, algorithm: &str) -> Rig {
    let routes = format!(
        "upstreams: {{ api: {{ servers: {url}, max_in_flight: 1 }}, other: {{ servers: {url} }} }}
routes:
  - {{ path: /priced/left, upstream: other, cost: {{ units: 0 }} }}
  - {{ path: /priced/*, upstream: api, cost: {{ units: [2, {{ response: bytes, estimate: 5 }}] }} }}
  - {{ path: /paid/*, upstream: api, cost: {{ units: 3 }} }}
  - {{ path: /plain/left, upstream: other, cost: 0 }}
  - {{ path: /held/left, upstream: other, cost: 0 }}
  - {{ upstream: api }}
",
        url = app.url()
    );
    Rig::routed(&RULES.replace("ALGORITHM", algorithm), &routes)
}

async fn occupy(rig: &Rig, app: &App) -> Caller {
    let mut caller = rig.connect().await;
    caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !app.seen().is_empty()).await;
    caller
}

/// Waits until this much is left: charges are given back just after the response.
async fn left(rig: &Rig, path: &str, name: &str, wanted: u64) {
    let wanted = format!("\"{name}\";r={wanted}");
    until(async || {
        let answer = rig.get(path).await;
        let fields = answer.field("RateLimit").unwrap_or_default();
        fields.split(", ").any(|field| field == wanted || field.starts_with(&format!("{wanted};")))
    })
    .await;
}

#[tokio::test]
async fn what_is_shed_is_not_charged() {
    for algorithm in ["token_bucket", "fixed_window", "sliding_window"] {
        let app = App::start().await;
        let rig = rig(&app, algorithm);
        let mut first = occupy(&rig, &app).await;
        for path in ["/plain/x", "/held/x", "/priced/x", "/paid/x"] {
            for _ in 0..3 {
                let shed = rig.get(path).await;
                assert_eq!(shed.status, 503, "{path}: {shed:?}");
            }
        }
        left(&rig, "/plain/left", "plain", 100).await;
        left(&rig, "/held/left", "held", 100).await;
        left(&rig, "/priced/left", "units", 100).await;
        app.released.send_replace(1);
        assert_eq!(first.answer().await.status, 200);
        // What is served is charged as ever.
        until(async || rig.get("/paid/x").await.status == 200).await;
        left(&rig, "/priced/left", "units", 97).await;
    }
}

#[tokio::test]
async fn what_an_open_breaker_refuses_is_not_charged_and_a_failed_attempt_is() {
    let app = App::start().await;
    let (_socket, gone) = closed_port();
    let rules = "rules: [{ name: ten, key_by: ip, limit: { requests: 10, window: 7d, algorithm: fixed_window } }]\n";
    let routes = format!(
        "upstreams:
  api: {{ servers: {} }}
  gone: {{ servers: {gone}, ejection: {{ after: 0 }}, breaker: {{ failures: 2, open: 1h, open_max: 1h }} }}
routes:
  - {{ path: /left, upstream: api, cost: 0 }}
  - {{ upstream: gone }}
",
        app.url()
    );
    let rig = Rig::routed(rules, &routes);
    for expected in [502, 502, 503, 503, 503] {
        assert_eq!(rig.get("/x").await.status, expected);
    }
    left(&rig, "/left", "ten", 8).await;
    assert!(rig.metrics().await.contains("tollgate_gateway_refunds_total{outcome=\"given_back\"} 3"));
}

/// Where requests are forwarded although a limit refuses them, nothing was charged, and nothing is given back.
#[tokio::test]
async fn what_was_refused_and_forwarded_all_the_same_is_given_nothing_back() {
    let app = App::start().await;
    let rules = "rules: [{ name: two, key_by: ip, match: { endpoint: '/x/*' }, limit: { requests: 2, window: 7d, algorithm: \
                 fixed_window } }]\n";
    let url = app.url();
    let rig = Rig::with(rules, |config, dir| {
        let path = dir.join("routes.yaml");
        let routes = format!(
            "upstreams: {{ api: {{ servers: {url}, max_in_flight: 1 }}, other: {{ servers: {url} }} }}\nroutes: [{{ path: \
             /x/served, upstream: other }}, {{ path: /x/left, upstream: other, cost: 0 }}, {{ upstream: api }}]\n"
        );
        std::fs::write(&path, routes).unwrap();
        config.gateway.routes = Some(path);
        config.gateway.shadow = true;
    });
    for _ in 0..2 {
        assert_eq!(rig.get("/x/served").await.status, 200);
    }
    let _first = occupy(&rig, &app).await;
    for _ in 0..3 {
        assert_eq!(rig.get("/x/y").await.status, 503);
    }
    left(&rig, "/x/left", "two", 0).await;
    assert!(rig.metrics().await.contains("tollgate_gateway_refunds_total{outcome=\"given_back\"} 0"));
}
