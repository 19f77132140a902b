//! Listeners: which paths, who may come, over what.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tollgate_net::Address;

use crate::rig::{Rig, call};

const RULES: &str = "rules: [{ name: all, key_by: client_key, limit: { requests: 5, window: 1h } }]";
const BODY: &str = r#"{"client_key":"a"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_that_are_none_are_told_so() {
    let rig = Rig::start(RULES);
    let get = rig.call("GET", "/v1/check", "", "").await;
    assert_eq!((get.status, get.field("allow")), (405, Some("POST")));
    assert_eq!(rig.post("/live", "").await.field("allow"), Some("GET, HEAD"));
    for (method, path, fields, body, status, code) in [
        ("POST", "/v2/check", "", BODY, 404, "no_such_path"),
        ("DELETE", "/v1/check", "", "", 405, "method_not_allowed"),
        ("post", "/v1/check", "", BODY, 405, "method_not_allowed"),
        ("TRACE", "/live", "", "", 405, "method_not_allowed"),
        ("POST", "/v1/check?staus=429", "", BODY, 400, "unknown_parameter"),
        ("POST", "/v1/check", "Content-Encoding: gzip\r\n", BODY, 415, "encoded_body"),
        ("POST", "/v1/check", "Content-Type: text/plain\r\n", BODY, 415, "not_json_media_type"),
        ("POST", "/v1/check", "Origin: https://evil.example\r\n", BODY, 403, "from_a_page"),
        (
            "POST",
            "/v1/check",
            "Sec-Fetch-Site: cross-site\r\nContent-Type: application/json\r\n",
            BODY,
            403,
            "from_a_page",
        ),
        ("POST", "/v1/check", "", "", 400, "empty_body"),
        ("POST", "/v1/settle", "", "{}", 400, "missing_field"),
        ("GET", "/metrics", "", "", 404, "no_such_path"),
    ] {
        let answer = rig.call(method, path, fields, body).await;
        let json = answer.json();
        assert_eq!((answer.status, json["code"].as_str()), (status, Some(code)), "{method} {path}");
        assert_eq!(answer.field("content-type"), Some("application/problem+json"));
        assert_eq!(answer.field("cache-control"), Some("no-store"));
    }
    let curl = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(rig.call("POST", "/v1/check", curl, BODY).await.status, 200, "what curl -d says");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_life_readiness_and_figures() {
    let rig = Rig::start(RULES);
    rig.post("/v1/check", BODY).await;
    for path in ["/live", "/ready"] {
        assert_eq!(call(&rig.admin, "GET", path, "", "").await.status, 200);
        assert_eq!(rig.call("GET", path, "", "").await.status, 200);
    }
    let head = rig.call("HEAD", "/live", "", "").await;
    assert_eq!((head.status, head.field("content-length"), head.body.len()), (200, Some("13"), 0));
    let fault = rig.call("HEAD", "/live", "", "a body").await;
    assert_eq!((fault.status, fault.body.len()), (413, 0), "whatever is said to HEAD is said without a body");
    let metrics = call(&rig.admin, "GET", "/metrics", "", "").await;
    assert_eq!(metrics.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let accepting = "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3\r\n";
    let openmetrics = call(&rig.admin, "GET", "/metrics", accepting, "").await;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(openmetrics.field("content-type"), Some(media));
    assert!(openmetrics.body.ends_with(b"# EOF\n") && !metrics.body.ends_with(b"# EOF\n"));
    let text = String::from_utf8(metrics.body).unwrap();
    for line in [
        "tollgate_requests_allowed_total{namespace=\"default\",rule=\"all\",tier=\"\",mode=\"store\"} 1\n",
        "tollgate_http_requests_total{path=\"/v1/check\",status=\"200\"} 1\n",
        "tollgate_decision_seconds_count 1\n",
        "tollgate_generation 1\n",
        "tollgate_keys 1\n",
        "tollgate_connections{state=\"open\"} ", // one at least: those before may still be on their way out
    ] {
        assert!(text.contains(line), "{line} not in\n{text}");
    }
}

/// The pages of operators read requests as strictly as the data API does.
#[tokio::test(flavor = "multi_thread")]
async fn pages_refuse_encoded_bodies_and_bad_timeouts() {
    let rig = Rig::with(RULES, |config, _| config.metrics = Some(Address::loopback(0)));
    let [_, metrics] = rig.data.as_slice() else { panic!("data and metrics, not {:?}", rig.data) };
    for (listener, pages) in [(&rig.admin, &["/live", "/ready", "/metrics"][..]), (metrics, &["/live", "/stats"])] {
        for page in pages {
            for (fields, status, code) in [
                ("Content-Encoding: gzip\r\n", 415, "encoded_body"),
                ("Request-Timeout: soon\r\n", 400, "bad_timeout"),
                ("Request-Timeout: 1s\r\nRequest-Timeout: 2s\r\n", 400, "malformed_request"),
            ] {
                let answer = call(listener, "GET", page, fields, "").await;
                assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{page} {fields}");
            }
            let good = "Content-Encoding: identity\r\nRequest-Timeout: 2s\r\n";
            assert_eq!(call(listener, "GET", page, good, "").await.status, 200, "{page}");
            let head = call(listener, "HEAD", page, "", "").await;
            assert_eq!((head.status, head.body.len(), head.field("date").is_some()), (200, 0, true), "{page}");
            assert!(head.field("content-length").is_some_and(|length| length != "0"), "{page}: {head:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_for_where_one_is_configured() {
    let rig = Rig::with(RULES, |config, dir| {
        let file = dir.join("tokens");
        std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").expect("a file");
        config.token_file = Some(file);
    });
    let none = rig.post("/v1/check", BODY).await;
    assert_eq!((none.status, none.field("www-authenticate")), (401, Some("Bearer")));
    let with = |token: &'static str| rig.call("POST", "/v1/check", token, BODY);
    assert_eq!(with("Authorization: Bearer 0123456789abcdef0123456789abcdee\r\n").await.status, 401);
    assert_eq!(with("Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n").await.status, 200);
    assert_eq!(rig.call("GET", "/ready", "", "").await.status, 200, "health needs none");

    let changed = std::fs::write(rig.dir.path().join("tokens"), "another-token-of-a-decent-length-now\n");
    changed.expect("a file");
    let fresh = "Authorization: Bearer another-token-of-a-decent-length-now\r\n";
    let known = async { while with(fresh).await.status != 200 {} };
    tokio::time::timeout(Duration::from_secs(20), known).await.expect("read again when it changes");
    assert_eq!(with("Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_listeners_share_one_truth_and_a_socket_file_is_one() {
    let rig = Rig::with(RULES, |config, dir| config.http.push(Address::Unix(dir.join("socket"))));
    let [tcp, unix] = rig.data.as_slice() else { panic!("two listeners, not {:?}", rig.data) };
    let json = "Content-Type: application/json\r\n";
    assert_eq!(call(tcp, "POST", "/v1/check", json, BODY).await.json()["remaining"], 4);
    assert_eq!(call(unix, "POST", "/v1/check", json, BODY).await.json()["remaining"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_without_tls_is_understood_on_the_same_port() {
    let rig = Rig::start(RULES);
    let Some(Address::Tcp(address)) = rig.data.first() else { panic!("a TCP address") };
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let sender = Arc::new(sender);
    let calls = (0..8).map(|_| {
        let mut sender = (*sender).clone();
        tokio::spawn(async move {
            let request =
                http::Request::post("http://x/v1/check?status=429").header("content-type", "application/json");
            let response = sender.send_request(request.body(Full::new(Bytes::from_static(BODY.as_bytes()))).unwrap());
            let response = response.await.unwrap();
            let status = response.status().as_u16();
            let policy = response.headers().get("ratelimit-policy").cloned();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(policy.is_some() && serde_json::from_slice::<serde_json::Value>(&body).is_ok());
            status
        })
    });
    let mut statuses = Vec::new();
    for call in calls {
        statuses.push(call.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_here_for_the_admin_api_is_told_where_it_is() {
    let rig = Rig::start(RULES);
    let admin = rig.admin.to_string();
    for path in ["/rules", "/v1/rules", "/v1/rules/a", "/overrides"] {
        let answer = rig.post(path, "{}").await;
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        let there = format!("http://{admin}/v1/{}", path.trim_start_matches("/v1").trim_start_matches('/'));
        assert!(answer.status == 404 && detail.contains(&there), "{path}: {} {detail}", answer.status);
    }
    let other = rig.post("/nothing", "{}").await;
    assert!(other.status == 404 && !other.json()["detail"].as_str().unwrap().contains(&admin));
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_say_how_long_they_wait() {
    let rig = Rig::start("rules: [{ key_by: client_key, limit: { requests: 5, window: 1h } }]");
    let body = r#"{"client_key":"a"}"#;
    let with = |value: &str| format!("Content-Type: application/json\r\nRequest-Timeout: {value}\r\n");
    let good = rig.call("POST", "/v1/check", &with("50ms"), body).await;
    assert_eq!((good.status, &good.json()["remaining"]), (200, &4.into()));
    let bad = rig.call("POST", "/v1/check", &with("soon"), body).await;
    assert_eq!((bad.status, &bad.json()["code"]), (400, &"bad_timeout".into()));
    assert_eq!(rig.post("/v1/check", body).await.json()["remaining"], 3, "nothing was charged for it");
}
