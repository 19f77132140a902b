//! A fleet whose store cannot be reached: what the gateway tells callers, who know nothing of stores.

use std::net::TcpListener;

use serde_json::Value;
use tollgate_config::{StorePlace, StoreSettings};

use crate::app::App;
use crate::rig::Rig;

const RULES: &str = "rules:
  - { name: shut, match: { endpoint: '/shut/*' }, key_by: ip, on_fail: deny, error_code: plan_limit,
      limit: { requests: 10, window: 1h } }
  - { name: open, match: { endpoint: '/open/*' }, key_by: ip, on_fail: allow, limit: { requests: 10, window: 1h } }
";

/// A gateway whose store is a port without a listener, and whose route says 403 for limits.
async fn rig(app: &App) -> Rig {
    Rig::open(RULES, |config, dir| {
        let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
        let place: StorePlace = format!("redis://{closed}").parse().expect("a URL");
        config.store = StoreSettings { place, nodes: Some(2), ..StoreSettings::default() };
        let secret = dir.join("secret");
        std::fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
        config.secret_file = Some(secret);
        let path = dir.join("routes.yaml");
        let routes = format!(
            "upstreams: {{ api: {{ servers: {} }} }}\nroutes:\n  - {{ path: /shut/own, upstream: api, refusals: {{ \
             bodies: [{{ status: 503, content_type: text/plain, body: '{{code}} {{rule}}.' }}] }} }}\n  - {{ upstream: api, \
             denied_status: 403 }}\n",
            app.url()
        );
        std::fs::write(&path, routes).unwrap();
        config.gateway.routes = Some(path);
    })
    .await
}

#[tokio::test]
async fn a_rule_that_fails_closed_is_answered_like_overload() {
    let app = App::start().await;
    let rig = rig(&app).await;
    assert_eq!(rig.get("/open/x").await.status, 200);
    assert_eq!(app.seen().len(), 1);
    let mut waits = std::collections::BTreeSet::new();
    for _ in 0..24 {
        let refused = rig.get("/shut/x").await;
        assert_eq!(refused.status, 503, "never 429, and not the status of limits: {refused:?}");
        let wait: u64 = refused.field("Retry-After").unwrap().parse().unwrap();
        assert!((30..=45).contains(&wait), "{wait}");
        waits.insert(wait);
        let body: Value = serde_json::from_str(&refused.body).unwrap();
        for member in ["error", "error_code"] {
            assert_eq!(body[member], "overload", "{}", refused.body);
        }
        for internal in ["store_unavailable", "shut", "closed", "plan_limit", "RateLimit"] {
            assert!(!refused.body.contains(internal) && !refused.head.contains(internal), "{internal}: {refused:?}");
        }
    }
    assert!(waits.len() > 1, "callers that are refused together do not come back together: {waits:?}");
    assert_eq!(rig.get("/shut/own").await.body, "overload .");
    assert!(app.seen().is_empty());
    assert!(rig.metrics().await.contains("outcome=\"closed\",status=\"5xx\"} "), "operators see the cause");
}
