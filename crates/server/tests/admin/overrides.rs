//! Overrides: expiry, extension, and ending them early.

use serde_json::{Value, json};

use crate::rig::{JSON, Rig};

async fn rig() -> Rig {
    let rig = Rig::start().await;
    rig.send(
        "POST",
        "/v1/rules",
        json!({ "rule_id": "orders", "limit": 10, "window_seconds": 60, "algorithm": "token_bucket" }),
    )
    .await
    .expect(201);
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_an_override() {
    let rig = rig().await;
    let (from, until) = (rig.in_seconds(-60), rig.in_seconds(3600));
    let body = json!({
        "override_id": "launch", "client_key": "user:42", "rule_id": "orders", "max_requests": 500, "burst_size": 50,
        "valid_from": from, "valid_until": until, "reason": "launch day",
    });
    let made = rig.send("POST", "/v1/overrides", body.clone()).await.expect(201);
    assert_eq!(made.field("location"), Some("/v1/overrides/launch"));
    let mut shown = made.json();
    for name in ["created_at", "updated_at", "version"] {
        assert!(!shown.as_object_mut().unwrap().remove(name).unwrap().is_null());
    }
    let mut expected = body.clone();
    (expected["unlimited"], expected["namespace"]) = (json!(false), json!("default"));
    assert_eq!(shown, expected);
    assert_eq!(rig.get("/v1/overrides/launch").await.expect(200).json(), made.json());

    let later = rig.in_seconds(7200);
    let extended =
        rig.send_if("PATCH", "/v1/overrides/launch", &made.etag(), json!({ "valid_until": later })).await.expect(200);
    assert_eq!((&extended.json()["valid_until"], &extended.json()["max_requests"]), (&json!(later), &json!(500)));
    let free = json!({ "client_key": "user:42", "rule_id": "orders", "unlimited": true, "valid_until": later });
    let replaced = rig.send_if("PUT", "/v1/overrides/launch", &extended.etag(), free).await.expect(200).json();
    assert_eq!(
        (&replaced["unlimited"], &replaced["max_requests"], &replaced["reason"]),
        (&json!(true), &Value::Null, &json!(""))
    );

    let ended = rig.call("POST", "/v1/overrides/launch/end", "", "").await.expect(200);
    assert_eq!(ended.json()["valid_until"], json!(rig.in_seconds(0)));
    let again = rig.call("POST", "/v1/overrides/launch/end", "", "").await.expect(200);
    assert_eq!((again.json(), again.etag()), (ended.json(), ended.etag()), "what has ended stays as it is");
    let stale = rig.call("POST", "/v1/overrides/launch/end", "If-Match: \"1\"\r\n", "").await;
    assert_eq!(stale.expect(412).code(), "stale");
    rig.call("DELETE", "/v1/overrides/launch", "", "").await.expect(204);
    assert_eq!(rig.call("DELETE", "/v1/overrides/launch", "", "").await.expect(404).code(), "not_found");
    assert_eq!(rig.call("POST", "/v1/overrides/launch/end", "", "").await.expect(404).code(), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_are_found_by_client_by_rule_and_by_whether_they_hold() {
    let rig = rig().await;
    rig.send("POST", "/v1/rules", json!({ "rule_id": "other", "limit": 10, "window_seconds": 60 })).await.expect(201);
    for (id, client, rule, from, until) in
        [("a", "user:1", "orders", -10, 100), ("b", "user:1", "other", -10, 0), ("c", "user:2", "orders", 50, 100)]
    {
        let body = json!({
            "override_id": id, "client_key": client, "rule_id": rule, "max_requests": 1,
            "valid_from": rig.in_seconds(from), "valid_until": rig.in_seconds(until),
        });
        rig.send("POST", "/v1/overrides", body).await.expect(201);
    }
    for (query, expected) in [
        ("", vec!["a", "b", "c"]),
        ("?client_key=user:1", vec!["a", "b"]),
        ("?rule_id=orders", vec!["a", "c"]),
        ("?active=true", vec!["a"]),
        ("?client_key=user:1&active=true&rule_id=other", vec![]),
    ] {
        let answer = rig.get(&format!("/v1/overrides{query}")).await.expect(200).json();
        let ids: Vec<&str> =
            answer["overrides"].as_array().unwrap().iter().map(|one| one["override_id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "{query}");
    }
    let made = rig.send(
        "POST",
        "/v1/overrides",
        json!({ "client_key": "user:9", "rule_id": "other", "max_requests": 2, "valid_until": rig.in_seconds(9) }),
    );
    let id = made.await.expect(201).json()["override_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("ovr-"), "{id}");
    rig.call("DELETE", "/v1/rules/other", "", "").await.expect(204);
    rig.get(&format!("/v1/overrides/{id}")).await.expect(404);
    assert_eq!(rig.get("/v1/overrides?rule_id=other").await.json()["overrides"], json!([]), "they go with their rule");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_cannot_be_is_refused_with_every_reason() {
    let rig = rig().await;
    let faults = |body: Value| {
        let rig = &rig;
        async move {
            let answer = rig.send("POST", "/v1/overrides", body).await;
            let faults: Vec<String> =
                answer.faults().into_iter().map(|(field, code)| format!("{field} {code}")).collect();
            (answer.status, faults.join(", "))
        }
    };
    let until = rig.in_seconds(60);
    for (body, status, expected) in [
        (json!({}), 400, "client_key missing-field, rule_id missing-field, valid_until missing-field"),
        (
            json!({ "client_key": 7, "rule_id": "", "valid_until": "tomorrow", "unlimitd": true }),
            400,
            "unlimitd unknown-field, client_key wrong-type, rule_id blank, valid_until bad-time",
        ),
        (
            json!({ "client_key": "a", "rule_id": "orders", "max_requests": -1, "valid_until": until }),
            422,
            "max_requests out-of-range",
        ),
        (
            json!({ "client_key": "a", "rule_id": "orders", "max_requests": 1.5, "valid_until": until }),
            422,
            "max_requests out-of-range",
        ),
        (
            json!({ "client_key": "a", "rule_id": "orders", "max_requests": "1", "valid_until": until }),
            400,
            "max_requests wrong-type",
        ),
        (
            json!({ "client_key": "a", "rule_id": "orders", "max_requests": 1, "valid_until": until, "namespace": "other" }),
            422,
            "namespace other-thing",
        ),
    ] {
        assert_eq!(faults(body.clone()).await, (status, expected.to_owned()), "{body}");
    }
    let unknown = json!({ "client_key": "a", "rule_id": "ordres", "max_requests": 1, "valid_until": until });
    let unknown = rig.send("POST", "/v1/overrides", unknown).await.expect(422);
    assert_eq!(unknown.faults()[0].0, "rule_id");
    let nothing = json!({ "client_key": "a", "rule_id": "orders", "valid_until": until });
    rig.send("POST", "/v1/overrides", nothing).await.expect(422);
    let backwards = json!({ "client_key": "a", "rule_id": "orders", "max_requests": 1, "valid_from": until, "valid_until": rig.in_seconds(1) });
    rig.send("POST", "/v1/overrides", backwards).await.expect(422);
    let put =
        json!({ "override_id": "x", "client_key": "a", "rule_id": "orders", "max_requests": 1, "valid_until": until });
    let put = rig.call("PUT", "/v1/overrides/y", &format!("{JSON}If-None-Match: *\r\n"), &put.to_string()).await;
    assert_eq!(put.expect(422).faults(), [("override_id".to_owned(), "other-thing".to_owned())]);
}
