//! Bad input: J01 to J16 and S01 to S04 of the corpus, as far as they concern the admin API.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::rig::{Answer, JSON, Rig};

async fn post(rig: &Rig, body: &[u8]) -> Answer {
    let fields = format!("{JSON}Authorization: Bearer {}\r\n", rig.operator);
    rig.raw("POST", "/v1/rules", &fields, body).await
}

/// A rule with another limit or window.
fn rule(limit: Value) -> Value {
    json!({ "limit": limit })
}

#[tokio::test(flavor = "multi_thread")]
async fn j01_bodies_that_are_no_objects_are_refused() {
    let rig = Rig::start().await;
    for body in ["", " ", "null", "[]", "\"x\"", "7", "true", "{}", "{", "{\"limit\":}"] {
        let answer = post(&rig, body.as_bytes()).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert!(matches!(answer.code().as_str(), "not_json" | "malformed_body"), "{}", answer.text());
    }
    assert!(post(&rig, b"{}").await.json()["detail"].as_str().unwrap().contains("limit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn j02_s04_deep_and_long_bodies_are_refused_before_they_are_read() {
    let rig = Rig::start().await;
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(129), "]".repeat(129));
    assert_eq!(post(&rig, deep.as_bytes()).await.expect(400).code(), "not_json");
    let long = format!("{{\"description\":\"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(post(&rig, long.as_bytes()).await.expect(413).code(), "body_too_large");
    for length in [1u64 << 30, 4 << 30, u64::MAX] {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        let head = format!(
            "POST /v1/rules HTTP/1.1\r\nHost: localhost\r\n{JSON}Authorization: Bearer {}\r\nContent-Length: {length}\r\n\r\n",
            rig.operator
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.expect("an answer at once").unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 413 "), "{}", String::from_utf8_lossy(&answer));
    }
    let nothing = rig.call("POST", "/v1/rules/refresh", "", &"x".repeat(1000)).await;
    assert_eq!(nothing.expect(413).code(), "body_too_large", "where no body belongs, none is read");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_object_is_no_body() {
    let rig = Rig::start().await;
    for (fields, nothing) in [("", ""), ("", "{}"), (JSON, " { }\n"), ("Content-Type: text/plain\r\n", "{}")] {
        rig.call("POST", "/v1/rules/refresh", fields, nothing).await.expect(202);
    }
    for something in ["{\"a\":1}", "[]", "null", "{", "x"] {
        let answer = rig.call("POST", "/v1/rules/refresh", JSON, something).await;
        assert_eq!(answer.expect(400).code(), "unexpected_body", "{something}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn j04_unknown_fields_are_reported_with_a_suggestion() {
    let rig = Rig::start().await;
    for (body, field, meant) in [
        (json!({ "limt": 5 }), "limt", "limit"),
        (json!({ "limit": { "requests": 5, "windw": "1s", "window": "1s" } }), "limit.windw", "window"),
        (json!({ "limit": 5, "window_seconds": 1, "endpoint": "/x" }), "endpoint", ""),
    ] {
        let answer = post(&rig, body.to_string().as_bytes()).await.expect(400);
        assert!(answer.faults().contains(&(field.to_owned(), "unknown-field".to_owned())), "{}", answer.text());
        assert!(answer.text().contains(meant), "{}", answer.text());
    }
    let twice = post(&rig, b"{\"limit\":{\"requests\":1,\"requests\":2,\"window\":\"1s\"}}").await.expect(400);
    assert_eq!(twice.faults(), [("limit.requests".to_owned(), "duplicate-field".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn j05_invalid_costs_are_refused() {
    let rig = Rig::start().await;
    for cost in
        ["-1", "-0", "0.5", "1e3", "1e400", "NaN", "\"1\"", "9007199254740993", "18446744073709551616", "true", "null1"]
    {
        let body = format!("{{\"limit\":{{\"requests\":5,\"window\":\"1s\"}},\"cost\":{cost}}}");
        let answer = post(&rig, body.as_bytes()).await;
        assert!(matches!(answer.status, 400 | 422), "{cost}: {} {}", answer.status, answer.text());
    }
    for cost in ["0", "1", "5"] {
        let body = format!("{{\"limit\":{{\"requests\":5,\"window\":\"1s\"}},\"cost\":{cost},\"name\":\"{cost}\"}}");
        post(&rig, body.as_bytes()).await.expect(201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn j08_invalid_text_is_refused() {
    let rig = Rig::start().await;
    let utf16: Vec<u8> = "{\"limit\":1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let odd: [&[u8]; 6] = [
        b"{\"description\":\"\\ud800\"}",
        b"{\"description\":\"a\\u0000b\"}",
        b"\xef\xbb\xbf{}",
        &utf16,
        b"{\"description\":\"\xff\"}",
        b"{\"description\":\"a\x01b\"}",
    ];
    for body in odd {
        post(&rig, body).await.expect(400);
    }
    let nul = rig.send("POST", "/v1/clients", json!({ "client_key": "a\0b" })).await.expect(400);
    assert_eq!(nul.faults(), [("client_key".to_owned(), "not-text".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn j09_only_json_is_accepted() {
    let rig = Rig::start().await;
    let body = "{\"limit\":1,\"window_seconds\":1}";
    for media in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: multipart/form-data\r\n",
        "Content-Type: application/jsonx\r\n",
    ] {
        assert_eq!(rig.call("POST", "/v1/rules", media, body).await.expect(415).code(), "wrong_media_type", "{media}");
    }
    let packed = format!("{JSON}Content-Encoding: gzip\r\n");
    assert_eq!(rig.call("POST", "/v1/rules", &packed, body).await.expect(415).code(), "encoded_body");
    rig.call("POST", "/v1/rules", "Content-Type: Application/JSON; charset=utf-8\r\n", body).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn j11_j12_j13_limits_that_cannot_be_are_refused_with_their_field() {
    let rig = Rig::start().await;
    for (limit, field) in [
        (json!({ "requests": 0, "window": "1s" }), "limit"),
        (json!({ "requests": -1, "window": "1s" }), "limit.requests"),
        (json!({ "requests": 9_223_372_036_854_775_808_u64, "window": "1s" }), "limit.requests"),
        (json!({ "requests": u64::MAX, "window": "1s" }), "limit.requests"),
        (json!({ "requests": 1, "window": 0 }), "limit.window"),
        (json!({ "requests": 1, "window": "0s" }), "limit.window"),
        (json!({ "requests": 1, "window": "1ns" }), "limit.window"),
        (json!({ "requests": 1, "window": "1000000000000000000s" }), "limit.window"),
        (json!({ "requests": 1, "window": "1M" }), "limit.window"),
        (json!({ "requests": 1, "window": "PT1M" }), "limit.window"),
        (json!({ "requests": 1, "window": "60" }), "limit.window"),
        (json!({ "requests": 1, "window": 60 }), "limit.window"),
        (json!({ "requests": 9_007_199_254_740_992_u64, "window": "1ms" }), "limit"),
        (json!({ "requests": 1, "window": "1s", "burst": -1 }), "limit.burst"),
        (json!({ "requests": 1, "window": "1s", "burst": 1_000_000_001 }), "limit.burst"),
        (json!({ "requests": 1e-300, "window": "1s" }), "limit.requests"),
        (json!({ "requests": 1, "window": "1500us" }), "limit.window"),
    ] {
        let answer = post(&rig, rule(limit.clone()).to_string().as_bytes()).await;
        assert!(matches!(answer.status, 400 | 422), "{limit}: {}", answer.status);
        assert!(answer.faults().iter().any(|(path, _)| path.starts_with(field)), "{limit}: {}", answer.text());
        let error = &answer.json()["errors"][0];
        assert!(error["help"].is_string(), "says what would be right: {error}");
    }
    post(&rig, rule(json!({ "requests": 1, "window": "1m" })).to_string().as_bytes()).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_told_at_once() {
    let rig = Rig::start().await;
    let body = json!({
        "rule_id": 7, "enabled": "yes", "mode": "of", "match": { "TIER": "x" }, "limit": { "requests": "5", "window": "1 minute" },
    });
    let own = rig.send("POST", "/v1/rules", body.clone()).await.expect(400);
    let told: Vec<String> = own.faults().into_iter().map(|(field, _)| field).collect();
    for field in ["rule_id", "enabled"] {
        assert!(told.iter().any(|other| other == field), "{field} of {told:?}");
    }
    let mut rest = body;
    rest.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "rule_id" | "enabled"));
    let rest = rig.send("POST", "/v1/rules", rest).await.expect(400);
    let told: Vec<String> = rest.faults().into_iter().map(|(field, _)| field).collect();
    for field in ["mode", "match.TIER", "limit.requests", "limit.window"] {
        assert!(told.iter().any(|other| other == field), "{field} of {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s01_odd_texts_are_stored_and_searched_for_literally() {
    let rig = Rig::start().await;
    let odd = [
        "'; DROP TABLE rate_limit_rules;--",
        "\" OR 1=1",
        "%' ESCAPE '",
        "_",
        "%",
        "\\",
        "${jndi:ldap://x}",
        "é🦀\u{202e}",
        "<img src=x onerror=alert(1)>",
    ];
    for text in odd {
        let client = json!({ "client_key": format!("key:{text}"), "tier": text, "attributes": { "a": text } });
        let made = rig.send("POST", "/v1/clients", client.clone()).await.expect(201);
        let path = made.field("location").unwrap();
        let shown = rig.get(path).await.expect(200).json();
        assert_eq!(
            (&shown["client_key"], &shown["tier"], &shown["attributes"]),
            (&client["client_key"], &client["tier"], &client["attributes"])
        );
    }
    for text in odd {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for query in [format!("tier={encoded}"), format!("prefix=key:{encoded}")] {
            let found = rig.get(&format!("/v1/clients?{query}")).await.expect(200).json();
            let found = found["clients"].as_array().unwrap().clone();
            assert!(found.iter().any(|client| client["tier"] == text), "{text} by {query}");
            assert!(
                found.iter().all(|client| client["client_key"].as_str().unwrap().starts_with(&format!("key:{text}"))),
                "{text}"
            );
        }
    }
    let all = rig.get("/v1/clients").await.expect(200).json();
    assert_eq!(all["clients"].as_array().unwrap().len(), odd.len(), "the tables are still there");
}
