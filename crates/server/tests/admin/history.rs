//! The audit and the generations: lists, differences, rollback, revert.

use serde_json::{Value, json};
use tollgate_control::record::Role;

use crate::rig::Rig;

async fn rule(rig: &Rig, id: &str, limit: u64) -> i64 {
    let body = json!({ "rule_id": id, "limit": limit, "window_seconds": 60 });
    rig.send("PUT", "/admin/rate-rules", body).await.expect(200);
    let generations = rig.get("/v1/generations?limit=1").await.expect(200).json();
    generations["generations"][0]["generation"].as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn s17_the_author_is_the_owner_of_the_token() {
    let rig = Rig::start().await;
    let forged = json!({ "rule_id": "a", "limit": 1, "window_seconds": 1, "author": "somebody", "actor": "else" });
    let refused = rig.send("POST", "/v1/rules", forged).await.expect(400);
    assert_eq!(
        refused.faults(),
        [("actor".to_owned(), "unknown-field".to_owned()), ("author".to_owned(), "unknown-field".to_owned())]
    );
    rule(&rig, "a", 5).await;
    let token_id = rig.operator.split('_').nth(1).unwrap();
    let rows = rig.get("/v1/audit?kind=rule").await.expect(200).json();
    let row = &rows["audit"][0];
    assert_eq!(
        (&row["author"], &row["author_name"], &row["action"]),
        (&json!(token_id), &json!("operators"), &json!("create"))
    );
    assert_eq!((&row["kind"], &row["id"], &row["before"]), (&json!("rule"), &json!("a"), &Value::Null));
    assert_eq!(row["after"]["limit"]["requests"], 5);
    assert_eq!(row["hash"].as_str().unwrap().len(), 64);
    assert_eq!(rig.get(&format!("/v1/audit?author={token_id}")).await.json()["audit"].as_array().unwrap().len(), 1);
    assert_eq!(rig.get("/v1/audit?author=nobody").await.json()["audit"], json!([]));
    let verified = rig.call_as(&rig.admin, "GET", "/v1/audit/verify", "", "").await.expect(200).json();
    assert_eq!((&verified["intact"], &verified["broken_at"]), (&json!(true), &Value::Null));
    assert!(verified["rows"].as_i64().unwrap() >= 4, "the tokens and the rule: {verified}");
}

#[tokio::test(flavor = "multi_thread")]
async fn generations_differ_and_can_be_brought_back() {
    let rig = Rig::start().await;
    let first = rule(&rig, "a", 5).await;
    let second = rule(&rig, "a", 6).await;
    let third = rule(&rig, "b", 1).await;
    assert_eq!((second, third), (first + 1, first + 2));
    let diff = rig.get(&format!("/v1/generations/diff?from={first}&to={third}")).await.expect(200).json();
    assert_eq!((&diff["from"], &diff["to"]), (&json!(first), &json!(third)));
    let changes = diff["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2);
    assert_eq!(
        (&changes[0]["before"]["limit"]["requests"], &changes[0]["after"]["limit"]["requests"]),
        (&json!(5), &json!(6))
    );
    assert_eq!((&changes[1]["id"], &changes[1]["before"]), (&json!("b"), &Value::Null));

    let path = format!("/v1/generations/{first}/rollback");
    let tried = rig.call("POST", &format!("{path}?dry_run=true"), "", "").await.expect(200).json();
    assert_eq!((&tried["dry_run"], tried["changes"].as_array().map(Vec::len)), (&json!(true), Some(2)));
    assert_eq!(rig.get("/v1/rules/a").await.json()["limit"]["requests"], 6);
    let back = rig.call("POST", &path, "", "").await.expect(200).json();
    assert_eq!((&back["generation"], back.get("dry_run")), (&json!(third + 1), None));
    assert_eq!(rig.get("/v1/rules/a").await.json()["limit"]["requests"], 5);
    rig.get("/v1/rules/b").await.expect(404);
    let latest = rig.get("/v1/generations?limit=1").await.json()["generations"][0].clone();
    assert_eq!((&latest["action"], &latest["changes"]), (&json!(format!("rollback to {first}")), &json!(2)));

    for (path, status, code) in [
        ("/v1/generations/diff?from=1", 400, "bad_parameter"),
        ("/v1/generations/diff?from=1&to=999999", 404, "not_found"),
        ("/v1/generations/diff?from=-1&to=1", 400, "bad_parameter"),
    ] {
        let answer = rig.get(path).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}");
    }
    for path in ["/v1/generations/999999/rollback", "/v1/generations/x/rollback", "/v1/generations/-1/rollback"] {
        assert_eq!(rig.call("POST", path, "", "").await.expect(404).code(), "not_found", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_some_namespaces_sees_and_brings_back_only_these() {
    let rig = Rig::start().await;
    let team = rig.token(Role::Operator, Some(&["team"])).await;
    let first = rule(&rig, "a", 5).await;
    let body = json!({ "rule_id": "t", "limit": 1, "window_seconds": 1 }).to_string();
    rig.call_as(&team, "POST", "/v1/rules", crate::rig::JSON, &body).await.expect(201);
    let last = rule(&rig, "a", 6).await;
    let diff = rig.call_as(&team, "GET", &format!("/v1/generations/diff?from={first}&to={last}"), "", "").await;
    let changes = diff.expect(200).json()["changes"].as_array().unwrap().clone();
    assert_eq!((changes.len(), &changes[0]["namespace"]), (1, &json!("team")));
    let audit = rig.call_as(&team, "GET", "/v1/audit", "", "").await.expect(200).json();
    assert!(audit["audit"].as_array().unwrap().iter().all(|row| row["namespace"] == "team"), "{audit}");
    let back =
        rig.call_as(&team, "POST", &format!("/v1/generations/{first}/rollback"), "", "").await.expect(200).json();
    assert_eq!(back["changes"].as_array().unwrap().len(), 1);
    assert_eq!(rig.get("/v1/rules/a").await.json()["limit"]["requests"], 6, "others are not touched");
    let refused =
        rig.call_as(&team, "POST", &format!("/v1/generations/{first}/rollback?namespace=default"), "", "").await;
    assert_eq!(refused.expect(403).code(), "other_namespace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_of_one_namespace_and_leaves_overrides_and_clients_alone_unless_asked() {
    let rig = Rig::start().await;
    let first = rule(&rig, "a", 5).await;
    rig.send("POST", "/v1/rules?namespace=team", json!({ "rule_id": "t", "limit": 1, "window_seconds": 1 }))
        .await
        .expect(201);
    let more = json!({ "override_id": "o", "client_key": "user:1", "rule_id": "a", "max_requests": 9, "valid_until": rig.in_seconds(3600) });
    rig.send("POST", "/v1/overrides", more).await.expect(201);
    rig.send("POST", "/v1/clients", json!({ "client_key": "key:new", "tier": "free" })).await.expect(201);
    rig.send("PUT", "/v1/rules/a/mode", json!({ "mode": "shadow" })).await.expect(200);
    rule(&rig, "a", 6).await;
    let path = format!("/v1/generations/{first}/rollback");
    let back = rig.call("POST", &path, "", "").await.expect(200).json();
    assert_eq!(back["changes"].as_array().map(Vec::len), Some(1), "{back}");
    assert_eq!(rig.get("/v1/rules/a").await.json()["limit"]["requests"], 5);
    for kept in ["/v1/rules/t?namespace=team", "/v1/overrides/o", "/v1/clients/key:new", "/v1/rules/a/mode"] {
        rig.get(kept).await.expect(200);
    }
    let all = rig.call("POST", &format!("{path}?overrides=true&clients=true"), "", "").await.expect(200).json();
    assert_eq!(all["changes"].as_array().map(Vec::len), Some(3), "{all}");
    for gone in ["/v1/overrides/o", "/v1/clients/key:new", "/v1/rules/a/mode"] {
        rig.get(gone).await.expect(404);
    }
    rig.get("/v1/rules/t?namespace=team").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_change_is_reverted_by_its_number_unless_the_thing_changed_since() {
    let rig = Rig::start().await;
    rule(&rig, "a", 5).await;
    rule(&rig, "b", 1).await;
    rule(&rig, "a", 6).await;
    let rows = rig.get("/v1/audit?kind=rule&id=a").await.expect(200).json();
    let numbers: Vec<i64> =
        rows["audit"].as_array().unwrap().iter().map(|row| row["number"].as_i64().unwrap()).collect();
    let [update, create] = numbers.as_slice() else { panic!("{rows}") };
    let early = rig.call("POST", &format!("/v1/audit/{create}/revert"), "", "").await;
    assert_eq!(early.expect(412).code(), "stale", "it was changed since");
    let tried = rig.call("POST", &format!("/v1/audit/{update}/revert?dry_run=true"), "", "").await.expect(200).json();
    assert_eq!(tried["changes"][0]["after"]["limit"]["requests"], 5, "{tried}");
    rig.call("POST", &format!("/v1/audit/{update}/revert"), "", "").await.expect(200);
    assert_eq!(rig.get("/v1/rules/a").await.json()["limit"]["requests"], 5);
    rig.get("/v1/rules/b").await.expect(200);
    rig.call("DELETE", "/v1/rules/b", "", "").await.expect(204);
    let gone = rig.get("/v1/audit?kind=rule&id=b&limit=1").await.json()["audit"][0]["number"].as_i64().unwrap();
    rig.call("POST", &format!("/v1/audit/{gone}/revert"), "", "").await.expect(200);
    rig.get("/v1/rules/b").await.expect(200);
    for path in ["/v1/audit/999999/revert", "/v1/audit/x/revert"] {
        assert_eq!(rig.call("POST", path, "", "").await.expect(404).code(), "not_found", "{path}");
    }
    let team = rig.token(Role::Operator, Some(&["team"])).await;
    rig.call_as(&team, "POST", &format!("/v1/audit/{gone}/revert"), "", "").await.expect(404);
    // The first change made a token, which is not reverted this way: that is not told either.
    let hidden = rig.call_as(&team, "POST", "/v1/audit/1/revert", "", "").await.expect(404).text();
    let absent = rig.call_as(&team, "POST", "/v1/audit/999999/revert", "", "").await.expect(404).text();
    assert_eq!(hidden.replace("change 1 ", "change 999999 "), absent);
}
