//! The OpenAPI document and the page about the API.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;
use tollgate_admin::{AdminAccess, endpoints, paths};

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn the_description_and_its_page_need_no_token() {
    let rig = Rig::start().await;
    let document = rig.raw("GET", "/openapi.json", "", b"").await.expect(200);
    assert_eq!(document.field("content-type"), Some("application/json"));
    let document = document.json();
    assert_eq!(document["openapi"], "3.1.0");
    for endpoint in endpoints() {
        let operation = &document["paths"][endpoint.path][endpoint.method.name().to_ascii_lowercase()];
        assert_eq!(operation["operationId"], endpoint.id, "{endpoint:?}");
        assert_eq!(
            operation["security"] == Value::Array(Vec::new()),
            endpoint.access == AdminAccess::Open,
            "{endpoint:?}"
        );
    }
    for (path, media) in [
        ("/docs", "text/html; charset=utf-8"),
        ("/docs/style.css", "text/css; charset=utf-8"),
        ("/docs/script.js", "text/javascript; charset=utf-8"),
    ] {
        let answer = rig.raw("GET", path, "", b"").await.expect(200);
        assert_eq!(answer.field("content-type"), Some(media));
        assert!(answer.body.len() > 500, "{path}");
    }
    let head = rig.raw("HEAD", "/openapi.json", "", b"").await.expect(200);
    assert!(head.body.is_empty() && head.field("content-length").unwrap().len() > 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_that_are_none_are_told_so() {
    let rig = Rig::start().await;
    for (method, path, allow) in [
        ("PATCH", "/v1/rules", "GET, POST, HEAD"),
        ("POST", "/v1/rules/a", "GET, PUT, PATCH, DELETE, HEAD"),
        ("GET", "/v1/rules/refresh", "POST"),
        ("GET", "/admin/rate-rules", "PUT"),
        ("TRACE", "/v1/mode", "GET, PUT, HEAD"),
        ("get", "/v1/mode", "GET, PUT, HEAD"),
    ] {
        let answer = rig.call(method, path, "", "").await.expect(405);
        assert_eq!(
            (answer.code().as_str(), answer.field("allow")),
            ("method_not_allowed", Some(allow)),
            "{method} {path}"
        );
    }
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/rules/",
        "/v1/rules//",
        "/v1/rules/a/b",
        "/v2/rules",
        "/v1/check",
        "//v1/rules",
        "/docs/../v1/rules",
    ] {
        assert_eq!(rig.get(path).await.expect(404).code(), "no_such_path", "{path}");
    }
    for path in ["/v1/rules/%", "/v1/rules/%zz", "/v1/rules/%ff", "/v1/rules/%00"] {
        assert_eq!(rig.get(path).await.expect(400).code(), "bad_path", "{path}");
    }
    for (query, code) in [
        ("teir=free", "unknown_parameter"),
        ("tier=free&tier=pro", "bad_parameter"),
        ("tier=", "bad_parameter"),
        ("limit=0", "bad_parameter"),
        ("limit=1001", "bad_parameter"),
        ("limit=+5", "bad_parameter"),
        ("limit=1e2", "bad_parameter"),
        ("enabled=yes", "bad_parameter"),
        ("source=sql", "bad_parameter"),
        ("tier=%zz", "bad_parameter"),
        ("tier=%00", "bad_parameter"),
    ] {
        let answer = rig.get(&format!("/v1/rules?{query}")).await.expect(400);
        assert_eq!(answer.code(), code, "{query}");
    }
    let typo = rig.get("/v1/rules?teir=free").await.json();
    assert!(typo["detail"].as_str().unwrap().contains("did you mean tier?"), "{typo}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_by_their_path_in_the_table() {
    let rig = Rig::start().await;
    rig.get("/v1/rules/secret-name").await.expect(404);
    let text = rig.raw("GET", "/metrics", "", b"").await.expect(200).text();
    assert!(text.contains("tollgate_http_requests_total{path=\"/v1/rules/{rule_id}\",status=\"404\"} 1"), "{text}");
    assert!(!text.contains("secret-name"));
    assert!(
        paths().any(|path| path == "/v1/rules/{rule_id}") && tollgate_http::paths().any(|path| path == "/v1/check")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_understood_on_the_same_port() {
    let rig = Rig::start().await;
    let stream = TokioIo::new(TcpStream::connect(rig.address).await.unwrap());
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let sender = Arc::new(sender);
    let call = |host: &'static str, method: &'static str, fields: Vec<(&'static str, String)>, body: &'static str| {
        let mut sender = (*sender).clone();
        let mut request = http::Request::builder().method(method).uri(format!("http://{host}/v1/rules"));
        for (name, value) in fields {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap();
        async move {
            let response = sender.send_request(request).await.unwrap();
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, serde_json::from_slice::<Value>(&body).unwrap())
        }
    };
    let token = || ("authorization", format!("Bearer {}", rig.operator));
    let json = || ("content-type", "application/json".to_owned());
    let body = "{\"rule_id\":\"a\",\"limit\":1,\"window_seconds\":1}";
    let (status, made) = call("localhost", "POST", vec![token(), json()], body).await;
    assert_eq!((status, &made["rule_id"]), (201, &Value::from("a")));
    let (status, problem) = call("evil.example", "GET", vec![token()], "").await;
    assert_eq!((status, &problem["code"]), (421, &Value::from("host_not_allowed")));
    let foreign = ("origin", "https://evil.example".to_owned());
    let (status, problem) = call("localhost", "POST", vec![token(), json(), foreign.clone()], body).await;
    assert_eq!((status, &problem["code"]), (403, &Value::from("other_origin")));
    let own = ("origin", "http://localhost".to_owned());
    let (status, problem) = call("localhost", "POST", vec![token(), json(), own, foreign], body).await;
    assert_eq!((status, &problem["code"]), (400, &Value::from("malformed_request")), "which of them would count?");
    let (status, problem) = call("localhost", "GET", vec![], "").await;
    assert_eq!((status, &problem["code"]), (401, &Value::from("no_token")));
}
