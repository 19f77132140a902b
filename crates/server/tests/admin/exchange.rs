//! Import and export of rules files.

use serde_json::{Value, json};
use tollgate_control::record::Role;

use crate::rig::{Answer, Rig, YAML};

const FILE: &str = r#"version: 1
key_by: api_key
on_fail: deny
ipv6_prefix: 56
normalize: nfc
rules:
  - name: free-writes
    match: { tier: free, endpoint: "POST /api/*" }
    limit: { requests: 10, window: 1s, algorithm: token_bucket, burst: 20 }
  - name: in-flight
    key_by: global
    limit: { algorithm: concurrency, slots: 50, slot_ttl: 10s }
    on_fail: allow
  - match: { ip: "!10.0.0.0/8" }
    limit: { requests: 5, window: 1m }
clients:
  - { client_key: "key:abc", tier: free, org: acme, attributes: { region: eu } }
overrides:
  - { client_key: "key:abc", rule: free-writes, requests: 100, reason: launch }
  - { client_key: "key:abc", rule: in-flight, unlimited: true, valid_from: "2026-01-01T00:00:00Z", valid_until: "2027-01-01T00:00:00Z" }
"#;

async fn import(rig: &Rig, query: &str, text: &str) -> Answer {
    rig.call("POST", &format!("/v1/rules/import{query}"), YAML, text).await
}

