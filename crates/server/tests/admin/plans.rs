//! Plans, and the clients that have them.

use serde_json::{Value, json};

use crate::rig::Rig;

fn free() -> Value {
    json!({ "plan_id": "free", "default": true, "limits": [{ "name": "calls", "limit": { "requests": 10, "window": "1m" } }] })
}

fn pro() -> Value {
    json!({ "plan_id": "pro", "extends": "free", "description": "for teams", "limits": [
        { "name": "calls", "limit": { "requests": 100, "window": "1m" } },
        { "name": "uploads", "match": { "endpoint": "POST /uploads" }, "limit": { "requests": 5, "window": "1m" } },
    ] })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_plan() {
    let rig = Rig::start().await;
    rig.send("POST", "/v1/plans", free()).await.expect(201);
    let made = rig.send("POST", "/v1/plans", pro()).await.expect(201);
    assert_eq!(made.field("location"), Some("/v1/plans/pro"));
    assert_eq!(rig.send("POST", "/v1/plans", pro()).await.expect(409).code(), "conflict");
    let shown = rig.get("/v1/plans/pro").await.expect(200);
    let rules = shown.json()["rules"].clone();
    let brought: Vec<_> = rules.as_array().unwrap().iter().map(|rule| (&rule["plan"], &rule["rule_id"])).collect();
    assert_eq!(brought, [(&json!("pro"), &json!("pro.calls")), (&json!("pro"), &json!("pro.uploads"))]);
    assert_eq!(shown.json()["source"], json!("database"));

    let patched = rig.send_if("PATCH", "/v1/plans/pro", &made.etag(), json!({ "limits": [] })).await.expect(200);
    assert_eq!(patched.json()["description"], json!("for teams"), "the rest stays");
    let rules = rig.get("/v1/plans/pro").await.expect(200).json()["rules"].clone();
    assert_eq!((&rules[0]["plan"], &rules[0]["rule_id"]), (&json!("free"), &json!("free.calls")), "inherited");
    let all = rig.get("/v1/plans").await.expect(200).json();
    let names: Vec<&Value> = all["plans"].as_array().unwrap().iter().map(|plan| &plan["plan_id"]).collect();
    assert_eq!(names, ["free", "pro"]);

    let refused = rig.call("DELETE", "/v1/plans/free", "", "").await.expect(409).text();
    assert!(refused.contains("pro"), "{refused}");
    rig.call("DELETE", "/v1/plans/pro", "", "").await.expect(204);
    rig.call("DELETE", "/v1/plans/free", "", "").await.expect(204);
    rig.get("/v1/plans/free").await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_have_plans_that_exist() {
    let rig = Rig::start().await;
    rig.send("POST", "/v1/plans", free()).await.expect(201);
    rig.send("POST", "/v1/plans", pro()).await.expect(201);
    let steps = json!(["free", { "plan": "pro", "from": "2026-12-01" }]);
    let made = rig.send("POST", "/v1/clients", json!({ "client_key": "user:1", "plan": steps })).await.expect(201);
    assert_eq!(made.json()["plan"], steps);
    let patched = rig.send_if("PATCH", "/v1/clients/user:1", &made.etag(), json!({ "plan": "pro" })).await.expect(200);
    assert_eq!(patched.json()["plan"], json!("pro"));
    let unknown = rig.send_if("PATCH", "/v1/clients/user:1", &patched.etag(), json!({ "plan": "prro" })).await;
    let unknown = unknown.expect(422).text();
    assert!(unknown.contains("did you mean `pro`?") && unknown.contains("unknown-plan"), "{unknown}");
    let refused = rig.call("DELETE", "/v1/plans/pro", "", "").await.expect(409).text();
    assert!(refused.contains("user:1"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_exported_and_imported() {
    let rig = Rig::start().await;
    rig.send("POST", "/v1/plans", free()).await.expect(201);
    rig.send("POST", "/v1/plans", pro()).await.expect(201);
    rig.send("POST", "/v1/clients", json!({ "client_key": "user:1", "plan": "pro" })).await.expect(201);
    let exported = rig.get("/v1/rules/export").await.expect(200).text();
    assert!(exported.contains("plans:") && exported.contains("extends: free"), "{exported}");
    let again = rig.call("POST", "/v1/rules/import", "Content-Type: application/yaml\r\n", &exported).await;
    assert_eq!(again.expect(200).json()["changes"], json!([]), "the same");
    let changed = exported.replace("requests: 100", "requests: 200");
    let changed =
        rig.call("POST", "/v1/rules/import", "Content-Type: application/yaml\r\n", &changed).await.expect(200);
    assert_eq!(changed.json()["changes"][0]["kind"], json!("plan"));
}
