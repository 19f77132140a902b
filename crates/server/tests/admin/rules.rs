//! Rules: create, read, replace, merge, delete; in the full and the short form; on both databases.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tollgate_admin::{FileKind, FileRule};
use tollgate_control::DatabaseUrl;
use tollgate_control::record::Role;
use tollgate_lab::postgres;

use crate::rig::{JSON, Rig};

fn full() -> Value {
    json!({
        "rule_id": "orders-per-user",
        "description": "orders",
        "match": { "endpoint": "POST /api/orders", "tier": ["free", "trial"] },
        "key_by": "user_id",
        "limit": { "requests": 100, "window": "1m", "algorithm": "gcra", "burst": 20 },
        "on_fail": "deny",
    })
}

/// A rule without its timestamps.
fn without_times(mut rule: Value) -> Value {
    for name in ["created_at", "updated_at"] {
        let time = rule[name].take();
        assert!(time.as_str().is_some_and(|time| time.len() == 27 && time.ends_with('Z')), "{name} is {time}");
        rule.as_object_mut().unwrap().remove(name);
    }
    rule
}

async fn life(rig: Rig) {
    let made = rig.send("POST", "/v1/rules", full()).await.expect(201);
    assert_eq!(made.field("location"), Some("/v1/rules/orders-per-user"));
    let first = made.json()["version"].as_i64().unwrap();
    assert_eq!(made.etag(), format!("\"{first}\""));
    let mut expected = full();
    for (name, value) in [
        ("namespace", json!("default")),
        ("name", json!("")),
        ("enabled", json!(true)),
        ("source", json!("database")),
        ("version", json!(first)),
    ] {
        expected[name] = value;
    }
    assert_eq!(without_times(made.json()), expected);
    assert_eq!(rig.get("/v1/rules/orders-per-user").await.expect(200).json(), made.json());
    assert_eq!(rig.send("POST", "/v1/rules", full()).await.expect(409).code(), "conflict");

    let patch = json!({ "limit": { "requests": 50, "burst": null }, "mode": "shadow" });
    let patched = rig.send_if("PATCH", "/v1/rules/orders-per-user", &made.etag(), patch).await.expect(200);
    assert_eq!(patched.json()["limit"], json!({ "requests": 50, "window": "1m", "algorithm": "gcra" }));
    assert_eq!((&patched.json()["mode"], &patched.json()["key_by"]), (&json!("shadow"), &json!("user_id")));
    assert!(patched.json()["version"].as_i64().unwrap() > first);

    let put = json!({ "limit": { "requests": 7, "window": "1h" }, "enabled": false, "name": "Orders" });
    let put = rig.send_if("PUT", "/v1/rules/orders-per-user", &patched.etag(), put).await.expect(200);
    assert_eq!((&put.json()["enabled"], &put.json()["name"]), (&json!(false), &json!("Orders")));
    assert!(put.json().get("match").is_none() && put.json().get("mode").is_none(), "what is not sent is gone");
    assert_eq!(put.json()["created_at"], made.json()["created_at"]);

    // A response may be sent back unmodified and changes nothing.
    let same = rig.send_if("PUT", "/v1/rules/orders-per-user", &put.etag(), put.json()).await.expect(200);
    assert_eq!((same.etag(), same.json()), (put.etag(), put.json()));

    let gone = rig.call("DELETE", "/v1/rules/orders-per-user", "", "").await.expect(204);
    assert_eq!((gone.body.len(), gone.field("content-length")), (0, None));
    assert_eq!(rig.call("DELETE", "/v1/rules/orders-per-user", "", "").await.expect(404).code(), "not_found");
    assert_eq!(rig.get("/v1/rules/orders-per-user").await.expect(404).code(), "not_found");
    let again = rig.send("POST", "/v1/rules", full()).await.expect(201);
    assert!(again.json()["version"].as_i64().unwrap() > first, "a version is never used twice");
    assert_eq!(rig.changes(), 5, "the node heard of every change, and of nothing else");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_rule_on_sqlite() {
    life(Rig::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_rule_on_postgresql() {
    life(Rig::at(DatabaseUrl::Postgres(postgres::database())).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_short_form_is_taken_where_the_full_one_is() {
    let rig = Rig::start().await;
    let short = json!({ "endpoint_pattern": "/api/orders", "key_type": "user", "limit": 100, "window_seconds": 60, "tier": "free" });
    let made = rig.send("POST", "/v1/rules", short).await.expect(201).json();
    let id = made["rule_id"].as_str().unwrap();
    assert!(id.starts_with("rule-") && id.len() == 9, "{id}");
    assert_eq!(made["match"], json!({ "endpoint": "/api/orders", "tier": "free" }));
    assert_eq!(
        (&made["key_by"], &made["limit"]),
        (&json!("user_id"), &json!({ "requests": 100, "window": "1m", "algorithm": "sliding_window_counter" }))
    );

    let path = format!("/v1/rules/{id}");
    let merged = rig.send_if("PATCH", &path, "*", json!({ "limit": 5, "tier": null })).await.expect(200);
    assert_eq!(
        (&merged.json()["limit"], &merged.json()["match"]),
        (
            &json!({ "requests": 5, "window": "1m", "algorithm": "sliding_window_counter" }),
            &json!({ "endpoint": "/api/orders" })
        )
    );
    let replaced = json!({ "limit": 9, "window_seconds": 0.5, "algorithm": "fixed_window", "description": "both" });
    let replaced = rig.send_if("PUT", &path, &merged.etag(), replaced).await.expect(200).json();
    assert_eq!(replaced["limit"], json!({ "requests": 9, "window": "500ms", "algorithm": "fixed_window" }));
    assert_eq!((&replaced["description"], replaced.get("match")), (&json!("both"), None));

    let odd = rig.send("POST", "/v1/rules", json!({ "limit": -1, "window_seconds": 60, "key_type": "API KEY" })).await;
    assert_eq!(
        odd.expect(422).faults(),
        [("key_type".to_owned(), "bad-key-by".to_owned()), ("limit".to_owned(), "out-of-range".to_owned())]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn aliases_speak_the_short_form_alone() {
    let rig = Rig::start().await;
    let short = json!({ "rule_id": "orders", "endpoint_pattern": "/api/orders", "key_type": "user_id", "limit": 100, "window_seconds": 60, "tier": "free" });
    let made = rig.send("POST", "/rules", short.clone()).await.expect(201);
    assert_eq!(made.field("location"), Some("/rules/orders"));
    let mut shown = without_times(made.json());
    assert_eq!(shown.as_object_mut().unwrap().remove("algorithm"), Some(json!("sliding_window")), "a count per window");
    assert_eq!(shown, short);
    assert_eq!(rig.get("/rules/orders").await.expect(200).json(), made.json());
    assert_eq!(rig.get("/rules").await.expect(200).json(), json!({ "rules": [made.json()] }));
    assert_eq!(rig.get("/rules?tier=pro").await.expect(200).json(), json!({ "rules": [] }));

    let changed = rig.send("PUT", "/rules/orders", json!({ "limit": 7 })).await.expect(200);
    assert_eq!(
        (&changed.json()["limit"], &changed.json()["window_seconds"], &changed.json()["tier"]),
        (&json!(7), &json!(60), &json!("free"))
    );
    assert_eq!(
        rig.send_if("PUT", "/rules/orders", &made.etag(), json!({ "limit": 8 })).await.expect(412).code(),
        "stale"
    );
    assert_eq!(
        rig.send_if("PUT", "/rules/orders", &changed.etag(), json!({ "limit": 8 })).await.expect(200).json()["limit"],
        8
    );
    assert_eq!(rig.send("PUT", "/rules/none", json!({ "limit": 8 })).await.expect(404).code(), "not_found");

    let upserted = rig.send("PUT", "/admin/rate-rules", json!({ "rule_id": "orders", "limit": 9 })).await.expect(200);
    assert_eq!((&upserted.json()["limit"], &upserted.json()["tier"]), (&json!(9), &json!("free")));
    let fresh = json!({ "rule_id": "fresh", "limit": 1, "window_seconds": 1.5 });
    let fresh = rig.send("PUT", "/admin/rate-rules", fresh).await.expect(200);
    assert_eq!(
        (&fresh.json()["endpoint_pattern"], &fresh.json()["key_type"], &fresh.json()["window_seconds"]),
        (&json!("*"), &json!("client_key"), &json!(1.5))
    );
    let nameless = rig.send("PUT", "/admin/rate-rules", json!({ "limit": 1, "window_seconds": 1 })).await.expect(400);
    assert_eq!(nameless.faults(), [("rule_id".to_owned(), "missing-field".to_owned())]);

    assert_eq!(rig.call("DELETE", "/rules/orders", "", "").await.expect(200).json(), json!({ "deleted": true }));
    assert_eq!(rig.call("DELETE", "/rules/orders", "", "").await.expect(404).code(), "not_found");
    assert_eq!(rig.call("DELETE", "/v1/rules/fresh", "", "").await.expect(204).status, 204, "they are the same rules");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_and_come_in_pieces() {
    let rig = Rig::start().await;
    for number in 0..5 {
        let rule = json!({
            "rule_id": format!("r{number}"),
            "match": { "endpoint": if number < 3 { "/api/orders" } else { "/other" }, "tier": if number % 2 == 0 { "free" } else { "pro" } },
            "limit": { "requests": 1, "window": "1s" },
            "enabled": number != 4,
        });
        rig.send("POST", "/v1/rules", rule).await.expect(201);
    }
    let exact = json!({ "rule_id": "one", "match": { "client_key": "key:abc" }, "limit": { "requests": 1, "window": "1s" }, "name": "the-one" });
    rig.send("POST", "/v1/rules", exact).await.expect(201);
    let names = |answer: Value| -> Vec<String> {
        answer["rules"].as_array().unwrap().iter().map(|rule| rule["rule_id"].as_str().unwrap().to_owned()).collect()
    };
    for (query, expected) in [
        ("", vec!["one", "r0", "r1", "r2", "r3", "r4"]),
        ("?pattern=/api/orders&tier=free", vec!["r0", "r2"]),
        ("?pattern=%2Fother", vec!["r3", "r4"]),
        ("?endpoint=/api/orders&tier=free", vec!["r0", "r2"]),
        ("?endpoint=/api/orders", vec!["one", "r0", "r1", "r2"]),
        ("?endpoint=GET+/other", vec!["one", "r3", "r4"]),
        ("?endpoint=/nowhere", vec!["one"]),
        ("?tier=pro", vec!["r1", "r3"]),
        ("?enabled=false", vec!["r4"]),
        ("?client_key=key:abc", vec!["one"]),
        ("?name=the-one", vec!["one"]),
        ("?source=file", vec![]),
        ("?namespace=other", vec![]),
        ("?tier=%25", vec![]),
        ("?pattern=_other", vec![]),
    ] {
        let answer = rig.get(&format!("/v1/rules{query}")).await.expect(200).json();
        assert_eq!(names(answer.clone()), expected, "{query}");
        assert_eq!(answer["next_cursor"], Value::Null);
    }
    assert_eq!(rig.get("/v1/rules?endpoint=_other").await.expect(400).code(), "bad_parameter");
    let first = rig.get("/v1/rules?endpoint=/other&limit=1").await.expect(200).json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = rig.get(&format!("/v1/rules?endpoint=/other&cursor={cursor}")).await.expect(200).json();
    assert_eq!((names(first), names(rest)), (vec!["one".to_owned()], vec!["r3".to_owned(), "r4".to_owned()]));
    let mut path = "/v1/rules?limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let answer = rig.get(&path).await.expect(200).json();
        seen.push(names(answer.clone()));
        let Some(cursor) = answer["next_cursor"].as_str() else { break };
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        path = format!("/v1/rules?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, [["one", "r0"], ["r1", "r2"], ["r3", "r4"]]);
    assert_eq!(rig.get("/v1/rules?cursor=bogus").await.expect(400).code(), "bad_cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn j15_every_change_says_what_it_changes() {
    let rig = Rig::start().await;
    let body = json!({ "limit": { "requests": 1, "window": "1s" } });
    let path = "/v1/rules/a";
    let create = format!("{JSON}If-None-Match: *\r\n");
    let made = rig.call("PUT", path, &create, &body.to_string()).await.expect(201);
    assert_eq!(made.field("location"), Some("/v1/rules/a"));
    assert_eq!(rig.call("PUT", path, &create, &body.to_string()).await.expect(409).code(), "conflict");
    let old = made.etag();
    let now = rig.send_if("PATCH", path, &old, json!({ "mode": "shadow" })).await.expect(200).etag();
    assert_ne!(old, now);
    let other = json!({ "limit": { "requests": 2, "window": "1s" } });
    for (method, path, condition, status, code) in [
        ("PUT", path, "", 428, "precondition_required"),
        ("PATCH", path, "", 428, "precondition_required"),
        ("PUT", path, &format!("If-Match: {old}\r\n"), 412, "stale"),
        ("PATCH", path, &format!("If-Match: {old}\r\n"), 412, "stale"),
        ("DELETE", path, &format!("If-Match: {old}\r\n"), 412, "stale"),
        ("PATCH", path, &format!("If-Match: W/{now}\r\n"), 412, "stale"),
        ("PUT", path, "If-Match: \"x\"\r\n", 412, "stale"),
        ("PUT", path, "If-Match: 12\r\n", 400, "bad_precondition"),
        ("PUT", path, "If-Match: *\r\nIf-None-Match: *\r\n", 400, "bad_precondition"),
        ("PUT", path, "If-None-Match: \"1\"\r\n", 400, "bad_precondition"),
        ("PUT", "/v1/rules/none", "If-Match: \"1\"\r\n", 412, "stale"),
        ("PUT", "/v1/rules/none", "If-Match: *\r\n", 404, "not_found"),
        ("PATCH", "/v1/rules/none", "If-Match: \"1\"\r\n", 404, "not_found"),
        ("DELETE", "/v1/rules/none", "If-Match: \"1\"\r\n", 404, "not_found"),
    ] {
        let body = if method == "DELETE" { String::new() } else { other.to_string() };
        let answer = rig.call(method, path, &format!("{JSON}{condition}"), &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{method} {path} {condition}");
    }
    assert_eq!(rig.get(path).await.json()["limit"]["requests"], 1, "nothing of it was done");
    let known = rig.call("GET", path, &format!("If-None-Match: {now}\r\n"), "").await.expect(304);
    assert_eq!((known.body.len(), known.etag()), (0, now.clone()));
    rig.call("GET", path, &format!("If-None-Match: {old}\r\n"), "").await.expect(200);
    rig.call("PUT", path, &format!("{JSON}If-Match: *\r\n"), &other.to_string()).await.expect(200);
    let twice = format!("If-Match: {now}\r\nIf-Match: {now}\r\n");
    assert_eq!(rig.call("DELETE", path, &twice, "").await.status, 400, "which of them would count?");
    rig.call("DELETE", path, "", "").await.expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_makes_one_rule() {
    let rig = Rig::start().await;
    let body = json!({ "limit": 5, "window_seconds": 1 }).to_string();
    let keyed = |key: &'static str, body: String| {
        let rig = &rig;
        async move { rig.call("POST", "/v1/rules", &format!("{JSON}Idempotency-Key: {key}\r\n"), &body).await }
    };
    let first = keyed("k-1", body.clone()).await.expect(201);
    let again = keyed("k-1", body.clone()).await.expect(201);
    assert_eq!(
        (again.json(), again.etag(), again.field("location")),
        (first.json(), first.etag(), first.field("location"))
    );
    assert_ne!(keyed("k-2", body.clone()).await.expect(201).json()["rule_id"], first.json()["rule_id"]);
    let other = keyed("k-1", json!({ "limit": 6, "window_seconds": 1 }).to_string()).await;
    assert_eq!(other.expect(422).code(), "idempotency_key_reused");
    assert_eq!(rig.get("/v1/rules").await.json()["rules"].as_array().unwrap().len(), 2);
    assert_eq!(rig.changes(), 2);
    for bad in ["a b", "", &"x".repeat(256)] {
        let answer = rig.call("POST", "/v1/rules", &format!("{JSON}Idempotency-Key: {bad}\r\n"), &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_idempotency_key"), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_what_would_change_and_changes_nothing() {
    let rig = Rig::start().await;
    let tried = rig.send("POST", "/v1/rules?dry_run=true", full()).await.expect(200);
    assert_eq!((tried.field("location"), tried.field("etag")), (None, None));
    let tried = tried.json();
    assert_eq!((&tried["dry_run"], tried["changes"].as_array().map(Vec::len)), (&json!(true), Some(1)));
    let change = &tried["changes"][0];
    assert_eq!(
        (&change["kind"], &change["id"], &change["before"]),
        (&json!("rule"), &json!("orders-per-user"), &Value::Null)
    );
    assert_eq!(change["after"]["limit"]["requests"], 100);
    rig.get("/v1/rules/orders-per-user").await.expect(404);
    assert_eq!(
        rig.send("POST", "/v1/rules?dry_run=true", json!({ "limit": 0, "window_seconds": 1 })).await.status,
        422
    );

    let made = rig.send("POST", "/v1/rules", full()).await.expect(201);
    for (method, path, body) in [
        ("PATCH", "/v1/rules/orders-per-user?dry_run=true", json!({ "mode": "off" })),
        ("PUT", "/v1/rules/orders-per-user?dry_run=true", json!({ "limit": 1, "window_seconds": 1 })),
        ("PUT", "/rules/orders-per-user?dry_run=true", json!({ "limit": 1 })),
        ("PUT", "/admin/rate-rules?dry_run=true", json!({ "rule_id": "orders-per-user", "limit": 1 })),
    ] {
        let tried = rig.send_if(method, path, &made.etag(), body).await.expect(200).json();
        assert_eq!((&tried["dry_run"], tried["changes"].as_array().map(Vec::len)), (&json!(true), Some(1)), "{path}");
        assert_eq!(tried["changes"][0]["before"]["version"], made.json()["version"]);
    }
    for path in ["/v1/rules/orders-per-user?dry_run=true", "/rules/orders-per-user?dry_run=true"] {
        let tried = rig.call("DELETE", path, "", "").await.expect(200).json();
        assert_eq!(tried["changes"][0]["after"], Value::Null);
    }
    assert_eq!(rig.get("/v1/rules/orders-per-user").await.json(), made.json());
    assert_eq!(rig.changes(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_files_are_shown_and_cannot_be_changed() {
    let rig = Rig::start().await;
    let document = |value: Value| -> Map<String, Value> { value.as_object().cloned().unwrap() };
    let file = |namespace: &str, id: &str, value: Value| FileRule {
        namespace: namespace.to_owned(),
        rule_id: id.to_owned(),
        kind: FileKind::Rules,
        location: "rules.yaml:3".to_owned(),
        document: document(value),
    };
    *rig.world.files.lock() = Arc::new(vec![
        file(
            "default",
            "from-file",
            json!({ "match": { "tier": ["free", "pro"], "client_key": "key:abc" }, "limit": { "requests": 3, "window": "1s" } }),
        ),
        file("default", "other-file", json!({ "limit": { "requests": 4, "window": "1s" } })),
        file("team", "from-file", json!({ "limit": { "requests": 5, "window": "1s" } })),
        FileRule {
            kind: FileKind::Envoy,
            location: "config/team.yaml:4".to_owned(),
            ..file("domain", "limits", json!({ "limit": { "requests": 5, "window": "1s" } }))
        },
    ]);
    rig.send("POST", "/v1/rules", full()).await.expect(201);
    let shown = rig.get("/v1/rules/from-file").await.expect(200);
    assert_eq!(shown.field("etag"), None);
    let shown = shown.json();
    assert_eq!(
        (&shown["source"], &shown["location"], &shown["version"], &shown["limit"]["requests"]),
        (&json!("file"), &json!("rules.yaml:3"), &Value::Null, &json!(3))
    );
    let ids = |answer: Value| -> Vec<String> {
        answer["rules"].as_array().unwrap().iter().map(|rule| rule["rule_id"].as_str().unwrap().to_owned()).collect()
    };
    for (query, expected) in [
        ("?namespace=default", vec!["from-file", "other-file", "orders-per-user"]),
        ("", vec!["from-file", "other-file", "from-file", "limits", "orders-per-user"]),
        ("?source=file&namespace=default", vec!["from-file", "other-file"]),
        ("?source=envoy", vec!["limits"]),
        ("?source=database", vec!["orders-per-user"]),
        ("?tier=free", vec!["from-file", "orders-per-user"]),
        ("?client_key=key:abc", vec!["from-file"]),
        ("?name=other-file", vec!["other-file"]),
        ("?enabled=false", vec![]),
        ("?namespace=team", vec!["from-file"]),
    ] {
        assert_eq!(ids(rig.get(&format!("/v1/rules{query}")).await.expect(200).json()), expected, "{query}");
    }
    let mut path = "/v1/rules?limit=1".to_owned();
    let mut seen = Vec::new();
    while let Some(cursor) = {
        let answer = rig.get(&path).await.expect(200).json();
        seen.extend(ids(answer.clone()));
        answer["next_cursor"].as_str().map(str::to_owned)
    } {
        path = format!("/v1/rules?limit=1&cursor={cursor}");
    }
    assert_eq!(seen, ["from-file", "other-file", "from-file", "limits", "orders-per-user"]);
    let body = json!({ "rule_id": "from-file", "limit": 1, "window_seconds": 1 });
    for (method, path, condition) in [
        ("POST", "/v1/rules", ""),
        ("PUT", "/v1/rules/from-file", "If-Match: *\r\n"),
        ("PATCH", "/v1/rules/from-file", "If-Match: *\r\n"),
        ("DELETE", "/v1/rules/from-file", ""),
        ("PUT", "/rules/from-file", ""),
        ("DELETE", "/rules/from-file", ""),
        ("PUT", "/admin/rate-rules", ""),
    ] {
        let body = if method == "DELETE" { String::new() } else { body.to_string() };
        let answer = rig.call(method, path, &format!("{JSON}{condition}"), &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (409, "rule_in_file"), "{method} {path}");
        assert!(answer.text().contains("rules.yaml:3"), "where to change it: {}", answer.text());
    }
    let namespaces = rig.get("/v1/namespaces").await.expect(200).json();
    assert_eq!(
        namespaces["namespaces"],
        json!([
            { "namespace": "default", "rules": { "database": 1, "file": 2, "envoy": 0 } },
            { "namespace": "domain", "rules": { "database": 0, "file": 0, "envoy": 1 } },
            { "namespace": "team", "rules": { "database": 0, "file": 1, "envoy": 0 } },
        ])
    );
    let first = rig.get("/v1/namespaces?limit=2").await.expect(200).json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = rig.get(&format!("/v1/namespaces?limit=2&cursor={cursor}")).await.expect(200).json();
    assert_eq!((&rest["namespaces"][0]["namespace"], &rest["next_cursor"]), (&json!("team"), &Value::Null));
    let confined = rig.token(Role::Viewer, Some(&["team", "other"])).await;
    let theirs = rig.call_as(&confined, "GET", "/v1/namespaces", "", "").await.expect(200).json();
    assert_eq!(theirs["namespaces"].as_array().map(Vec::len), Some(1), "{theirs}");
    let theirs = rig.call_as(&confined, "GET", "/v1/rules", "", "").await.expect(200).json();
    assert_eq!(ids(theirs), ["from-file"]);
    assert_eq!(rig.get("/rules/from-file").await.expect(200).json()["limit"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_no_path_keeps_are_refused() {
    let rig = Rig::start().await;
    for id in ["refresh", "export", "import", ".", ".."] {
        let answer = rig.send("POST", "/v1/rules", json!({ "rule_id": id, "limit": 1, "window_seconds": 1 })).await;
        assert_eq!(answer.expect(422).faults(), [("rule_id".to_owned(), "reserved".to_owned())]);
    }
    // RELIABILITY J14.
    let odd = json!({ "rule_id": "a/b c?d%", "limit": 1, "window_seconds": 1 });
    let refused = rig.send("POST", "/v1/rules", odd).await.expect(422);
    assert_eq!(refused.faults(), [("rule_id".to_owned(), "bad-name".to_owned())]);
    assert!(refused.json().to_string().contains("such as `a-b-c-d`"), "{}", refused.json());
    let file = "rules: [{ name: a b, limit: { requests: 1, window: 1s } }]";
    let refused = rig.call("POST", "/v1/rules/import", "Content-Type: application/yaml\r\n", file).await.expect(422);
    assert!(refused.json().to_string().contains("such as `a-b`"), "{}", refused.json());
    rig.send("POST", "/v1/rules", json!({ "rule_id": "plain", "limit": 1, "window_seconds": 1 })).await.expect(201);
    let twin = json!({ "rule_id": "Plain", "limit": 1, "window_seconds": 1 });
    let refused = rig.send("POST", "/v1/rules", twin).await.expect(422);
    assert_eq!(refused.faults(), [("rule_id".to_owned(), "duplicate-name".to_owned())]);
    let odd = json!({ "override_id": "a/b c?d%", "client_key": "user:1", "rule_id": "plain", "max_requests": 5,
                      "valid_until": "2030-01-01T00:00:00Z" });
    let made = rig.send("POST", "/v1/overrides", odd).await.expect(201);
    let place = made.field("location").unwrap().to_owned();
    assert_eq!(place, "/v1/overrides/a%2Fb%20c%3Fd%25");
    assert_eq!(rig.get(&place).await.expect(200).json(), made.json());
    rig.call("DELETE", &place, "", "").await.expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_makes_a_generation_and_tells_the_node() {
    let rig = Rig::start().await;
    let first = rig.call("POST", "/v1/rules/refresh", "", "").await.expect(202).json()["generation"].as_i64().unwrap();
    let second = rig.call("POST", "/v1/rules/refresh", "", "").await.expect(202).json()["generation"].as_i64().unwrap();
    assert_eq!((second, rig.changes()), (first + 1, 2));
}

/// What `tollgate rules lint` says of a file is said of a rule that comes in over the API: in every form, when it is
/// created, changed, read, listed, imported or only tried.
#[tokio::test(flavor = "multi_thread")]
async fn rules_that_are_probably_not_meant_are_answered_with_warnings() {
    let codes = |json: &Value| -> Vec<(String, String)> {
        let warnings = json["warnings"].as_array().cloned().unwrap_or_default();
        let text = |warning: &Value, name: &str| warning[name].as_str().unwrap_or_default().to_owned();
        warnings.iter().map(|warning| (text(warning, "field"), text(warning, "code"))).collect()
    };
    let pair = |field: &str, code: &str| (field.to_owned(), code.to_owned());
    let rig = Rig::start().await;
    let limit = json!({ "requests": 5, "window": "1m" });
    let odd = json!({ "rule_id": "odd", "match": { "endpoint": "/users/:id" }, "key_by": "user", "limit": limit });
    let expected = [pair("key_by", "unknown-attribute"), pair("match.endpoint", "colon-parameter")];

    let tried = rig.send("POST", "/v1/rules?dry_run=true", odd.clone()).await.expect(200).json();
    assert_eq!(codes(&tried), expected);
    assert_eq!(tried["warnings"][0]["rule_id"], "odd");
    let made = rig.send("POST", "/v1/rules", odd.clone()).await.expect(201);
    assert_eq!(codes(&made.json()), expected);
    assert_eq!(made.json()["warnings"][0]["help"], "did you mean `user_id`?");
    assert_eq!(rig.get("/v1/rules/odd").await.expect(200).json(), made.json());
    assert_eq!(codes(&rig.get("/v1/rules").await.expect(200).json()["rules"][0]), expected);
    let same = rig.send_if("PUT", "/v1/rules/odd", &made.etag(), made.json()).await.expect(200);
    assert_eq!(same.json(), made.json(), "a response may be sent back as it is");

    let patch = json!({ "key_by": "user_id", "match": { "endpoint": "/Users/{id}" } });
    let patched = rig.send_if("PATCH", "/v1/rules/odd", &made.etag(), patch).await.expect(200);
    assert_eq!(codes(&patched.json()), [pair("match.endpoint", "case-of-path")]);
    let mended = json!({ "case": "insensitive" });
    let mended = rig.send_if("PATCH", "/v1/rules/odd", &patched.etag(), mended).await.expect(200);
    assert_eq!(mended.json().get("warnings"), None);

    let short = json!({ "rule_id": "short", "endpoint_pattern": "/a/:b", "limit": 5, "window_seconds": 60 });
    let short = rig.send("POST", "/rules", short).await.expect(201).json();
    assert_eq!(codes(&short), [pair("key_type", "implicit-key"), pair("endpoint_pattern", "colon-parameter")]);

    let file = "rules:\n  - name: imported\n    key_by: ip\n    match: { country: no }\n    limit: { requests: 5, window: 1m }\n";
    let imported = rig.call("POST", "/v1/rules/import", "Content-Type: application/yaml\r\n", file).await.expect(200);
    assert_eq!(codes(&imported.json()), [pair("rules[0].match", "ambiguous-value")]);
    assert_eq!(imported.json()["warnings"][0]["line"], 4);
}
