//! Regressions found by an adversarial review.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_lab::patience;

use super::rig::{Place, call, rule};

const SOON: Duration = Duration::from_secs(5);

/// Without its rules the node would allow everything, and report to be ready.
#[test]
fn an_unreadable_database_prevents_the_start() {
    let place = Place::embedded();
    std::fs::write(place.dir.path().join("tollgate.db"), "this is no database, and never was one".repeat(200)).unwrap();
    let message = place.try_start(None).err().expect("it does not start");
    assert!(message.contains("cannot use the database sqlite:"), "{message}");
}

#[test]
fn a_rule_that_replaces_a_disabled_one_still_applies() {
    let place = Place::embedded();
    let node = place.start(None);
    assert_eq!(node.make("base", "/x", 20).status, 201);
    let mut special = rule("special", "/x", 10);
    special["replaces"] = json!(["base"]);
    assert_eq!(node.admin("POST", "/v1/rules", Some(special)).status, 201);
    node.serves("/x", 10, SOON);
    let fields = [("If-Match", "*")];
    let off = node.try_admin(&node.admin, "PATCH", "/v1/rules/base", &fields, Some(json!({"enabled": false}))).unwrap();
    assert_eq!(off.status, 200, "{off:?}");
    let generation = off.body["version"].as_i64();
    patience::until("the change is in force", SOON, || node.status()["generation"].as_i64() >= generation);
    assert_eq!(node.limit("/x"), Some(10));
    assert_eq!(node.status()["quarantined"], json!([]));
}

#[test]
fn a_file_with_an_ipv6_prefix_of_its_own_holds_up_nobody() {
    let place = Place::embedded();
    let file = place.dir.path().join("rules.yaml");
    let text = "ipv6_prefix: 56\nrules:\n  - { name: of-file, match: { endpoint: /file }, key_by: client_key, \
                limit: { requests: 3, window: 1h } }\n";
    std::fs::write(&file, text).unwrap();
    let place = place.with(&["--rules", file.to_str().unwrap()]);
    let node = place.start(None);
    let known = node.admin("POST", "/v1/clients", Some(json!({"client_key": "ip:2001:db8:0:aa::1", "tier": "paid"})));
    assert_eq!(known.status, 201, "{known:?}");
    assert_eq!(node.make("later", "/later", 7).status, 201);
    node.serves("/later", 7, SOON);
    let neighbour = node.check(json!({"ip": "2001:db8:0:bb::9", "endpoint": "/file", "client_key": "user:1"}));
    assert_eq!(neighbour.body["rule"], "of-file", "{neighbour:?}");
}

#[test]
fn the_last_admin_token_cannot_be_revoked() {
    let place = Place::embedded();
    let node = place.start(None);
    let own = node.admin("GET", "/v1/whoami", None).body["token_id"].as_str().unwrap().to_owned();
    let refused = node.admin("DELETE", &format!("/v1/tokens/{own}"), None);
    assert_eq!(refused.status, 409, "{refused:?}");
    let second = node.admin("POST", "/v1/tokens", Some(json!({"name": "second", "role": "admin"})));
    assert_eq!(second.status, 201, "{second:?}");
    assert_eq!(node.admin("DELETE", &format!("/v1/tokens/{own}"), None).status, 204);
    assert_eq!(node.admin("GET", "/v1/whoami", None).status, 401, "revoked is revoked");
}

/// Written asynchronously, one row per client, rule and minute.
#[test]
fn violations_are_recorded() {
    let place = Place::embedded();
    let node = place.start(None);
    assert_eq!(node.make("tight", "/tight", 1).status, 201);
    node.serves("/tight", 1, SOON);
    for _ in 0..5 {
        node.check(json!({"client_key": "user:7", "endpoint": "/tight"}));
    }
    let refused = || {
        let rows = node.admin("GET", "/v1/violations?client_key=user:7", None).body["violations"].clone();
        rows.as_array().map_or(0, |rows| rows.iter().filter_map(|row| row["refused"].as_u64()).sum())
    };
    patience::until("four refusals in the table", Duration::from_secs(15), || refused() == 4);
}

