//! What a server gets, and what a caller gets back.

use crate::app::App;
use crate::rig::{Rig, until, within};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

#[tokio::test]
async fn a_request_arrives_without_fields_of_the_connection_and_with_those_of_the_caller() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let fields = "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nTE: trailers, deflate\r\n\
                  X-Forwarded-For: 1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nX-Own: 7\r\n";
    let answer = rig.get_with("//orders/./1?a=%2F", fields).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "from the app"));
    let seen = app.seen();
    let mut lines: Vec<&str> = seen[0].trim_end().split("\r\n").collect();
    assert_eq!(lines.remove(0), "GET /orders/1?a=%2F HTTP/1.1", "the path that the rules saw");
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "host: api.example.com",
            "te: trailers",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: api.example.com",
            "x-forwarded-proto: http",
            "x-own: 7",
        ]
    );
}

#[tokio::test]
async fn a_response_comes_back_without_fields_of_the_connection() {
    let app = App::start().await;
    let rig = Rig::start("rules: [{ name: all, key_by: ip, limit: { requests: 10, window: 1h } }]\n", &app.url());
    let answer = rig.get("/fields").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    assert!(!answer.head.to_lowercase().contains("x-hop"), "{}", answer.head);
    assert_eq!(answer.head.to_lowercase().matches("set-cookie: ").count(), 2, "{}", answer.head);
    assert_eq!(answer.field("X-RateLimit-Limit"), Some("10"), "the gateway's limit, not the server's");
    assert_eq!(answer.field("X-Decision-Id").map(str::len), Some(16));
}

#[tokio::test]
async fn bodies_are_sent_on_as_they_were_framed() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(caller.answer().await.body, "hello");
    caller
        .send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        .await;
    let echoed = caller.answer().await.body;
    let data: String =
        echoed.split("\r\n").enumerate().filter(|(place, _)| place % 2 == 1).map(|(_, data)| data).collect();
    assert_eq!(data, "abcde", "{echoed:?}");
    caller.send("GET /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n").await;
    assert!(caller.answer().await.body.contains("hi"), "a GET may have a body");
    caller.send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\nGET /empty HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = caller.head().await;
    assert!(head.contains("Content-Length: 12") || head.contains("content-length: 12"), "{head}");
    assert!(caller.head().await.starts_with("HTTP/1.1 204 "));
    assert_eq!(app.connections(), 1, "one connection served all requests of the caller");
}

#[tokio::test]
async fn a_stream_is_passed_on_while_it_goes() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(caller.head().await.starts_with("HTTP/1.1 200 "));
    for event in 1..=3 {
        app.released.send_replace(event);
        assert!(caller.until("\n\n").await.ends_with(&format!("data: {event}\n\n")));
    }
    assert!(caller.until("0\r\n\r\n").await.ends_with("0\r\n\r\n"));
}

#[tokio::test]
async fn trailers_are_passed_on() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("GET /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n").await;
    let head = caller.head().await.to_lowercase();
    assert!(head.contains("trailer: x-sum"), "{head}");
    assert!(caller.until("0\r\n").await.contains("ok"));
    assert_eq!(caller.until("\r\n").await.to_lowercase(), "x-sum: 7\r\n");
}

#[tokio::test]
async fn a_caller_that_hangs_up_ends_the_exchange() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !app.seen().is_empty()).await;
    drop(caller);
    until(async || rig.metrics().await.contains("outcome=\"aborted\"")).await;
    assert!(in_flight(&rig.metrics().await).iter().all(|count| *count == 0));
}

/// Requests in flight, of every server.
pub fn in_flight(metrics: &str) -> Vec<u64> {
    let lines = metrics.lines().filter(|line| line.starts_with("tollgate_upstream_in_flight{"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn a_drain_finishes_what_was_accepted() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !app.seen().is_empty()).await;
    rig.drain.begin();
    app.released.send_replace(1);
    let answer = caller.answer().await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "held"));
    assert_eq!(within(rig.end()).await, 0, "no connection was cut");
}

#[tokio::test]
async fn routes_choose_upstream_path_and_fields() {
    let (one, two) = (App::start().await, App::start().await);
    let routes = format!(
        "upstreams: {{ one: {{ servers: {} }}, two: {{ servers: {} }} }}
routes:
  - {{ path: /v1/*, upstream: one, strip_prefix: /v1, add_prefix: /api, host_header: upstream,
      request_headers: {{ set: {{ x-team: orders }}, remove: x-debug }}, response_headers: {{ remove: set-cookie }},
      forwarded: forwarded }}
  - {{ host: two.example.com, upstream: two, case: insensitive, trailing_slash: strip }}
",
        one.url(),
        two.url()
    );
    let rig = Rig::routed(NO_RULES, &routes);
    assert_eq!(rig.get_with("/v1/fields", "X-Debug: 1\r\n").await.status, 200);
    let seen = one.seen().remove(0);
    assert!(seen.starts_with("GET /api/fields HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains(&format!("host: {}\r\n", one.address)), "{seen}");
    assert!(seen.contains("x-team: orders") && !seen.contains("x-debug") && !seen.contains("x-forwarded"), "{seen}");
    assert!(seen.contains("forwarded: for=127.0.0.1;proto=http;host=\"api.example.com\""), "{seen}");
    let elsewhere = rig.get("/v2/x").await;
    assert_eq!(elsewhere.status, 404);
    assert!(elsewhere.body.contains("\"code\":\"no_route\""), "{}", elsewhere.body);
    let mut caller = rig.connect().await;
    caller.send("GET /A/ HTTP/1.1\r\nHost: TWO.example.com:80\r\n\r\n").await;
    assert_eq!(caller.answer().await.status, 200);
    assert!(two.seen()[0].starts_with("GET /A HTTP/1.1\r\n"));
}
