//! What requests cost, from every source: what is charged, what is settled, and what is refused before anything is.

use crate::app::App;
use crate::rig::{Answer, Rig, until};
use crate::upstreams::closed_port;

const RULES: &str = "rules:\n  - { name: units, key_by: ip, meter: units, limit: { amount: 100000, window: 7d, algorithm: \
                     fixed_window } }\n";

/// A gateway whose route charges `units` from this source, beside one that shows what is left of them.
fn rig(app: &App, source: &str) -> Rig {
    let routes = format!(
        "upstreams: {{ api: {{ servers: {}, ejection: {{ after: 0 }}, timeouts: {{ first_byte: 100ms }} }} }}\nroutes:\n  \
         - {{ path: /left, upstream: api, cost: {{ units: 0 }} }}\n  - {{ path: /*, upstream: api, cost: {{ units: \
         {source} }} }}\n",
        app.url()
    );
    Rig::routed(RULES, &routes)
}

/// Waits until this much has been charged: amounts are settled just after a response has ended.
async fn charged(rig: &Rig, units: u64) {
    let wanted = (100_000 - units).to_string();
    until(async || rig.get("/left").await.field("X-RateLimit-Remaining") == Some(&wanted)).await;
}

async fn post(rig: &Rig, path: &str, fields: &str, body: &str) -> Answer {
    let mut caller = rig.connect().await;
    let length = body.len();
    caller.send(&format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n{body}")).await;
    caller.answer().await
}

#[tokio::test]
async fn amounts_of_the_request_are_charged_before_it_is_forwarded() {
    let app = App::start().await;
    for (source, path, body, units) in [
        ("5", "/echo", "x", 5),
        ("{ request: bytes }", "/echo", "hello", 5),
        ("{ request: { query: ids } }", "/echo?ids=1,2,3", "x", 3),
        ("{ request: { json: /orders } }", "/echo", r#"{"orders":[1,2,3,4]}"#, 4),
        ("{ request: jsonrpc }", "/echo", r#"[{"id":1},{"id":2}]"#, 2),
        ("[1, { request: { json: /orders } }]", "/echo", r#"{"orders":[1,2]}"#, 3),
        ("{ request: graphql }", "/echo", r#"{"query":"{ users(first: 20) { name } }"}"#, 21),
    ] {
        let rig = rig(&app, source);
        let answer = post(&rig, path, "Content-Type: application/json\r\n", body).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, body), "{source}: the body arrives as it was sent");
        charged(&rig, units).await;
    }
}

#[tokio::test]
async fn amounts_of_the_response_are_settled_when_it_ends() {
    let app = App::start().await;
    for (source, path, units) in [
        ("{ response: { header: x-points }, estimate: 50 }", "/priced", 7),
        ("{ response: { json: /usage/rows }, estimate: 50 }", "/priced", 42),
        ("{ response: bytes, estimate: 50 }", "/priced", 29),
        ("[1, { response: bytes, estimate: 50, per: 10 }]", "/priced", 4),
        ("{ response: { header: x-points }, estimate: 50 }", "/other", 50),
        ("{ response: bytes, estimate: 50 }", "/cut", 9),
        ("{ response: bytes, estimate: 50 }", "/silent", 50),
        ("{ response: { header: x-points }, estimate: 50 }", "/hangup", 50),
    ] {
        let rig = rig(&app, source);
        let mut caller = rig.connect().await;
        caller.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
        caller.rest().await;
        charged(&rig, units).await;
    }
}

#[tokio::test]
async fn a_request_that_reached_no_server_costs_nothing_of_its_response() {
    let app = App::start().await;
    let (_socket, gone) = closed_port();
    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }}, gone: {{ servers: {} }} }}\nroutes:\n  - {{ path: /left, upstream: api, cost: {{ units: 0 }} }}\n  - {{ path: /*, upstream: gone, cost: {{ units: [2, {{ response: bytes, estimate: 50 }}] }} }}\n",
        app.url(),
        gone
    );
    let rig = Rig::routed(RULES, &routes);
    until(async || rig.get("/left").await.status == 200).await;
    let answer = rig.get("/x").await;
    assert_eq!(answer.status, 502, "{answer:?}");
    charged(&rig, 2).await;
}

#[tokio::test]
async fn bytes_of_a_request_without_a_length_are_counted_as_they_pass() {
    let app = App::start().await;
    let rig = rig(&app, "{ request: bytes, estimate: 50 }");
    let mut caller = rig.connect().await;
    caller
        .send("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n2\r\n..\r\n0\r\n\r\n")
        .await;
    assert_eq!(caller.answer().await.status, 200);
    charged(&rig, 7).await;
}

#[tokio::test]
async fn a_body_that_was_read_is_sent_with_its_length() {
    let app = App::start().await;
    let rig = rig(&app, "{ request: { json: /orders } }");
    let mut caller = rig.connect().await;
    let chunks = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{\"orders\":[1]\r\n1\r\n}\r\n0\r\n\r\n";
    caller.send(chunks).await;
    assert_eq!(caller.answer().await.body, "{\"orders\":[1]}");
    let seen = app.seen().concat().to_ascii_lowercase();
    assert!(seen.contains("content-length: 14") && !seen.contains("transfer-encoding"), "{seen}");
}

#[tokio::test]
async fn a_body_that_the_server_would_read_otherwise_is_refused() {
    let app = App::start().await;
    let rig = rig(&app, "{ request: { json: /orders } }");
    for field in ["Content-Type: application/json; charset=utf-7", "Content-Encoding: gzip"] {
        let mut caller = rig.connect().await;
        caller.send(&format!("POST /x HTTP/1.1\r\nHost: a\r\n{field}\r\nContent-Length: 2\r\n\r\n{{}}")).await;
        let answer = caller.answer().await;
        assert!(answer.status == 400 && answer.body.contains("bad_body"), "{field}: {answer:?}");
    }
    assert!(app.seen().is_empty());
}

#[tokio::test]
async fn what_costs_too_much_is_refused_before_it_is_charged() {
    let app = App::start().await;
    let deep = format!(r#"{{"query":"{}"}}"#, "{ a ".repeat(12) + &"}".repeat(12));
    for (source, body, status, code) in [
        ("{ request: graphql }", deep.as_str(), 400, "graphql_too_deep"),
        ("{ request: graphql }", r#"{"query":"{ a"}"#, 400, "bad_graphql"),
        ("{ request: graphql, max: 5 }", r#"{"query":"{ users(first: 20) { name } }"}"#, 400, "query_too_expensive"),
        ("{ request: { json: /orders }, max: 1 }", r#"{"orders":[1,2]}"#, 400, "batch_too_large"),
        ("{ request: { json: /orders } }", "{", 400, "bad_body"),
        ("{ request: bytes, max: 3 }", "hello", 413, "body_too_large"),
    ] {
        let rig = rig(&app, source);
        let answer = post(&rig, "/echo", "Content-Type: application/json\r\n", body).await;
        assert_eq!(answer.status, status, "{source}: {answer:?}");
        assert_eq!(answer.field("Content-Type"), Some("application/problem+json"));
        assert!(answer.body.contains(code), "{source}: {}", answer.body);
        assert!(app.seen().is_empty(), "{source}");
        charged(&rig, 0).await;
        app.seen();
    }
}

#[tokio::test]
async fn a_body_without_a_length_ends_at_the_maximum_of_the_route() {
    let app = App::start().await;
    let rig = rig(&app, "{ request: bytes, max: 3 }");
    let mut caller = rig.connect().await;
    caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").await;
    assert!(caller.rest().await.starts_with("HTTP/1.1 413 "));
}

#[tokio::test]
async fn a_cost_of_requests_counts_for_rules_without_a_meter() {
    let app = App::start().await;
    let rules = "rules: [{ name: ten, key_by: ip, limit: { requests: 10, window: 7d, algorithm: fixed_window } }]\n";
    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }} }}\nroutes: [{{ path: /*, upstream: api, cost: 4 }}]\n",
        app.url()
    );
    let rig = Rig::routed(rules, &routes);
    assert_eq!(rig.get("/a").await.field("X-RateLimit-Remaining"), Some("6"));
    assert_eq!(rig.get("/a").await.field("X-RateLimit-Remaining"), Some("2"));
    assert_eq!(rig.get("/a").await.status, 429);
}

/// The form that clients with automatic persisted queries answer with the text of the query.
#[tokio::test]
async fn a_query_that_is_sent_by_its_hash_alone_is_asked_for_its_text() {
    let app = App::start().await;
    let rig = rig(&app, "{ request: graphql }");
    let fields = "Content-Type: application/json\r\n";
    let hash = r#""extensions":{"persistedQuery":{"version":1,"sha256Hash":"abc"}}"#;
    let answer = post(&rig, "/echo", fields, &format!(r#"{{"variables":{{"n":100000}},{hash}}}"#)).await;
    assert_eq!((answer.status, answer.field("Content-Type")), (200, Some("application/json")));
    assert_eq!(
        answer.body,
        r#"{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#
    );
    assert!(app.seen().is_empty());
    charged(&rig, 0).await;
    let query = r#""query":"query($n: Int) { users(first: $n) { name } }""#;
    let answer = post(&rig, "/echo", fields, &format!(r#"{{{query},"variables":{{"n":20}},{hash}}}"#)).await;
    assert_eq!(answer.status, 200);
    charged(&rig, 21).await;
}

#[tokio::test]
async fn only_persisted_queries_pass_where_a_file_names_them() {
    let app = App::start().await;
    let url = app.url();
    let rig = Rig::with(RULES, |config, dir| {
        std::fs::write(dir.join("queries.json"), r#"{"one":"{ users { name } }"}"#).unwrap();
        let path = dir.join("routes.yaml");
        let routes = format!(
            "upstreams: {{ api: {{ servers: {url} }} }}\nroutes: [{{ path: /*, upstream: api, cost: {{ units: {{ request: \
             {{ graphql: {{ persisted_only: queries.json }} }} }} }} }}]\n"
        );
        std::fs::write(&path, routes).unwrap();
        config.gateway.routes = Some(path);
    });
    let fields = "Content-Type: application/json\r\n";
    assert_eq!(post(&rig, "/echo", fields, r#"{"query":"{ users { name } }"}"#).await.status, 200);
    let refused = post(&rig, "/echo", fields, r#"{"query":"{ users { email } }"}"#).await;
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("query_not_persisted"), "{}", refused.body);
}
