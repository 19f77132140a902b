//! Spellings of paths, methods and addresses that try to pass a limit.

use crate::support::{app, layer, request, send, status};
use axum::Router;
use axum::routing::get;
use tollgate_tower::Cidr;

const ORDERS: &str = "
rules:
  - { name: orders, match: { endpoint: 'GET /api/orders/{id}' }, key_by: ip, limit: { requests: 3, window: 1h } }
";

#[tokio::test]
async fn no_spelling_of_a_nested_path_passes_a_limit_that_is_reached() {
    for by_route in [false, true] {
        let limits = layer(ORDERS);
        let app = app(if by_route { limits.by_route() } else { limits });
        for _ in 0..3 {
            assert_eq!(status(&app, "/api/orders/1", "192.0.2.1", &[]).await, 200);
        }
        let spellings = [
            "/api/orders/2",
            "/api/orders/%31",
            "/api/orders/1?x=1",
            "/api/orders/1;v=2",
            "/%61pi/orders/1",
            "//api/orders/1",
            "/api//orders/1",
            "/api/./orders/1",
            "/x/../api/orders/1",
            "/x/%2e%2e/api/orders/1",
            "/api/orders/1/",
            "/API/orders/1",
            "http://app/api/orders/1",
            "/api/orders/a%2Fb",
            "/api/orders/%zz",
            "/api/orders/a%00b",
            "/api/orders/%ff",
            "/../api/orders/1",
            "/api/orders/a%5Cb",
        ];
        for target in spellings {
            let status = status(&app, target, "192.0.2.1", &[]).await;
            assert!([400, 404, 429].contains(&status), "{target} by_route {by_route}: {status}");
        }
        let head = send(&app, request("HEAD", "/api/orders/1", "192.0.2.1", &[])).await;
        assert_eq!(head.status(), 429, "HEAD counts as GET");
    }
}

#[tokio::test]
async fn a_malformed_path_is_answered_400_and_charged_nothing() {
    let app = app(layer(ORDERS));
    for target in ["/api/orders/a%2Fb", "/api/orders/%zz", "/api/orders/a%00b", "/api/orders/%ff", "/../x"] {
        assert_eq!(status(&app, target, "192.0.2.1", &[]).await, 400, "{target}");
    }
    let response = send(&app, request("GET", "/api/orders/1", "192.0.2.1", &[])).await;
    assert_eq!(response.headers()["x-ratelimit-remaining"], "2");
}

#[tokio::test]
async fn a_layer_inside_of_a_nested_router_sees_the_whole_path() {
    let inner = Router::new().route("/orders/{id}", get(async || "order")).layer(layer(ORDERS));
    let app = Router::new().nest("/api", inner);
    let remaining = async |target| {
        let response = send(&app, request("GET", target, "192.0.2.1", &[])).await;
        response.headers().get("x-ratelimit-remaining").map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(remaining("/api/orders/1").await.as_deref(), Some("2"));
    let by_route = Router::new().route("/orders/{id}", get(async || "order")).layer(layer(ORDERS).by_route());
    let app = Router::new().nest("/api", by_route);
    let response = send(&app, request("GET", "/api/orders/1", "192.0.2.1", &[])).await;
    assert_eq!(response.headers()["x-ratelimit-remaining"], "2", "the route with its prefix");
}

#[tokio::test]
async fn routers_that_fold_case_are_limited_by_lower_case() {
    let app = app(layer(ORDERS).case_insensitive_paths());
    for target in ["/API/orders/1", "/api/%4FRDERS/1", "/Api/Orders/1"] {
        status(&app, target, "192.0.2.1", &[]).await;
    }
    assert_eq!(status(&app, "/api/orders/1", "192.0.2.1", &[]).await, 429);
}

#[tokio::test]
async fn forwarded_addresses_count_only_behind_trusted_proxies() {
    let rules = "rules: [{ key_by: ip, limit: { requests: 1, window: 1h } }]";
    let direct = app(layer(rules));
    assert_eq!(status(&direct, "/health", "192.0.2.1", &[("x-forwarded-for", "203.0.113.1")]).await, 200);
    assert_eq!(status(&direct, "/health", "192.0.2.1", &[("x-forwarded-for", "203.0.113.2")]).await, 429);

    let networks = ["10.0.0.0/8", "127.0.0.0/8"].map(|network| Cidr::parse(network).unwrap());
    let app = app(layer(rules).trusted_proxies(networks));
    let from_proxy = async |fields: &[(&str, &str)]| status(&app, "/health", "10.0.0.1", fields).await;
    assert_eq!(from_proxy(&[("x-forwarded-for", "203.0.113.1, 198.51.100.7")]).await, 200);
    assert_eq!(
        from_proxy(&[("x-forwarded-for", "203.0.113.2, 198.51.100.7")]).await,
        429,
        "the left end is the caller's"
    );
    let two = [("x-forwarded-for", "203.0.113.3"), ("x-forwarded-for", "198.51.100.7, 10.1.2.3")];
    assert_eq!(from_proxy(&two).await, 429, "two fields are one list");
    assert_eq!(from_proxy(&[("x-forwarded-for", "::ffff:198.51.100.7")]).await, 429);
    assert_eq!(from_proxy(&[("x-forwarded-for", "198.51.100.9, unknown")]).await, 200, "the proxy itself");
    assert_eq!(from_proxy(&[("x-forwarded-for", "198.51.100.9, 1.2.3")]).await, 429);
    assert_eq!(status(&app, "/health", "192.0.2.9", &[("x-forwarded-for", "203.0.113.9")]).await, 200);
    assert_eq!(status(&app, "/health", "192.0.2.9", &[("x-forwarded-for", "203.0.113.8")]).await, 429);
}
