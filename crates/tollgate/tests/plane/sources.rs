//! Rules of all sources: those of the database, of a rules file and of Envoy's files are listed, overridden and
//! switched alike.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use tollgate_lab::patience;

use super::rig::{Node, Place};

const SOON: Duration = Duration::from_secs(20);

/// A node with rules of all three sources.
fn node(place: Place) -> (Place, Node) {
    let (rules, config) = (place.dir.path().join("limits.yaml"), place.dir.path().join("envoy"));
    let file = "rules:\n  - name: filed\n    match: { endpoint: /filed }\n    key_by: client_key\n    \
                limit: { requests: 5, window: 1h, algorithm: fixed_window }\n";
    fs::write(&rules, file).unwrap();
    fs::create_dir(&config).unwrap();
    let domain = "domain: edge\ndescriptors:\n- key: tenant\n  rate_limit: { unit: hour, requests_per_unit: 7 }\n\
                  - key: tenant\n  value: free\n  descriptors:\n  - key: path\n    rate_limit: { unit: day, requests_per_unit: 3 }\n";
    fs::write(config.join("edge.yaml"), domain).unwrap();
    let arguments = ["--rules", rules.to_str().unwrap(), "--envoy-config", config.to_str().unwrap()];
    let place = place.with(&arguments);
    let node = place.start(None);
    assert_eq!(node.make("stored", "/stored", 9).status, 201);
    (place, node)
}

fn rows(answer: &Value) -> Vec<[String; 4]> {
    let text = |rule: &Value, name: &str| rule[name].as_str().unwrap_or("-").to_owned();
    let row = |rule: &Value| {
        let location = text(rule, "location");
        let file = location.rsplit('/').next().unwrap().to_owned();
        [text(rule, "namespace"), text(rule, "rule_id"), text(rule, "source"), file]
    };
    answer["rules"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn rules_of_every_source_are_listed_with_their_location() {
    let (_place, node) = node(Place::embedded());
    let listed = node.admin("GET", "/v1/rules", None).body;
    let expected = [
        ["default", "filed", "file", "limits.yaml:2"],
        ["edge", "tenant", "envoy", "edge.yaml:3"],
        ["edge", "tenant=free, path", "envoy", "edge.yaml:8"],
        ["default", "stored", "database", "-"],
    ];
    assert_eq!(rows(&listed), expected);
    assert_eq!(listed["rules"][1]["limit"], json!({ "algorithm": "fixed_window", "requests": 7, "window": "1h" }));
    assert_eq!(listed["rules"][2]["match"], json!({ "tenant": "free", "path": "*" }));
    let one = node.admin("GET", "/v1/rules/tenant?namespace=edge", None).body;
    assert_eq!((&one["source"], &one["key_by"]), (&json!("envoy"), &json!("tenant")));
    let namespaces = node.admin("GET", "/v1/namespaces", None).body;
    assert_eq!(
        namespaces["namespaces"],
        json!([
            { "namespace": "default", "rules": { "database": 1, "file": 1, "envoy": 0 } },
            { "namespace": "edge", "rules": { "database": 0, "file": 0, "envoy": 2 } },
        ])
    );
    let refused = node.admin("DELETE", "/v1/rules/tenant?namespace=edge", None);
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("rule_in_file")));
    assert!(refused.body["detail"].as_str().unwrap().contains("edge.yaml:3"), "{refused:?}");
}

/// The limit of a tenant in the domain, if a rule enforces one.
fn tenant_limit(node: &Node, tenant: &str) -> Option<u64> {
    let answer = node.check(json!({ "namespace": "edge", "attributes": { "tenant": tenant }, "cost": 0 }));
    answer.body["rule"].as_str()?;
    answer.body["limit"].as_u64()
}

/// The explanation of a request by the admin port.
fn explain(node: &Node, request: Value) -> Value {
    node.admin("POST", "/v1/explain", Some(request)).body
}

fn until(what: &str, node: &Node, holds: impl Fn() -> bool) {
    patience::until(&format!("{what}; log:\n{}", node.log()), SOON, holds);
}

/// Rewrites the rules file with another limit.
fn rewrite(place: &Place, requests: u64) {
    let path = place.dir.path().join("limits.yaml");
    let file = fs::read_to_string(&path).unwrap();
    fs::write(&path, file.replace("requests: 5,", &format!("requests: {requests},"))).unwrap();
}

