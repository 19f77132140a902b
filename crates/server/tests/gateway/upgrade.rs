//! Upgrades: nothing is sent before both ends agree, and everything passes afterwards.

use tokio::io::AsyncWriteExt;

use crate::app::App;
use crate::rig::{Rig, until};

const SLOTS: &str = "rules: [{ name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 1, slot_ttl: 1m } }]\n";
const ASK: &str = "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

#[tokio::test]
async fn a_tunnel_passes_bytes_both_ways_and_holds_its_slot() {
    let app = App::start().await;
    let rig = Rig::start(SLOTS, &app.url());
    let mut caller = rig.connect().await;
    caller.send(ASK).await;
    let head = caller.head().await.to_lowercase();
    assert!(head.starts_with("http/1.1 101 ") && head.contains("upgrade: echo"), "{head}");
    for text in ["one", "two", "GET / HTTP/1.1\r\n\r\n"] {
        caller.send(text).await;
        assert_eq!(caller.until(text).await, text);
    }
    assert_eq!(rig.get("/x").await.status, 429, "the tunnel has the slot");
    caller.stream.shutdown().await.unwrap();
    assert_eq!(caller.rest().await, "");
    until(async || rig.get("/x").await.status == 200).await;
}

#[tokio::test]
async fn a_tunnel_that_is_silent_for_too_long_ends_and_frees_its_slot() {
    let app = App::start().await;
    let routes = format!(
        "upstreams: {{ api: {{ servers: {}, timeouts: {{ idle: 50ms }} }} }}\nroutes: [{{ upstream: api }}]\n",
        app.url()
    );
    let rig = Rig::routed(SLOTS, &routes);
    let mut caller = rig.connect().await;
    caller.send(ASK).await;
    assert!(caller.head().await.starts_with("HTTP/1.1 101 "));
    assert_eq!(caller.rest().await, "", "neither end said anything");
    until(async || rig.get("/x").await.status == 200).await;
}

#[tokio::test]
async fn a_server_that_does_not_agree_answers_as_to_any_request() {
    let app = App::start().await;
    let rig = Rig::start(SLOTS, &app.url());
    let mut caller = rig.connect().await;
    caller.send(&ASK.replace("/tunnel", "/ok")).await;
    let answer = caller.answer().await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "from the app"));
    until(async || rig.get("/x").await.status == 200).await;
}

#[tokio::test]
async fn a_route_without_upgrades_forwards_a_plain_request() {
    let app = App::start().await;
    let routes =
        format!("upstreams: {{ api: {{ servers: {} }} }}\nroutes: [{{ upstream: api, upgrade: false }}]\n", app.url());
    let rig = Rig::routed("rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n", &routes);
    let mut caller = rig.connect().await;
    caller.send(&ASK.replace("/tunnel", "/ok")).await;
    assert_eq!(caller.answer().await.status, 200);
    assert!(!app.seen()[0].to_lowercase().contains("upgrade"));
}

/// Nothing that passes behind an upgrade is read, so it would cost nothing.
#[tokio::test]
async fn a_route_that_prices_what_requests_say_opens_no_tunnel_unless_it_says_so() {
    let app = App::start().await;
    for (cost, upgrade, status) in [
        ("{ units: { request: graphql } }", "", 200),
        ("llm", "", 200),
        ("{ units: { request: jsonrpc } }", "", 200),
        ("{ units: { request: graphql } }", ", upgrade: true", 101),
        ("{ units: { response: bytes } }", "", 101),
    ] {
        let routes = format!(
            "upstreams: {{ api: {{ servers: {} }} }}\nroutes: [{{ upstream: api, cost: {cost}{upgrade} }}]\n",
            app.url()
        );
        let rig = Rig::routed(SLOTS, &routes);
        app.seen();
        let mut caller = rig.connect().await;
        let path = if status == 101 { "/tunnel" } else { "/ok" };
        caller.send(&ASK.replace("/tunnel", &format!("{path}?query=%7Ba%7D"))).await;
        let head = caller.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{cost}{upgrade}: {head}");
        assert_eq!(app.seen()[0].to_lowercase().contains("upgrade"), status == 101, "{cost}{upgrade}");
    }
}

/// Through a tunnel of HTTP/2, requests would pass that no rule has seen.
#[tokio::test]
async fn no_tunnel_is_opened_for_another_version_of_http() {
    let app = App::start().await;
    let rig = Rig::start(SLOTS, &app.url());
    for protocol in ["h2c", "H2C", "h2c, echo", "echo, h2c", "echo\r\nUpgrade: h2c", "HTTP/2.0"] {
        until(async || rig.get("/x").await.status == 200).await;
        app.seen();
        let mut caller = rig.connect().await;
        let fields = "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n";
        caller.send(&ASK.replace("echo", protocol).replace("Host: a\r\n", &format!("Host: a\r\n{fields}"))).await;
        assert_eq!(caller.answer().await.status, 502, "{protocol}: the server agrees to what it was not asked for");
        let seen = app.seen().remove(0).to_lowercase();
        assert!(!seen.contains("upgrade") && !seen.contains("http2-settings"), "{protocol}: {seen}");
    }
}