/// The last valid rules stay active, and the status reports the file.
#[test]
fn the_status_reports_a_file_that_cannot_be_loaded() {
    let place = Place::embedded();
    let file = place.dir.path().join("rules.yaml");
    std::fs::write(&file, "rules: [{ name: a, limit: { requests: 5, window: 1h } }]\n").unwrap();
    let place = place.with(&["--rules", file.to_str().unwrap()]);
    let node = place.start(None);
    assert_eq!(node.status()["file_errors"], json!([]));
    std::fs::write(&file, "rules: [{ name: a, limit: { requests: 5, window: 1x } }]\n").unwrap();
    let errors = || node.status()["file_errors"].to_string();
    patience::until("the error is reported", Duration::from_secs(20), || errors().contains("1x"));
    assert_eq!(node.limit("/"), Some(5), "what was right stays");
}

/// Tokens with the role `check` are accepted by the data API, in their namespaces, until they are revoked.
#[test]
fn data_tokens_have_namespaces_and_can_be_revoked() {
    let place = Place::embedded().with(&["--require-token", "true"]);
    let node = place.start(None);
    assert_eq!(node.check(json!({"client_key": "user:1"})).status, 401, "no token");
    let make = |body: Value| {
        let made = node.admin("POST", "/v1/tokens", Some(body));
        assert_eq!(made.status, 201, "{made:?}");
        let text = |name: &str| made.body[name].as_str().unwrap().to_owned();
        (text("token_id"), format!("Bearer {}", text("token")))
    };
    let ask = |path: &str, token: &str, body: Value| {
        call(&node.data, "POST", path, &[("Authorization", token)], Some(&body.to_string())).unwrap().status
    };
    let (id, shop) = make(json!({"name": "shop", "role": "check", "namespaces": ["shop"], "expires_in": "1h"}));
    let (_, all) = make(json!({"name": "gateway", "role": "check"}));
    let (_, viewer) = make(json!({"name": "grafana", "role": "viewer"}));
    let (ours, theirs) = (json!({"client_key": "user:1", "namespace": "shop"}), json!({"client_key": "user:1"}));
    assert_eq!((ask("/v1/check", &all, ours.clone()), ask("/v1/check", &all, theirs.clone())), (200, 200));
    assert_eq!((ask("/v1/check", &shop, ours.clone()), ask("/v1/check", &shop, theirs.clone())), (200, 403));
    for path in ["/v1/reserve", "/v1/explain", "/v1/slots/acquire"] {
        assert_eq!((ask(path, &shop, ours.clone()), ask(path, &shop, theirs.clone())), (200, 403), "{path}");
    }
    let batch = |requests: &[&Value]| json!({ "requests": requests });
    assert_eq!(ask("/v1/check/batch", &shop, batch(&[&ours])), 200);
    assert_eq!(ask("/v1/check/batch", &shop, batch(&[&ours, &theirs])), 403);
    let envoy = |domain: &str| json!({"domain": domain, "descriptors": [{"entries": [{"key": "a", "value": "b"}]}]});
    assert_eq!((ask("/json", &shop, envoy("shop")), ask("/json", &shop, envoy("default"))), (200, 403));
    assert_eq!(ask("/v1/check", &viewer, theirs), 401, "tokens of the admin API open the admin API alone");
    assert_eq!(node.try_admin(&node.admin, "GET", "/v1/rules", &[], None).unwrap().status, 200);
    let other = call(&node.admin, "GET", "/v1/rules", &[("Authorization", &shop)], None).unwrap();
    assert_eq!(other.status, 403, "and the other way round");
    assert_eq!(node.admin("DELETE", &format!("/v1/tokens/{id}"), None).status, 204);
    assert_eq!(ask("/v1/check", &shop, ours), 401, "revoked is revoked");
}
