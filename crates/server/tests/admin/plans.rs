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

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_plans_are_listed_and_changed_with_their_plan() {
    let rig = Rig::start().await;
    rig.send("POST", "/v1/plans", free()).await.expect(201);
    rig.send("POST", "/v1/plans", pro()).await.expect(201);
    let own = json!({ "rule_id": "own", "limit": { "requests": 1, "window": "1s" } });
    rig.send("POST", "/v1/rules", own).await.expect(201);
    let ids = |json: &Value| -> Vec<String> {
        json["rules"].as_array().unwrap().iter().map(|rule| rule["rule_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = rig.get("/v1/rules").await.expect(200).json();
    assert_eq!(ids(&all), ["free.calls", "pro.calls", "pro.uploads", "own"]);
    let shown = ["source", "location", "plan", "match"].map(|name| all["rules"][2][name].clone());
    let of_pro = json!({ "endpoint": "POST /uploads", "plan": ["pro"] });
    assert_eq!(shown, [json!("database"), json!("plan pro"), json!("pro"), of_pro]);
    // Pages of every size show each rule once.
    for limit in 1..=4 {
        let (mut found, mut path) = (Vec::new(), format!("/v1/rules?limit={limit}"));
        loop {
            let page = rig.get(&path).await.expect(200).json();
            assert!(ids(&page).len() <= limit);
            found.extend(ids(&page));
            let Some(next) = page["next_cursor"].as_str() else { break };
            path = format!("/v1/rules?limit={limit}&cursor={next}");
        }
        assert_eq!(found, ids(&all), "limit {limit}");
    }
    for (query, expected) in [
        ("source=database", &["free.calls", "pro.calls", "pro.uploads", "own"][..]),
        ("source=file", &[]),
        ("name=calls", &["free.calls", "pro.calls"]),
        ("endpoint=/other", &["free.calls", "pro.calls", "own"]),
        ("enabled=false", &[]),
    ] {
        assert_eq!(ids(&rig.get(&format!("/v1/rules?{query}")).await.expect(200).json()), expected, "{query}");
    }
    let one = rig.get("/v1/rules/pro.calls").await.expect(200).json();
    assert_eq!((&one["key_by"], one.get("warnings")), (&json!("client_key"), None));
    assert_eq!((&one["plan"], &one["limit"]["requests"]), (&json!("pro"), &json!(100)));
    let path = "/v1/rules/pro.calls";
    for (method, body) in
        [("PATCH", json!({ "cost": 2 })), ("PUT", json!({ "limit": { "requests": 1, "window": "1s" } }))]
    {
        let refused = rig.send_if(method, path, "*", body).await.expect(409).text();
        assert!(refused.contains("part of the plan pro: change the plan"), "{method}: {refused}");
    }
    let refused = rig.call("DELETE", path, "", "").await.expect(409).text();
    assert!(refused.contains("change the plan"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_answered_with_warnings() {
    let rig = Rig::start().await;
    let odd = json!({ "plan_id": "odd", "limits": [
        { "name": "calls", "limit": { "requests": 10, "window": "1m" } },
        { "name": "misspelt", "key_by": "user", "limit": { "requests": 10, "window": "1m" } },
    ] });
    let warning = |json: &Value| {
        let warnings = json["warnings"].as_array().cloned().unwrap_or_default();
        warnings.first().map(|first| (first["code"].clone(), first["field"].clone()))
    };
    let expected = Some((json!("unknown-attribute"), json!("limits[1].key_by")));
    let tried = rig.send("POST", "/v1/plans?dry_run=true", odd.clone()).await.expect(200).json();
    assert_eq!((warning(&tried), &tried["warnings"][0]["plan_id"]), (expected.clone(), &json!("odd")));
    let made = rig.send("POST", "/v1/plans", odd).await.expect(201);
    assert_eq!(warning(&made.json()), expected);
    assert_eq!(warning(&rig.get("/v1/plans/odd").await.expect(200).json()), expected);
    let rule = rig.get("/v1/rules/odd.misspelt").await.expect(200).json();
    assert_eq!(warning(&rule), Some((json!("unknown-attribute"), json!("key_by"))));
    let mended = rig.send_if("PATCH", "/v1/plans/odd", &made.etag(), json!({ "limits": [] })).await.expect(200);
    assert_eq!(mended.json().get("warnings"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_go_with_the_plan() {
    let rig = Rig::start().await;
    rig.send("POST", "/v1/plans", free()).await.expect(201);
    let given = json!({ "override_id": "more", "client_key": "user:1", "rule_id": "free.calls", "max_requests": 50,
        "valid_until": "2199-01-01T00:00:00Z" });
    rig.send("POST", "/v1/overrides", given).await.expect(201);
    let tried = rig.call("DELETE", "/v1/plans/free?dry_run=true", "", "").await.expect(200).json();
    let kinds: Vec<&Value> = tried["changes"].as_array().unwrap().iter().map(|change| &change["kind"]).collect();
    assert_eq!(kinds, [&json!("override"), &json!("plan")], "what would go");
    rig.call("DELETE", "/v1/plans/free", "", "").await.expect(204);
    rig.get("/v1/overrides/more").await.expect(404);
}
