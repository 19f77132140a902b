//! Plans of a rules file and of the database in one namespace, and modes of their rules.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use tollgate_lab::patience;

use super::rig::{Node, Place};

const SOON: Duration = Duration::from_secs(20);

const FILED: &str = "rules:
  - { name: filed, match: { endpoint: /filed }, key_by: client_key, limit: { requests: 5, window: 1h } }
";
const WITH_PLAN: &str = "plans:
  pro:
    limits:
      - { name: calls, key_by: client_key, limit: { requests: 50, window: 1h, algorithm: fixed_window } }
";

fn limits(requests: u64) -> Value {
    json!([{ "name": "calls", "limit": { "requests": requests, "window": "1h", "algorithm": "fixed_window" } }])
}

/// A node with a rules file, and with the plans `free` (the default) and `pro`, and `gold` that extends `pro`, in the
/// database; `user:pro` and `user:gold` have the last two.
fn node() -> (Place, Node) {
    let place = Place::embedded();
    let rules = place.dir.path().join("limits.yaml");
    fs::write(&rules, FILED).unwrap();
    let place = place.with(&["--rules", rules.to_str().unwrap()]);
    let node = place.start(None);
    for plan in [
        json!({ "plan_id": "free", "default": true, "limits": limits(10) }),
        json!({ "plan_id": "pro", "extends": "free", "limits": limits(99) }),
        json!({ "plan_id": "gold", "extends": "pro" }),
    ] {
        let made = node.admin("POST", "/v1/plans", Some(plan));
        assert_eq!(made.status, 201, "{made:?}");
    }
    for plan in ["pro", "gold"] {
        let client = json!({ "client_key": format!("user:{plan}"), "plan": plan });
        assert_eq!(node.admin("POST", "/v1/clients", Some(client)).status, 201);
    }
    (place, node)
}

/// Rule and limit of a client's request.
fn decided(node: &Node, client: &str) -> (Option<String>, Option<u64>) {
    let body = node.check(json!({ "client_key": client, "endpoint": "/any", "cost": 0 })).body;
    (body["rule"].as_str().map(str::to_owned), body["limit"].as_u64())
}

fn until(node: &Node, what: &str, holds: impl Fn() -> bool) {
    patience::until(&format!("{what}; log:\n{}", node.log()), SOON, holds);
}

fn rule(name: &str, limit: u64) -> (Option<String>, Option<u64>) {
    (Some(name.to_owned()), Some(limit))
}

#[test]
fn a_plan_of_the_file_hides_one_of_the_database_for_all_that_name_it() {
    let (place, node) = node();
    let seen = || ["user:none", "user:pro", "user:gold"].map(|client| decided(&node, client));
    let stored = [rule("free.calls", 10), rule("pro.calls", 99), rule("pro.calls", 99)];
    until(&node, "the plans of the database hold", || seen() == stored);

    fs::write(place.dir.path().join("limits.yaml"), format!("{FILED}{WITH_PLAN}")).unwrap();
    let both = [rule("free.calls", 10), rule("pro.calls", 50), rule("pro.calls", 50)];
    until(&node, "the plan of the file holds, also for the one that extends it", || seen() == both);
    let listed = node.admin("GET", "/v1/rules", None).body["rules"].clone();
    let rows: Vec<_> = listed.as_array().unwrap().iter().map(|rule| (&rule["rule_id"], &rule["source"])).collect();
    let (file, database) = (json!("file"), json!("database"));
    let expected = [(&json!("filed"), &file), (&json!("pro.calls"), &file), (&json!("free.calls"), &database)];
    assert_eq!(rows, expected, "{listed}");

    fs::write(place.dir.path().join("limits.yaml"), format!("allow_shrink: true\n{FILED}")).unwrap();
    until(&node, "the plans of the database are back", || seen() == stored);
}

