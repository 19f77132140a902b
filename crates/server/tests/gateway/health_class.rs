//! The class of health checks: above all others, and shed by nothing that sheds.

use crate::app::App;
use crate::rig::{Caller, Rig, until};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

fn routes(app: &App, options: &str) -> String {
    format!(
        "priorities: [gold, silver]
upstreams: {{ api: {{ servers: {}, {options} }} }}
routes:
  - {{ path: /health/*, upstream: api, priority: health }}
  - {{ path: /cases/*, upstream: api, priority: [{{ class: health, headers: {{ x-check: \"1\" }} }}, silver] }}
  - {{ path: /*, upstream: api, priority: gold }}
",
        app.url()
    )
}

async fn ask(rig: &Rig, path: &str) -> Caller {
    let mut caller = rig.connect().await;
    caller.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    caller
}

async fn occupy(rig: &Rig, app: &App) -> Caller {
    let caller = ask(rig, "/hold").await;
    until(async || !app.seen().is_empty()).await;
    caller
}

#[tokio::test]
async fn a_health_check_is_served_where_every_other_request_is_shed() {
    for options in ["max_in_flight: 1", "concurrency: 1, queue: { max: 0 }"] {
        let app = App::start().await;
        let rig = Rig::routed(NO_RULES, &routes(&app, options));
        let mut first = occupy(&rig, &app).await;
        assert_eq!(rig.get("/x").await.status, 503, "{options}: the highest class of the file has no room");
        assert_eq!(rig.get("/cases/x").await.status, 503, "{options}");
        assert_eq!(rig.get("/health/live").await.status, 200, "{options}");
        assert_eq!(rig.get_with("/cases/x", "X-Check: 1\r\n").await.status, 200, "{options}");
        app.released.send_replace(1);
        assert_eq!(first.answer().await.status, 200);
        until(async || rig.get("/x").await.status == 200).await;
    }
}

#[tokio::test]
async fn health_checks_are_no_way_around_the_limits() {
    let app = App::start().await;
    let options = "max_in_flight: 1";
    let routes = routes(&app, options).replace("/health/*", "/hold");
    let rig = Rig::routed(NO_RULES, &routes);
    let mut held = Vec::new();
    let mut seen = 0;
    for at in 1..=9 {
        held.push(ask(&rig, "/hold").await);
        until(async || {
            seen += app.seen().len();
            seen == at
        })
        .await;
    }
    assert_eq!(rig.get("/hold").await.status, 503, "eight beside the limit, and one within it");
    app.released.send_replace(1);
    for caller in &mut held {
        assert_eq!(caller.answer().await.status, 200);
    }
}

#[tokio::test]
async fn a_health_check_may_use_the_reserved_share_of_the_fleet() {
    let app = App::start().await;
    let shedder = "key_by: global
rules: [{ name: fleet, limit: { algorithm: concurrency, slots: 2, slot_ttl: 1m, reserved: 50% } }]\n";
    let rig = Rig::routed(shedder, &routes(&app, "max_in_flight: 100"));
    let _first = occupy(&rig, &app).await;
    assert_eq!(rig.get("/x").await.status, 503);
    assert_eq!(rig.get("/health/live").await.status, 200);
}
