//! What is passed on, what is refused, and how that reads.

use std::sync::{Arc, Mutex};

use http::HeaderMap;
use tollgate_tower::{CallerAttributes, TollgateLayer};

use crate::support::{app, engine, layer, request, send, status, text};

const TWO: &str = "rules: [{ name: orders, key_by: ip, limit: { requests: 2, window: 1m } }]";

fn listed(headers: &HeaderMap) -> Vec<String> {
    headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
}

#[tokio::test]
async fn responses_carry_the_fields_and_refusals_read_as_the_servers() {
    let app = app(layer(TWO));
    let allowed = send(&app, request("GET", "/api/orders/7", "192.0.2.1", &[])).await;
    assert_eq!(allowed.status(), 200);
    let fields = listed(allowed.headers());
    for field in ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1", "ratelimit-policy: \"orders\";q=2;w=60"] {
        assert!(fields.iter().any(|line| line == field), "{field} in {fields:?}");
    }
    assert_eq!(text(allowed).await, "order");
    assert_eq!(status(&app, "/api/orders/8", "192.0.2.1", &[]).await, 200);
    let refused = send(&app, request("GET", "/api/orders/9", "192.0.2.1", &[])).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert_eq!(refused.headers()["cache-control"], "no-store");
    let retry: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((30..=33).contains(&retry), "{retry}");
    assert_eq!(
        text(refused).await,
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Quota exceeded\",\
         \"status\":429,\"detail\":\"The limit of the rule 'orders' is reached.\",\"violated-policies\":[\"orders\"],\
         \"error\":\"rate_limited\",\"message\":\"Too many requests. Retry after 30s.\",\"error_code\":\"rate_limited\",\
         \"allowed\":false,\"limit\":2,\"remaining\":0,\"reset_at\":1795026711,\"retry_after\":30,\"retry_after_ms\":30000,\
         \"rule\":\"orders\",\"violated_rule\":{\"name\":\"orders\",\"scope\":\"ip\",\"limit\":2,\"window_seconds\":60}}"
    );
    assert_eq!(status(&app, "/api/orders/7", "192.0.2.2", &[]).await, 200, "another client");
}

#[tokio::test]
async fn identity_cost_skip_and_events_are_the_applications() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let rules = "rules: [{ name: keys, key_by: api_key, limit: { requests: 5, window: 1h } }]";
    let limits = layer(rules)
        .identify(|request| match request.headers.get("x-api-key").and_then(|key| key.to_str().ok()) {
            Some(key) => CallerAttributes::new().api_key(key).tier("free"),
            None => CallerAttributes::new(),
        })
        .cost(|request| if request.uri.path() == "/api/orders/export" { 4 } else { 1 })
        .skip(|request| request.uri.path() == "/health")
        .on_decision(move |event| {
            let line = format!("{} {:?} {:?}", event.endpoint, event.rule, event.status);
            seen.lock().unwrap().push(line);
        });
    let app = app(limits);
    let key = [("x-api-key", "k1")];
    assert_eq!(status(&app, "/api/orders/export", "192.0.2.1", &key).await, 200);
    assert_eq!(status(&app, "/api/orders/export", "192.0.2.1", &key).await, 429);
    assert_eq!(status(&app, "/api/orders/1", "192.0.2.1", &key).await, 200);
    assert_eq!(status(&app, "/api/orders/1", "192.0.2.1", &key).await, 429);
    assert_eq!(status(&app, "/health", "192.0.2.1", &key).await, 200);
    assert_eq!(
        *events.lock().unwrap(),
        [
            "GET /api/orders/export Some(\"keys\") None",
            "GET /api/orders/export Some(\"keys\") Some(429)",
            "GET /api/orders/1 Some(\"keys\") None",
            "GET /api/orders/1 Some(\"keys\") Some(429)",
        ]
    );
}

#[tokio::test]
async fn shadow_mode_counts_and_lets_everything_pass() {
    let engine = Arc::new(engine(TWO));
    let app = app(TollgateLayer::embedded(engine.clone()).shadow());
    for _ in 0..5 {
        let response = send(&app, request("GET", "/api/orders/7", "192.0.2.1", &[])).await;
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("retry-after"));
    }
    let asked = tollgate_tower::Request::new().with(tollgate_tower::Attribute::Ip, "192.0.2.1");
    assert!(!engine.decide_now(&asked.peek()).is_allowed(), "it was counted");
}

#[tokio::test]
async fn callers_of_grpc_get_a_status_of_grpc() {
    let app = app(layer(TWO));
    let grpc = [("content-type", "application/grpc+proto")];
    for _ in 0..2 {
        send(&app, request("POST", "/shop.Orders/Place", "192.0.2.1", &grpc)).await;
    }
    let refused = send(&app, request("POST", "/shop.Orders/Place", "192.0.2.1", &grpc)).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["grpc-status"].to_str().unwrap()), (200, "8"));
    assert_eq!(refused.headers()["content-type"], "application/grpc");
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(text(refused).await, "");
}

#[tokio::test]
async fn a_request_without_an_address_and_an_identity_is_an_error_of_the_application() {
    let app = app(layer(TWO));
    let mut unknown = request("GET", "/api/orders/7", "192.0.2.1", &[]);
    unknown.extensions_mut().clear();
    assert_eq!(send(&app, unknown).await.status(), 500);
}

#[tokio::test]
async fn a_denial_can_be_rewritten() {
    let limits = layer(TWO).cost(|_| 3).on_denied(|mut response| {
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        response.map(|_| http_body_util::Full::from("later"))
    });
    let refused = send(&app(limits), request("GET", "/api/orders/7", "192.0.2.1", &[])).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(text(refused).await, "later");
}