#[test]
fn a_rule_of_a_plan_is_switched_off_and_to_shadow() {
    let (_place, node) = node();
    until(&node, "the plan holds", || decided(&node, "user:pro") == rule("pro.calls", 99));
    let switch = |mode: &str| node.admin("PUT", "/v1/rules/pro.calls/mode", Some(json!({ "mode": mode })));
    assert_eq!(switch("off").status, 200);
    until(&node, "the rule is off", || decided(&node, "user:pro") == (None, None));
    assert_eq!(decided(&node, "user:none"), rule("free.calls", 10), "that of another plan is not");

    assert_eq!(switch("shadow").status, 200);
    let one = node.admin("GET", "/v1/rules/pro.calls", None).body;
    assert_eq!((&one["mode_override"]["mode"], &one["plan"]), (&json!("shadow"), &json!("pro")), "{one}");
    let explained = || node.admin("POST", "/v1/explain", Some(json!({ "client_key": "user:pro" }))).body;
    let of_plan = || {
        let rules = explained()["rules"].as_array().cloned().unwrap_or_default();
        rules.into_iter().find(|rule| rule["name"] == "pro.calls").map(|rule| rule["mode"].clone())
    };
    until(&node, "the rule is in shadow mode", || of_plan() == Some(json!("shadow")));
    let spent = node.check(json!({ "client_key": "user:pro", "cost": 99 })).body;
    let more = node.check(json!({ "client_key": "user:pro", "cost": 9 })).body;
    assert_eq!((&spent["allowed"], &more["allowed"]), (&json!(true), &json!(true)), "counted, never enforced");

    assert_eq!(node.admin("DELETE", "/v1/rules/pro.calls/mode", None).status, 204);
    let denied = || node.check(json!({ "client_key": "user:pro" })).body["allowed"] == json!(false);
    until(&node, "the rule is enforced, and has counted", denied);
}

#[test]
fn a_mode_in_the_plan_itself_holds() {
    let (_place, node) = node();
    until(&node, "the plan holds", || decided(&node, "user:pro") == rule("pro.calls", 99));
    let mut calls = limits(1);
    calls[0]["mode"] = json!("shadow");
    let change = |limits: Value| {
        let changed = node.try_admin(
            &node.admin,
            "PATCH",
            "/v1/plans/pro",
            &[("If-Match", "*")],
            Some(json!({ "limits": limits })),
        );
        assert_eq!(changed.as_ref().unwrap().status, 200, "{changed:?}");
    };
    change(calls.clone());
    until(&node, "shadow", || decided(&node, "user:pro") == (None, None));
    assert!((0..3).all(|_| node.check(json!({ "client_key": "user:pro" })).body["allowed"] == json!(true)));
    calls[0]["mode"] = json!("off");
    change(calls);
    until(&node, "off", || decided(&node, "user:gold") == (None, None));
    assert_eq!(decided(&node, "user:none"), rule("free.calls", 10), "off does not uncover the rule that it replaces");
    assert_eq!(decided(&node, "user:pro"), (None, None));
}

#[test]
fn explain_names_grants_and_overrides_of_a_plans_rules() {
    let (_place, node) = node();
    let quota = json!([{ "name": "monthly", "quota": { "amount": 100, "every": "month" } }]);
    let plan = json!({ "plan_id": "sold", "limits": quota });
    assert_eq!(node.admin("POST", "/v1/plans", Some(plan)).status, 201);
    let client = json!({ "client_key": "user:sold", "plan": "sold" });
    assert_eq!(node.admin("POST", "/v1/clients", Some(client)).status, 201);
    for (id, rule) in [("one", "sold.monthly"), ("two", "monthly"), ("three", "monthly")] {
        let grant =
            json!({ "grant_id": id, "client_key": "user:sold", "rule_id": rule, "amount": 5, "reason": "ticket" });
        let made = node.admin("POST", "/v1/grants", Some(grant));
        assert_eq!(made.status, 201, "{made:?}");
    }
    let more = json!({ "override_id": "more", "client_key": "user:sold", "rule_id": "monthly", "max_requests": 200,
        "valid_until": "2199-01-01T00:00:00Z", "reason": "contract" });
    assert_eq!(node.admin("POST", "/v1/overrides", Some(more)).status, 201);
    let rule = || {
        let explained = node.admin("POST", "/v1/explain", Some(json!({ "client_key": "user:sold" }))).body;
        explained["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "sold.monthly").cloned()
    };
    let granted = || {
        let grants = rule()?["grants"].as_array().cloned()?;
        let mut ids: Vec<String> =
            grants.iter().filter_map(|grant| Some(grant["grant_id"].as_str()?.to_owned())).collect();
        assert!(grants.iter().all(|grant| grant["reason"] == "ticket"), "{grants:?}");
        ids.sort();
        Some(ids)
    };
    until(&node, "all are named, each once", || granted() == Some(vec!["one".into(), "three".into(), "two".into()]));
    let held = || rule().map(|rule| (rule["override"]["override_id"].clone(), rule["override"]["reason"].clone()));
    until(&node, "the override is named", || held() == Some((json!("more"), json!("contract"))));
}
