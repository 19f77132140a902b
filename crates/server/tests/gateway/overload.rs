//! What keeps an upstream from more work than it can do: who waits, who goes first, and when nothing is sent any more.

use crate::app::App;
use crate::rig::{Caller, Rig, until};

pub const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

pub fn routes(app: &App, options: &str) -> String {
    format!(
        "upstreams: {{ api: {{ servers: {}, {options} }} }}
routes:
  - {{ path: /critical/*, upstream: api, priority: critical }}
  - {{ path: /bulk/*, upstream: api, priority: sheddable }}
  - {{ path: /*, upstream: api }}
",
        app.url()
    )
}

/// Sends a request, and does not wait for its answer.
pub async fn ask(rig: &Rig, path: &str) -> Caller {
    let mut caller = rig.connect().await;
    caller.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    caller
}

/// A request that the server has, and answers when it is told to.
pub async fn occupy(rig: &Rig, app: &App) -> Caller {
    let caller = ask(rig, "/hold").await;
    until(async || !app.seen().is_empty()).await;
    caller
}

pub async fn waiting(rig: &Rig) -> u64 {
    let metrics = rig.metrics().await;
    let line = metrics.lines().find(|line| line.starts_with("tollgate_upstream_waiting{")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_more_important_request_goes_first_though_it_came_last() {
    let app = App::start().await;
    let options = "concurrency: 1, queue: { max: 10, max_wait: 1m, overload: fifo }";
    let rig = Rig::routed(NO_RULES, &routes(&app, options));
    let mut first = occupy(&rig, &app).await;
    let mut bulk = ask(&rig, "/bulk/1").await;
    until(async || waiting(&rig).await == 1).await;
    let mut critical = ask(&rig, "/critical/1").await;
    until(async || waiting(&rig).await == 2).await;
    assert!(app.seen().is_empty(), "the limit is one at a time");
    app.released.send_replace(1);
    for caller in [&mut first, &mut critical, &mut bulk] {
        assert_eq!(caller.answer().await.status, 200);
    }
    let seen = app.seen();
    assert!(seen[0].starts_with("GET /critical/1 ") && seen[1].starts_with("GET /bulk/1 "), "{seen:?}");
}

#[tokio::test]
async fn a_full_queue_sheds_the_least_important_with_503() {
    let app = App::start().await;
    let options = "concurrency: 1, queue: { max: 1, max_wait: 1m, overload: fifo }";
    let rig = Rig::routed(NO_RULES, &routes(&app, options));
    let mut first = occupy(&rig, &app).await;
    let mut bulk = ask(&rig, "/bulk/1").await;
    until(async || waiting(&rig).await == 1).await;
    let mut critical = ask(&rig, "/critical/1").await;
    let shed = bulk.answer().await;
    assert_eq!(shed.status, 503, "its place went to a more important request");
    assert!(shed.body.contains("\"code\":\"overload\"") && shed.field("Retry-After").is_some(), "{}", shed.body);
    app.released.send_replace(1);
    assert_eq!(critical.answer().await.status, 200);
    assert_eq!(first.answer().await.status, 200);
    assert!(rig.metrics().await.contains("outcome=\"displaced\""));
}

#[tokio::test]
async fn a_caller_that_gives_up_frees_its_place_in_the_queue() {
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&app, "concurrency: 1, queue: { max: 10, max_wait: 1m }"));
    let mut first = occupy(&rig, &app).await;
    let second = ask(&rig, "/x").await;
    until(async || waiting(&rig).await == 1).await;
    drop(second);
    until(async || waiting(&rig).await == 0).await;
    app.released.send_replace(1);
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(rig.get("/x").await.status, 200);
}

#[tokio::test]
async fn an_upstream_that_fails_is_left_alone_for_a_while() {
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&app, "breaker: { failures: 3, open: 1h, open_max: 1h }"));
    for _ in 0..3 {
        assert_eq!(rig.get("/fails").await.status, 500);
    }
    let refused = rig.get("/x").await;
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("\"code\":\"no_server\""), "{}", refused.body);
    assert_eq!(app.seen().len(), 3, "nothing was sent");
    assert!(rig.metrics().await.lines().any(|line| line == "tollgate_upstream_breaker_open{upstream=\"api\"} 1"));
}