#[test]
fn rules_of_files_can_be_overridden() {
    let (place, node) = node(Place::embedded());
    let made = |namespace: &str, client: &str, rule: &str, most: u64| {
        let body = json!({
            "override_id": format!("more-for-{rule}"), "client_key": client, "rule_id": rule, "max_requests": most,
            "valid_until": "2199-01-01T00:00:00Z",
        });
        node.admin("POST", &format!("/v1/overrides?namespace={namespace}"), Some(body))
    };
    assert_eq!(made("default", "user:1", "filed", 50).status, 201);
    assert_eq!(made("default", "user:1", "stored", 90).status, 201);
    assert_eq!(made("edge", "tenant:acme", "tenant", 70).status, 201);
    until("overrides hold", &node, || {
        (node.limit("/filed"), node.limit("/stored"), tenant_limit(&node, "acme")) == (Some(50), Some(90), Some(70))
    });
    assert_eq!(tenant_limit(&node, "other"), Some(7), "the override is for one client");
    let explained = explain(&node, json!({ "namespace": "edge", "attributes": { "tenant": "acme" } }));
    let rule = explained["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "tenant").unwrap();
    assert_eq!((&rule["override"]["override_id"], &rule["source"]), (&json!("more-for-tenant"), &json!("envoy")));
    assert!(rule["location"].as_str().unwrap().ends_with("edge.yaml:3"), "{rule}");
    let explained = explain(&node, json!({ "client_key": "user:1", "endpoint": "/stored" }));
    let rule = explained["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "stored").unwrap();
    assert_eq!(
        (&rule["override"]["client_key"], &rule["override"]["requests"], &rule["source"]),
        (&json!("user:1"), &json!(90), &json!("database"))
    );
    let missing = made("default", "user:1", "no-such-rule", 1);
    assert_eq!((missing.status, &missing.body["errors"][0]["code"]), (422, &json!("unknown-rule")), "{missing:?}");
    // The override survives a reload of the file.
    rewrite(&place, 6);
    let other =
        || node.check(json!({ "client_key": "user:2", "endpoint": "/filed", "cost": 0 })).body["limit"].as_u64();
    until("the file is read again", &node, || other() == Some(6));
    assert_eq!(node.limit("/filed"), Some(50));
    let export = node.admin("GET", "/v1/rules/export", None).body;
    assert!(!export.as_str().unwrap().contains("more-for-filed"), "a file without the rule cannot hold its override");
    for (namespace, id) in [("default", "more-for-filed"), ("edge", "more-for-tenant")] {
        let ended = node.admin("POST", &format!("/v1/overrides/{id}/end?namespace={namespace}"), None);
        assert_eq!(ended.status, 200, "{ended:?}");
    }
    until("overrides end", &node, || (node.limit("/filed"), tenant_limit(&node, "acme")) == (Some(6), Some(7)));
}

#[test]
fn an_override_of_all_rules_exempts_from_rules_of_every_source() {
    let (_place, node) = node(Place::embedded());
    for (namespace, client) in [("default", "user:1"), ("edge", "tenant:acme")] {
        let body = json!({ "override_id": "partner", "client_key": client, "rule_id": "*", "unlimited": true,
            "valid_until": "2199-01-01T00:00:00Z" });
        let made = node.admin("POST", &format!("/v1/overrides?namespace={namespace}"), Some(body));
        assert_eq!(made.status, 201, "{made:?}");
    }
    until("overrides hold", &node, || {
        (node.limit("/filed"), node.limit("/stored"), tenant_limit(&node, "acme")) == (None, None, None)
    });
    assert_eq!(tenant_limit(&node, "other"), Some(7), "the override is for one client");
    let explained = explain(&node, json!({ "client_key": "user:1", "endpoint": "/stored" }));
    let rule = explained["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "stored").unwrap();
    assert_eq!(rule["override"]["override_id"], json!("partner"));
    let export = node.admin("GET", "/v1/rules/export", None).body;
    assert!(export.as_str().unwrap().contains("unlimited: true"), "{export}");
    let numbers =
        json!({ "client_key": "user:2", "rule_id": "*", "max_requests": 5, "valid_until": "2199-01-01T00:00:00Z" });
    let refused = node.admin("POST", "/v1/overrides", Some(numbers));
    assert_eq!((refused.status, &refused.body["errors"][0]["code"]), (422, &json!("bad-override")), "{refused:?}");
}

#[test]
fn a_rule_of_any_source_is_switched_to_shadow_and_back() {
    let (place, node) = node(Place::embedded());
    let path = |namespace: &str, rule: &str| format!("/v1/rules/{rule}/mode?namespace={namespace}");
    let all = [("default", "filed"), ("default", "stored"), ("edge", "tenant")];
    let limits = || [node.limit("/filed"), node.limit("/stored"), tenant_limit(&node, "acme")];
    for (namespace, rule) in all {
        let switched =
            node.admin("PUT", &path(namespace, rule), Some(json!({ "mode": "shadow", "reason": "too strict" })));
        assert_eq!((switched.status, &switched.body["mode"]), (200, &json!("shadow")), "{switched:?}");
    }
    until("all are in shadow mode", &node, || limits() == [None; 3]);
    rewrite(&place, 6);
    let seen = || {
        let rule = explain(&node, json!({ "client_key": "user:1", "endpoint": "/filed" }))["rules"][0].clone();
        assert_eq!((&rule["name"], &rule["source"]), (&json!("filed"), &json!("file")));
        (rule["limit"]["requests"].as_u64(), rule["mode"].clone(), rule["own_mode"].clone())
    };
    until("the switch outlives a reload", &node, || seen() == (Some(6), json!("shadow"), json!("enforce")));
    let listed = node.admin("GET", "/v1/rules", None).body;
    for rule in listed["rules"].as_array().unwrap().iter().filter(|rule| rule["rule_id"] != "tenant=free, path") {
        assert_eq!((&rule["mode_override"]["mode"], rule.get("mode")), (&json!("shadow"), None), "{rule}");
    }
    // The switches survive the recompilation of single rules.
    assert_eq!(node.make("beside", "/beside", 3).status, 201);
    node.serves("/beside", 3, SOON);
    let fields = [("If-Match", "*")];
    let to = json!({ "description": "changed while it is switched" });
    let changed = node.try_admin(&node.admin, "PATCH", "/v1/rules/stored", &fields, Some(to)).unwrap();
    assert_eq!(changed.status, 200, "{changed:?}");
    let deleted = node.try_admin(&node.admin, "DELETE", "/v1/rules/beside", &fields, None).unwrap();
    assert_eq!(deleted.status, 204, "{deleted:?}");
    until("a rule went", &node, || node.limit("/beside").is_none());
    assert_eq!(limits(), [None; 3]);
    let audit = node.admin("GET", "/v1/audit?kind=rule_mode", None).body;
    assert_eq!(audit["audit"].as_array().map(Vec::len), Some(3), "{audit}");
    for (namespace, rule) in all {
        assert_eq!(node.admin("DELETE", &path(namespace, rule), None).status, 204);
        assert_eq!(node.admin("GET", &path(namespace, rule), None).status, 404);
    }
    until("all are enforced again", &node, || limits() == [Some(6), Some(9), Some(7)]);
    let unknown = node.admin("PUT", &path("default", "no-such-rule"), Some(json!({ "mode": "shadow" })));
    assert_eq!(unknown.status, 404, "{unknown:?}");
    assert_eq!(node.admin("PUT", &path("edge", "tenant"), Some(json!({ "mode": "off" }))).status, 200);
    until("a rule of Envoy's files is off", &node, || tenant_limit(&node, "acme").is_none());
}

#[test]
fn importing_rules_of_a_file_is_a_no_op_and_different_ones_are_rejected() {
    let (place, node) = node(Place::embedded());
    let file = fs::read_to_string(place.dir.path().join("limits.yaml")).unwrap();
    let import = |text: &str| {
        let authorization = format!("Bearer {}", node.token());
        let fields = [("Authorization", authorization.as_str())];
        super::rig::call(&node.admin, "POST", "/v1/rules/import", &fields, Some(text)).unwrap()
    };
    let same = import(&file);
    assert_eq!((same.status, &same.body["changes"]), (200, &json!([])), "{same:?}");
    let other = import(&file.replace("requests: 5,", "requests: 8,"));
    assert_eq!((other.status, &other.body["code"]), (409, &json!("rule_in_file")), "{other:?}");
    assert!(other.body["detail"].as_str().unwrap().contains("limits.yaml:2"), "{other:?}");
}
