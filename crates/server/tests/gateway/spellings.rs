//! Rows N01–N14 of the spelling corpus through the gateway: a limit on `/login` holds for every path that a real server
//! takes for it.

use crate::rig::Rig;
use crate::servers::{NodeApi, RealApi};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";
const LOGIN: &str = "rules: [{ match: { endpoint: /login }, key_by: ip, limit: { requests: 1, window: 1h } }]\n";
const ORDERS: &str = "escaped_slash: keep\nrules: [{ match: { endpoint: \"GET /api/orders/{id}\" }, key_by: ip, limit: { requests: 1, window: 1h } }]\n";

/// A spelling, and the path that the server gets; none if it is refused.
const SPELLINGS: &[(&str, &str, Option<&str>)] = &[
    ("n01", "/login/", Some("/login/")),
    ("n01", "//login", Some("/login")),
    ("n01", "/./login", Some("/login")),
    ("n01", "/x/../login", Some("/login")),
    ("n01", "/login/.", Some("/login")),
    ("n01", "/x/%2e%2e/login", Some("/login")),
    ("n02", "/%6Cogin", Some("/login")),
    ("n02", "/%6cogin", Some("/login")),
    ("n02", "/log%69n?next=%2F", Some("/login?next=%2F")),
    ("pchar", "/users/%40me", Some("/users/@me")),
    ("pchar", "/v1/a%3Acancel%21", Some("/v1/a:cancel!")),
    ("pchar", "/a%2Bb", Some("/a%2Bb")),
    ("pchar", "/a+b/*", Some("/a+b/*")),
    ("params", "/login;a=1", None),
    ("params", "/x;y/../login", Some("/login")),
    ("params", "/login%3Ba=1", Some("/login%3Ba=1")),
    ("n03", "/login%2F", None),
    ("n03", "/login%2fx", None),
    ("n03", "/a%5Cb", None),
    ("n03", "/a\\login", None),
    ("n07", "/login%00", None),
    ("n07", "/%ff", None),
    ("n07", "/%zz", None),
    ("n07", "/%u006cogin", None),
    ("n07", "/%c0%ae%c0%ae/login", None),
    ("n07", "/login%", None),
    ("n08", "/login%20", Some("/login%20")),
    ("n08", "/login+", Some("/login+")),
    ("n08", "/login.", Some("/login.")),
    ("n14", "http://a/login", Some("/login")),
    ("n14", "http://a:80//login", Some("/login")),
    ("n14", "http://other/login", None),
    ("dots", "/x/..;/login", None),
    ("dots", "/../login", None),
    ("target", "login", None),
    ("target", "*", None),
    ("target", "/login#x", None),
];

