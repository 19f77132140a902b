//! Metrics by route and upstream: how long requests take, who is shed, and what is settled.

use crate::app::App;
use crate::llm::{budgets, send};
use crate::rig::{Rig, until};

fn routes(app: &App) -> String {
    format!(
        "upstreams: {{ api: {{ servers: {url}, max_in_flight: 1 }}, models: {{ servers: {url} }} }}
routes:
  - {{ name: chat, path: /v1/*, upstream: models, cost: llm }}
  - {{ name: bulk, path: /bulk/*, upstream: api, priority: sheddable }}
  - {{ name: rest, upstream: api }}
",
        url = app.url()
    )
}

/// The value of the line that begins so.
async fn value(rig: &Rig, start: &str) -> Option<f64> {
    let page = rig.metrics().await;
    page.lines().find_map(|line| line.strip_prefix(start)?.trim().parse().ok())
}

#[tokio::test]
async fn requests_are_measured_by_route_and_upstream_and_shed_ones_by_class() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(1_000), &routes(&app));
    let mut caller = rig.connect().await;
    caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !app.seen().is_empty()).await;
    for _ in 0..2 {
        assert_eq!(rig.get("/bulk/x").await.status, 503);
    }
    let shed = "tollgate_upstream_shed_total{upstream=\"api\",class=\"sheddable\",reason=\"full\"}";
    assert_eq!(value(&rig, shed).await, Some(2.0));
    assert_eq!(value(&rig, "tollgate_gateway_duration_seconds_count{route=\"rest\"}").await, None, "it has not ended");
    app.released.send_replace(1);
    assert_eq!(caller.answer().await.status, 200);
    until(async || value(&rig, "tollgate_gateway_duration_seconds_count{route=\"rest\"}").await == Some(1.0)).await;
    assert_eq!(value(&rig, "tollgate_gateway_duration_seconds_count{route=\"bulk\"}").await, Some(2.0));
    assert_eq!(value(&rig, "tollgate_upstream_first_byte_seconds_count{upstream=\"api\"}").await, Some(1.0));
    let all = "tollgate_upstream_first_byte_seconds_bucket{le=\"+Inf\",upstream=\"api\"}";
    assert_eq!(value(&rig, all).await, Some(1.0));
}

#[tokio::test]
async fn settled_amounts_are_counted_by_route_and_meter_and_outlive_a_reload() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(1_000), &routes(&app));
    let settled = "tollgate_gateway_settled_total{route=\"chat\",meter=\"output_tokens\"}";
    let body = r#"{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Say hello."}]}"#;
    for round in 1..=2 {
        let mut caller = rig.connect().await;
        send(&mut caller, "/v1/chat/completions", "X-Tokens: 7\r\n", body).await;
        assert_eq!(caller.answer().await.status, 200);
        until(async || value(&rig, settled).await == Some(f64::from(7 * round))).await;
        let more =
            format!("{}  - {{ name: more, path: /more, upstream: api }}\n", routes(&app).replace("rest", "others"));
        std::fs::write(rig.dir.path().join("routes.yaml"), more).unwrap();
        until(async || {
            rig.get("/x").await;
            value(&rig, "tollgate_gateway_duration_seconds_count{route=\"others\"}").await.is_some()
        })
        .await;
    }
}
