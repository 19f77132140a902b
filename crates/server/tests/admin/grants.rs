//! Grants: made once, listed, refused, exported and imported.

use serde_json::{Value, json};

use crate::rig::{JSON, Rig};

async fn rig() -> Rig {
    let rig = Rig::start().await;
    let quota = json!({ "rule_id": "monthly", "key_by": "user_id", "quota": { "amount": 100, "every": "month" } });
    rig.send("POST", "/v1/rules", quota).await.expect(201);
    let rate = json!({ "rule_id": "rate", "key_by": "user_id", "limit": { "requests": 1, "window": "1s" } });
    rig.send("POST", "/v1/rules", rate).await.expect(201);
    rig
}

fn body() -> Value {
    json!({ "client_key": "user:42", "rule_id": "monthly", "amount": 500, "reason": "ticket 4711" })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_grant() {
    let rig = rig().await;
    let key = format!("{JSON}Idempotency-Key: one\r\n");
    let made = rig.call("POST", "/v1/grants", &key, &body().to_string()).await.expect(201);
    let again = rig.call("POST", "/v1/grants", &key, &body().to_string()).await.expect(201);
    assert_eq!(made.json(), again.json(), "a repeated call grants nothing more");
    let shown = made.json();
    assert_eq!(
        (&shown["amount"], &shown["valid_until"], &shown["namespace"]),
        (&json!(500), &Value::Null, &json!("default"))
    );
    assert_eq!(shown["valid_from"], shown["created_at"], "from now on");
    let id = shown["grant_id"].as_str().unwrap();
    assert_eq!(made.field("location"), Some(&*format!("/v1/grants/{id}")));
    assert_eq!(rig.get(&format!("/v1/grants/{id}")).await.expect(200).json(), shown);
    let (from, until) = (rig.in_seconds(-60), rig.in_seconds(3600));
    let second = json!({ "grant_id": "second", "client_key": "user:7", "rule_id": "monthly", "amount": 1, "valid_from": from, "valid_until": until });
    rig.send("POST", "/v1/grants", second.clone()).await.expect(201);
    assert_eq!(rig.send("POST", "/v1/grants", second).await.expect(409).code(), "conflict");
    let listed = |query: &str| {
        let (rig, path) = (&rig, format!("/v1/grants{query}"));
        async move { rig.get(&path).await.expect(200).json()["grants"].as_array().unwrap().len() }
    };
    let counts = [
        listed("").await,
        listed("?client_key=user:7").await,
        listed("?rule_id=rate").await,
        listed("?active=true").await,
    ];
    assert_eq!(counts, [2, 1, 0, 1], "the rig's clock is behind that of the database");
    rig.call("DELETE", "/v1/grants/second", "", "").await.expect(204);
    assert_eq!(rig.call("DELETE", "/v1/grants/second", "", "").await.expect(404).code(), "not_found");
    let audited = rig.get("/v1/audit?kind=grant").await.expect(200).json();
    assert_eq!(audited.as_object().unwrap().values().find_map(Value::as_array).unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_cannot_be_is_refused_with_every_reason() {
    let rig = rig().await;
    let with = |name: &str, value: Value| {
        let mut body = body();
        body[name] = value;
        body
    };
    for (body, status, expected) in [
        (json!({}), 400, "client_key missing-field, rule_id missing-field, amount missing-field"),
        (with("amount", json!("5")), 400, "amount wrong-type"),
        (with("amount", json!(0)), 422, "amount out-of-range"),
        (with("amount", json!(-1)), 422, "amount out-of-range"),
        (with("amount", json!(9_007_199_254_740_993_u64)), 422, "amount out-of-range"),
        (with("rule_id", json!("rate")), 422, "rule_id bad-grant"),
        (with("rule_id", json!("montly")), 422, "rule_id unknown-rule"),
        (with("client_key", json!("org:acme")), 422, "client_key bad-grant"),
        (with("valid_until", json!(rig.in_seconds(-1))), 422, "valid_until bad-time"),
    ] {
        let answer = rig.send("POST", "/v1/grants", body.clone()).await;
        let faults: Vec<String> = answer.faults().into_iter().map(|(field, code)| format!("{field} {code}")).collect();
        assert_eq!((answer.status, faults.join(", ").as_str()), (status, expected), "{body}");
    }
    let misspelt = rig.send("POST", "/v1/grants", with("rule_id", json!("montly"))).await;
    assert!(misspelt.text().contains("did you mean `monthly`?"), "{}", misspelt.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_are_exported_and_imported_once() {
    let rig = rig().await;
    for id in ["a", "b"] {
        let mut grant = body();
        (grant["grant_id"], grant["valid_from"]) = (json!(id), json!("2026-03-01T00:00:00Z"));
        rig.send("POST", "/v1/grants", grant).await.expect(201); // equal ones add up
    }
    let text = rig.get("/v1/rules/export").await.expect(200).text();
    assert!(text.contains("grants:"), "{text}");
    let yaml = "Content-Type: application/yaml\r\n";
    let unchanged = rig.call("POST", "/v1/rules/import", yaml, &text).await.expect(200).json();
    assert_eq!(unchanged["changes"], json!([]), "what was exported is there");
    for id in ["a", "b"] {
        rig.call("DELETE", &format!("/v1/grants/{id}"), "", "").await.expect(204);
    }
    for expected in [2, 0] {
        let made = rig.call("POST", "/v1/rules/import", yaml, &text).await.expect(200).json();
        assert_eq!(made["changes"].as_array().unwrap().len(), expected);
    }
    assert_eq!(rig.get("/v1/grants").await.expect(200).json()["grants"].as_array().unwrap().len(), 2);
}