#[tokio::test]
async fn every_server_gets_the_path_that_the_rules_saw() {
    for api in RealApi::all().await {
        let rig = Rig::start(NO_RULES, &api.url());
        for (row, target, expected) in SPELLINGS {
            let mut caller = rig.connect().await;
            caller.send(&format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
            let answer = caller.rest().await;
            let name = api.name();
            match expected {
                None => assert!(answer.starts_with("HTTP/1.1 400 "), "{name}, {row}, {target}: {answer}"),
                Some(path) => {
                    assert!(answer.starts_with("HTTP/1.1 200 "), "{name}, {row}, {target}: {answer}");
                    let seen = api.seen(1).await;
                    assert_eq!(seen.len(), 1, "{name}, {row}, {target}: {seen:?}");
                    let line = format!("GET {path} HTTP/1.1\r\n");
                    assert!(seen[0].starts_with(&line), "{name}, {row}, {target}: {seen:?}");
                }
            }
        }
        assert!(api.seen(0).await.is_empty(), "{}", api.name());
    }
}

#[tokio::test]
async fn no_spelling_and_no_method_gets_around_a_limit() {
    for api in RealApi::all().await {
        let rig = Rig::start(LOGIN, &api.url());
        assert_eq!(rig.get("/login").await.status, 200);
        let same =
            SPELLINGS.iter().filter(|(_, _, path)| path.is_some_and(|path| path.trim_end_matches('/') == "/login"));
        for (row, target, _) in same {
            for method in ["GET", "POST", "HEAD", "OPTIONS", "PATCH", "get", "PROPFIND"] {
                let mut caller = rig.connect().await;
                let fields = "X-HTTP-Method-Override: GET\r\nX-Original-URL: /free\r\nX-Rewrite-URL: /free\r\n";
                caller
                    .send(&format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n"))
                    .await;
                let answer = caller.rest().await;
                assert!(answer.starts_with("HTTP/1.1 4"), "{}, {row}, {method} {target}: {answer}", api.name());
            }
        }
        assert_eq!(api.seen(1).await.len(), 1, "{}", api.name());
    }
}

/// Characters that may stand in a path with and without an escape have one bucket, whichever way the rule is written.
#[tokio::test]
async fn no_escape_of_a_character_makes_another_path() {
    let api = NodeApi::start().await;
    for rule in ["/users/@me/c++", "/users/%40me/c%2B+"] {
        let rules = format!(
            "rules: [{{ match: {{ endpoint: \"{rule}\" }}, key_by: [ip, endpoint], limit: {{ requests: 1, window: 1h }} }}]\n"
        );
        let rig = Rig::start(&rules, &api.url());
        assert_eq!(rig.get("/users/@me/c++").await.status, 200, "{rule}");
        for spelling in ["/users/%40me/c++", "/users/@me/c%2b+", "/users/@%6de/c%2B%2B", "/users/%40%6D%65/c+%2B"] {
            assert_eq!(rig.get(spelling).await.status, 429, "{rule} {spelling}");
        }
        api.seen(1).await;
    }
    let star = "rules: [{ match: { endpoint: \"/logs-%2A\" }, key_by: ip, limit: { requests: 1, window: 1h } }]\n";
    let rig = Rig::start(star, &api.url());
    assert_eq!(rig.get("/logs-*").await.status, 200);
    assert_eq!(rig.get("/logs-%2a").await.status, 429);
    assert_eq!(rig.get("/logs-1").await.status, 200, "an escaped star of a rule is no wildcard");
    assert_eq!(api.seen(2).await.len(), 2);
}

/// Tomcat, Jetty and Spring find the handler of `/login` for `/login;a=1`.
#[tokio::test]
async fn parameters_of_paths_escape_no_limit() {
    let api = NodeApi::start().await;
    let routed = |option: &str| {
        let url = api.url();
        let routes = format!(
            "upstreams: {{ api: {{ servers: {url} }} }}\nroutes: [{{ path: /login, upstream: api{option} }}]\n"
        );
        Rig::routed(LOGIN, &routes)
    };
    let rig = routed("");
    let refused = rig.get("/login;a=1").await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("path_parameter"), "{refused:?}");

    let rig = routed(", path_parameters: strip");
    assert_eq!(rig.get("/login;a=1").await.status, 200);
    for spelling in ["/login", "/login;a=2", "/;x/login;", "/login;a/b;c/.."] {
        let status = rig.get(spelling).await.status;
        assert!([429, 404].contains(&status), "{spelling}: {status}");
    }
    let seen = api.seen(1).await;
    assert!(seen[0].starts_with("GET /login HTTP/1.1\r\n"), "{seen:?}");

    let rig = routed(", path_parameters: keep");
    assert_eq!(rig.get("/login;a=1").await.status, 200, "another path than /login");
    assert_eq!(rig.get("/login").await.status, 200);
    assert_eq!(rig.get("/login").await.status, 429);
    let seen = api.seen(2).await;
    assert!(seen[0].starts_with("GET /login;a=1 HTTP/1.1\r\n"), "{seen:?}");
}

/// What a server with another notion of method or path would read never arrives, and neither does what CGI takes for it.
#[tokio::test]
async fn n09_fields_that_override_method_or_path_are_not_passed_on() {
    let api = NodeApi::start().await;
    let rig = Rig::start(NO_RULES, &api.url());
    let fields = "X-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: DELETE\r\nX-Method-Override: DELETE\r\n\
                  X-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nX_HTTP_Method_Override: DELETE\r\n\
                  X_Forwarded_For: 6.6.6.6\r\nx-forwarded_for: 6.6.6.6\r\nX_Real_IP: 6.6.6.6\r\nX_own_field: 7\r\n";
    assert_eq!(rig.get_with("/x", fields).await.status, 200);
    let seen = api.seen(1).await.remove(0);
    assert!(!seen.contains("DELETE") && !seen.contains("/admin") && !seen.contains("6.6.6.6"), "{seen}");
    assert!(seen.contains("x_own_field: 7"), "{seen}");
}

/// Express ignores the case and takes `%2F` for a letter: with the options that say so, no order is free.
#[tokio::test]
async fn n05_an_express_api_is_limited_in_every_case() {
    let api = NodeApi::start().await;
    let routes = |options: &str| {
        let url = api.url();
        format!("upstreams: {{ api: {{ servers: {url} }} }}\nroutes: [{{ path: /*, upstream: api{options} }}]\n")
    };
    let orders = [
        "/api/orders/1",
        "/API/orders/1",
        "/api/ORDERS/1/",
        "/Api/Orders/a%2Fb",
        "/api/orders/a%2fb",
        "/api//orders/2",
    ];
    let open =
        Rig::routed(&format!("escaped_slash: keep\n{NO_RULES}"), &routes(", case: insensitive, escaped_slash: keep"));
    for order in orders {
        let answer = open.get(order).await;
        assert!(answer.status == 200 && answer.body.starts_with("order "), "Express has it: {order}: {answer:?}");
    }
    let rig = Rig::routed(ORDERS, &routes(", case: insensitive, escaped_slash: keep"));
    assert_eq!(rig.get(orders[0]).await.status, 200);
    for order in orders {
        assert_eq!(rig.get(order).await.status, 429, "{order}");
    }
    let rig = Rig::routed(ORDERS, &routes(", case: insensitive"));
    for order in ["/API/orders/a%2Fb", "/api/orders%2F1", "/api%2forders/1"] {
        assert_eq!(rig.get(order).await.status, 400, "{order}");
    }
    assert_eq!(api.seen(7).await.len(), 7);
}