fn count(answer: &Value) -> usize {
    answer["changes"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_in_comes_out_and_changes_nothing_when_it_comes_back() {
    let rig = Rig::start().await;
    let tried = import(&rig, "?dry_run=true", FILE).await.expect(200).json();
    assert_eq!((&tried["dry_run"], count(&tried)), (&json!(true), 7), "{tried}");
    assert_eq!(rig.get("/v1/rules").await.json()["rules"], json!([]));
    let done = import(&rig, "", FILE).await.expect(200).json();
    assert_eq!((count(&done), rig.changes()), (7, 1), "one generation: the namespace, 3 rules, a client, 2 overrides");
    let rule = rig.get("/v1/rules/free-writes").await.expect(200).json();
    assert_eq!((&rule["key_by"], &rule["on_fail"]), (&json!("api_key"), &json!("deny")), "what the file says for all");
    let slots = rig.get("/v1/rules/in-flight").await.expect(200).json();
    assert_eq!(
        (&slots["key_by"], &slots["on_fail"], &slots["limit"]["slots"]),
        (&json!("global"), &json!("allow"), &json!(50))
    );

    let out = rig.get("/v1/rules/export").await.expect(200);
    assert_eq!(out.field("content-type"), Some("application/yaml"));
    let text = out.text();
    assert!(tollgate_rules::read("out.yaml", &text).is_ok(), "{text}");
    assert!(
        text.contains("ipv6_prefix: 56") && text.contains("normalize: nfc") && text.contains("reason: launch"),
        "{text}"
    );
    assert!(!text.contains("2553"), "who named no end gets none: {text}");
    let again = import(&rig, "", &text).await.expect(200).json();
    assert_eq!((count(&again), rig.changes()), (0, 1), "{again}");
    assert_eq!(count(&import(&rig, "", FILE).await.expect(200).json()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_without_a_name_keep_their_ids_whatever_stands_beside_them() {
    let rig = Rig::start().await;
    let one = "rules:\n  - { match: { tier: free }, limit: { requests: 1, window: 1s } }\n";
    let both = format!("{one}  - {{ match: {{ tier: free }}, key_by: ip, limit: {{ requests: 1, window: 1s }} }}\n");
    import(&rig, "", one).await.expect(200);
    let made = rig.get("/v1/rules").await.json()["rules"][0]["rule_id"].as_str().unwrap().to_owned();
    assert!(made.starts_with("rule-") && made.len() == 21, "{made}");
    // Both would be named `free-1s` and get distinct names; the first is not created again under another name.
    let answer = import(&rig, "", &both).await.expect(200).json();
    assert_eq!((count(&answer), &answer["changes"][0]["before"]), (1, &Value::Null), "{answer}");
    assert_eq!(count(&import(&rig, "", &both).await.expect(200).json()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_files_have_no_words_for_stays() {
    let rig = Rig::start().await;
    import(&rig, "", FILE).await.expect(200);
    rig.send_if("PATCH", "/v1/rules/free-writes", "*", json!({ "name": "Writes", "enabled": false })).await.expect(200);
    let text = rig.get("/v1/rules/export").await.expect(200).text();
    assert!(text.contains("mode: \"off\""), "{text}");
    assert_eq!(count(&import(&rig, "", &text).await.expect(200).json()), 0);
    assert_eq!(rig.get("/v1/rules/free-writes").await.json()["enabled"], false);
    assert_eq!(count(&import(&rig, "", FILE).await.expect(200).json()), 1);
    let rule = rig.get("/v1/rules/free-writes").await.json();
    assert_eq!((&rule["enabled"], &rule["name"]), (&json!(true), &json!("Writes")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_the_file_does_not_have_go_only_when_asked() {
    let rig = Rig::start().await;
    import(&rig, "", FILE).await.expect(200);
    let small = "rules:\n  - { name: in-flight, key_by: global, limit: { algorithm: concurrency, slots: 50, slot_ttl: 10s }, on_fail: allow }\n";
    assert_eq!(count(&import(&rig, "", small).await.expect(200).json()), 0);
    let pruned = import(&rig, "?prune=true", small).await.expect(200).json();
    let gone: Vec<&str> =
        pruned["changes"].as_array().unwrap().iter().map(|change| change["kind"].as_str().unwrap()).collect();
    assert_eq!(gone.iter().filter(|kind| **kind == "rule").count(), 2, "{pruned}");
    assert_eq!(gone.iter().filter(|kind| **kind == "override").count(), 1, "and the override of one of them");
    assert_eq!(rig.get("/v1/rules").await.json()["rules"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_with_line_and_column() {
    let rig = Rig::start().await;
    let answer = import(&rig, "", "rules:\n  - name: a\n    limit: { requests: 10, window: 60 }\n  - limt: 5\n")
        .await
        .expect(422);
    let errors = answer.json()["errors"].as_array().unwrap().clone();
    assert_eq!(
        (&errors[0]["field"], &errors[0]["code"], &errors[0]["line"]),
        (&json!("rules[0].limit.window"), &json!("bad-duration"), &json!(3))
    );
    assert!(errors[0]["column"].as_u64().unwrap() > 1);
    assert!(errors.iter().any(|error| error["code"] == "unknown-field" && error["line"] == 4), "{}", answer.text());
    for (text, code) in [("", 422), ("{", 422), ("rules: &a [*a]", 422), ("\u{feff}rules: []", 422), ("- 1", 422)] {
        import(&rig, "", text).await.expect(code);
    }
    assert_eq!(
        rig.raw("POST", "/v1/rules/import", &format!("{YAML}Authorization: Bearer {}\r\n", rig.operator), b"\xff\xfe")
            .await
            .status,
        422
    );
    let wrong = rig.call("POST", "/v1/rules/import", crate::rig::JSON, "{}").await.expect(415);
    assert_eq!(wrong.code(), "wrong_media_type");
}

#[tokio::test(flavor = "multi_thread")]
async fn s16_a_file_of_another_namespace_stays_out() {
    let rig = Rig::start().await;
    let team = rig.token(Role::Operator, Some(&["team"])).await;
    let theirs = "namespace: default\nrules: [{ name: a, limit: { requests: 1, window: 1s } }]\n";
    let refused = rig.call_as(&team, "POST", "/v1/rules/import", YAML, theirs).await.expect(422);
    assert_eq!(refused.faults(), [("namespace".to_owned(), "other-namespace".to_owned())]);
    let refused = rig.call_as(&team, "POST", "/v1/rules/import?namespace=default", YAML, theirs).await.expect(403);
    assert_eq!(refused.code(), "other_namespace");
    let done = rig
        .call_as(&team, "POST", "/v1/rules/import", YAML, &theirs.replace("default", "team"))
        .await
        .expect(200)
        .json();
    assert!(done["changes"].as_array().unwrap().iter().all(|change| change["namespace"] == "team"));
    rig.call_as(&team, "GET", "/v1/rules/export?namespace=default", "", "").await.expect(404);
    let future = "version: 2\nrules: [{ limit: { requests: 1, window: 1s } }]\n";
    import(&rig, "", future).await.expect(422);
    let large = format!("# {}\n", "x".repeat(16 << 20));
    assert_eq!(import(&rig, "", &large).await.expect(413).code(), "body_too_large");
}
