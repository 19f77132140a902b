//! What limits do at the gateway: who is counted how, what a refused caller learns, and what is given back.

use crate::app::App;
use crate::forwarding::in_flight;
use crate::rig::{Rig, until};

const TWO_AN_HOUR: &str =
    "rules: [{ name: two, key_by: ip, match: { endpoint: \"/api/*\" }, limit: { requests: 2, window: 1h } }]\n";

#[tokio::test]
async fn a_refused_request_is_not_forwarded_and_learns_when_to_come_back() {
    let app = App::start().await;
    let rig = Rig::start(TWO_AN_HOUR, &app.url());
    assert_eq!(rig.get("/api/a").await.field("X-RateLimit-Remaining"), Some("1"));
    assert_eq!(rig.get("/api/b").await.field("X-RateLimit-Remaining"), Some("0"));
    assert_eq!(app.seen().len(), 2);
    let refused = rig.get("/api/c").await;
    assert_eq!((refused.status, app.seen().len()), (429, 0));
    let wait: u64 = refused.field("Retry-After").unwrap().parse().unwrap();
    assert!((1_700..=2_100).contains(&wait), "{wait}");
    assert_eq!(refused.field("Content-Type"), Some("application/problem+json"));
    assert_eq!(refused.field("X-RateLimit-Limit"), Some("2"));
    assert!(refused.body.contains("\"error\":\"rate_limited\""), "{}", refused.body);
    for internal in ["generation", "mode", "store"] {
        assert!(!refused.body.contains(internal), "{internal} is internal: {}", refused.body);
    }
    assert_eq!(rig.get("/other").await.status, 200, "no rule is about it");
}

#[tokio::test]
async fn no_spelling_of_a_path_escapes_its_limit() {
    let app = App::start().await;
    let rig = Rig::start(TWO_AN_HOUR, &app.url());
    for spelling in ["/api/a", "//api//a"] {
        assert_eq!(rig.get(spelling).await.status, 200, "{spelling}");
    }
    for spelling in ["/api/a", "/api/./a", "/x/../api/a", "/%61pi/a", "//api/a/", "/api/a?b"] {
        assert_eq!(rig.get(spelling).await.status, 429, "{spelling}");
    }
    for ambiguous in ["/x/..;/api/a", "/api%2Fa", "/api/a%5Cb", "/api\\a", "/../api/a", "/api/%00", "/api/%zz"] {
        assert_eq!(rig.get(ambiguous).await.status, 400, "{ambiguous}");
    }
    let mut caller = rig.connect().await;
    caller.send("HEAD /api/a HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(caller.head().await.starts_with("HTTP/1.1 429 "), "HEAD counts as GET");
}

#[tokio::test]
async fn a_case_insensitive_route_counts_every_case_as_one() {
    let app = App::start().await;
    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }} }}\nroutes: [{{ path: /*, upstream: api, case: insensitive }}]\n",
        app.url()
    );
    let rig = Rig::routed(TWO_AN_HOUR, &routes);
    assert_eq!(rig.get("/API/Orders").await.status, 200);
    assert_eq!(rig.get("/api/orders").await.status, 200);
    assert_eq!(rig.get("/Api/ORDERS").await.status, 429);
    assert!(app.seen()[0].starts_with("GET /API/Orders "), "the server gets what was sent");
}

#[tokio::test]
async fn an_identity_that_is_not_proven_gets_no_bucket_of_its_own() {
    let app = App::start().await;
    let rig = Rig::start("rules: [{ key_by: api_key, limit: { requests: 2, window: 1h } }]\n", &app.url());
    for key in ["one", "two"] {
        assert_eq!(rig.get_with("/", &format!("X-Api-Key: {key}\r\n")).await.status, 200, "{key}");
    }
    for fields in ["X-Api-Key: three\r\n", "", "Authorization: Bearer x\r\n", "X-Forwarded-For: 9.9.9.9\r\n"] {
        assert_eq!(rig.get_with("/", fields).await.status, 429, "{fields:?}: all of them are one address");
    }
}

#[tokio::test]
async fn shadow_forwards_what_limits_refuse() {
    let app = App::start().await;
    let rig = Rig::with(TWO_AN_HOUR, |config, _| {
        config.gateway.upstream = vec![app.url()];
        config.gateway.shadow = true;
    });
    for _ in 0..4 {
        assert_eq!(rig.get("/api/a").await.status, 200);
    }
    assert_eq!(app.seen().len(), 4);
    assert!(rig.metrics().await.contains("outcome=\"shadow_denied\""), "{}", rig.metrics().await);
}

const ONE_AT_A_TIME: &str =
    "rules: [{ name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 1, slot_ttl: 1m } }]\n";

#[tokio::test]
async fn a_slot_is_held_until_the_response_ends() {
    let app = App::start().await;
    let rig = Rig::start(ONE_AT_A_TIME, &app.url());
    let mut caller = rig.connect().await;
    caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !app.seen().is_empty()).await;
    assert_eq!(rig.get("/x").await.status, 429);
    app.released.send_replace(1);
    assert_eq!(caller.answer().await.status, 200);
    until(async || rig.get("/x").await.status == 200).await;
}

/// Every way in which a request can end, many times over: afterwards the slot is free.
#[tokio::test]
async fn no_end_of_a_request_leaks_its_slot() {
    let app = App::start().await;
    let routes = format!(
        "upstreams: {{ api: {{ servers: {}, ejection: {{ after: 0 }}, timeouts: {{ first_byte: 20ms, idle: 20ms }} }} }}
routes: [{{ path: /*, upstream: api, max_body: 8 }}]\n",
        app.url()
    );
    let rig = Rig::routed(ONE_AT_A_TIME, &routes);
    let free = async || rig.get("/x").await.status == 200;
    let ends: [(&str, &str); 9] = [
        ("/ok", "HTTP/1.1 200"),
        ("/fails", "HTTP/1.1 500"),
        ("/hangup", "HTTP/1.1 502"),
        ("/garbage", "HTTP/1.1 502"),
        ("/lengths", "HTTP/1.1 502"),
        ("/huge-head", "HTTP/1.1 502"),
        ("/silent", "HTTP/1.1 504"),
        ("/cut", "HTTP/1.1 200"),
        ("/stream", "HTTP/1.1 200"), // which pauses for longer than it may
    ];
    for round in 0..5 {
        for (path, expected) in ends {
            until(&free).await;
            let mut caller = rig.connect().await;
            caller.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
            let answer = caller.rest().await;
            assert!(answer.starts_with(expected), "{path}, round {round}: {answer}");
        }
        until(&free).await;
        let mut caller = rig.connect().await; // hangs up in the middle of its body
        caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhal").await;
        drop(caller);
        until(&free).await;
        let mut caller = rig.connect().await; // sends more than the route takes
        caller
            .send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n")
            .await;
        assert!(caller.rest().await.starts_with("HTTP/1.1 413 "));
    }
    until(&free).await;
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
}

#[tokio::test]
async fn a_leaky_bucket_delays_requests_in_their_order() {
    let app = App::start().await;
    let rules = "rules: [{ name: queue, key_by: ip, limit: { algorithm: leaky_bucket, requests: 20, window: 1s, \
                 max_delay: 1s } }]\n";
    let rig = Rig::start(rules, &app.url());
    let start = tokio::time::Instant::now();
    for _ in 0..5 {
        assert_eq!(rig.get("/x").await.status, 200);
    }
    assert!(start.elapsed() >= std::time::Duration::from_millis(200), "one in 50 ms: {:?}", start.elapsed());
}
