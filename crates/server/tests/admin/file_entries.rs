//! Clients and overrides of the rules file: listed beside those of the database, and read-only.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_control::record::Role;
use tollgate_rules::RuleFile;

use crate::rig::Rig;

const FILE: &str = "
rules:
  - { name: paid, match: { tier: paid }, limit: { requests: 100, window: 1s } }
clients:
  - { client_key: key:acme, tier: paid, org: acme }
  - { client_key: key:beta, tier: free, attributes: { region: eu } }
overrides:
  - { client_key: key:acme, rule: paid, requests: 500, reason: contract }
  - { client_key: key:beta, rule: paid, unlimited: true, valid_until: 2020-01-01T00:00:00Z }
";

async fn rig() -> Rig {
    let rig = Rig::start().await;
    let file = tollgate_rules::read("rules.yaml", FILE).expect("a valid file");
    let file = RuleFile { file_name: Some("rules.yaml".into()), ..file };
    *rig.world.file.lock() = Some(Arc::new(file));
    rig
}

/// All entries of a list, read in pages of one.
async fn in_pages(rig: &Rig, path: &str, list: &str) -> Vec<Value> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    for _ in 0..20 {
        let page = rig.get(&format!("{path}&limit=1{cursor}")).await.expect(200).json();
        entries.extend(page[list].as_array().expect("a list").clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return entries,
        }
    }
    panic!("the pages do not end: {entries:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_file_are_listed_first_and_changed_only_there() {
    let rig = rig().await;
    rig.send("POST", "/v1/clients", json!({ "client_key": "key:gamma", "tier": "paid" })).await.expect(201);
    let listed = in_pages(&rig, "/v1/clients?namespace=default", "clients").await;
    let keys: Vec<&Value> = listed.iter().map(|client| &client["client_key"]).collect();
    assert_eq!(keys, ["key:acme", "key:beta", "key:gamma"]);
    let acme = json!({
        "client_key": "key:acme", "namespace": "default", "tier": "paid", "organisation": "acme", "attributes": {},
        "created_at": null, "updated_at": null, "version": null, "source": "file", "location": "rules.yaml:5",
    });
    assert_eq!(listed[0], acme);
    assert_eq!(rig.get("/v1/clients/key:acme").await.expect(200).json(), acme);
    assert!(listed[2].get("source").is_none(), "{}", listed[2]);

    for (filter, expected) in [("tier=paid", 2), ("organisation=acme", 1), ("prefix=key:b", 1), ("tier=none", 0)] {
        let found = in_pages(&rig, &format!("/v1/clients?{filter}"), "clients").await;
        assert_eq!(found.len(), expected, "{filter}: {found:?}");
    }
    for (method, path) in [("PUT", "/v1/clients/key:acme"), ("DELETE", "/v1/clients/key:acme")] {
        let refused = rig.send_if(method, path, "*", json!({ "tier": "free" })).await;
        let refused = if method == "DELETE" { rig.call(method, path, "", "").await } else { refused };
        assert_eq!(refused.expect(409).code(), "client_in_file", "{method}");
    }
    let viewer = rig.call_as(&rig.viewer, "GET", "/v1/clients", "", "").await.expect(200);
    assert!(!viewer.text().contains("key:acme"), "viewers see no keys: {}", viewer.text());
    let other = rig.token(Role::Operator, Some(&["elsewhere"])).await;
    let other = rig.call_as(&other, "GET", "/v1/clients", "", "").await.expect(200).json();
    assert_eq!(other["clients"], json!([]), "the file is of another namespace");
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_of_the_file_are_listed_first_and_changed_only_there() {
    let rig = rig().await;
    let listed = in_pages(&rig, "/v1/overrides?namespace=default", "overrides").await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    let first = &listed[0];
    for (name, expected) in [
        ("client_key", json!("key:acme")),
        ("rule_id", json!("paid")),
        ("max_requests", json!(500)),
        ("reason", json!("contract")),
        ("valid_until", json!(null)),
        ("source", json!("file")),
        ("location", json!("rules.yaml:8")),
        ("version", json!(null)),
    ] {
        assert_eq!(first[name], expected, "{name}: {first}");
    }
    let path = format!("/v1/overrides/{}", first["override_id"].as_str().expect("an id"));
    assert_eq!(rig.get(&path).await.expect(200).json(), *first);
    for (method, path) in [("DELETE", path.clone()), ("POST", format!("{path}/end"))] {
        assert_eq!(rig.call(method, &path, "", "").await.expect(409).code(), "override_in_file", "{method}");
    }
    for (filter, expected) in [("client_key=key:beta", 1), ("rule_id=none", 0), ("active=true", 1)] {
        let found = in_pages(&rig, &format!("/v1/overrides?{filter}"), "overrides").await;
        assert_eq!(found.len(), expected, "{filter}: {found:?}");
    }
    rig.get("/v1/overrides/file-1-1").await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_of_a_misspelt_rule_is_answered_with_the_nearest_name() {
    let rig = rig().await;
    let rule = json!({ "rule_id": "exports", "limit": { "requests": 5, "window": "1m" } });
    rig.send("POST", "/v1/rules", rule).await.expect(201);
    let switch = async |name: &str| {
        let path = format!("/v1/rules/{name}/mode");
        rig.send("PUT", &path, json!({ "mode": "shadow" })).await.expect(404).json()["detail"].clone()
    };
    let near = "There is no rule exprts in the namespace default (did you mean `exports`?).";
    assert_eq!(switch("exprts").await, near);
    assert_eq!(switch("nowhere").await, "There is no rule nowhere in the namespace default.");
}
