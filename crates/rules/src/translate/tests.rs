//! Files as they are found in the wild, and what becomes of them.

use super::*;

fn translated(origin: Origin, text: &str) -> Translation {
    let translation = translate(origin, "limits.yaml", text).unwrap_or_else(|report| panic!("{report}"));
    for file in &translation.files {
        let read = crate::read("rules.yaml", &file.text).unwrap_or_else(|report| panic!("{report}\n{}", file.text));
        assert_eq!((read.namespace.as_str(), read.rules.len()), (file.namespace.as_str(), file.rules));
    }
    translation
}

fn notes(translation: &Translation) -> Vec<String> {
    translation.notes.iter().map(|note| format!("{}: {}", note.line, note.message)).collect()
}

#[test]
fn a_tree_becomes_rules_that_find_the_same() {
    let translation = translated(
        Origin::EnvoyRatelimit,
        "domain: mongo_cps
descriptors:
  - key: database
    value: users
    rate_limit: { unit: second, requests_per_unit: 500 }
  - key: database
    value: default
    rate_limit: { unit: month, requests_per_unit: 500, name: default-db }
  - key: database
    value: 'tmp_*'
    share_threshold: true
    shadow_mode: true
    rate_limit: { unit: week, requests_per_unit: 7 }
  - key: database
    rate_limit: { unit: minute, requests_per_unit: 10 }
    descriptors:
      - key: operation
        value: find
        rate_limit: { unlimited: true, replaces: [{ name: default-db }] }
",
    );
    assert_eq!(
        translation.files[0].text,
        "namespace: mongo_cps
rules:
  - name: \"database=users\"
    match: { database: users }
    key_by: global
    limit: { requests: 500, window: 1s, algorithm: fixed_window }
    count_denied: true
  - name: default-db
    match: { database: default }
    key_by: global
    limit: { requests: 500, window: 30d, algorithm: fixed_window }
    count_denied: true
  - name: \"database=tmp_*\"
    match: { database: [\"tmp_*\", \"!users\", \"!default\"] }
    key_by: global
    limit: { requests: 7, window: 7d, algorithm: fixed_window }
    mode: shadow
    count_denied: true
  - name: database
    match: { database: [\"!users\", \"!default\", \"!tmp_*\"] }
    key_by: database
    limit: { requests: 10, window: 1m, algorithm: fixed_window }
    count_denied: true
  - name: \"database, operation=find\"
    match: { database: [\"!users\", \"!default\", \"!tmp_*\"], operation: find }
    unlimited: true
"
    );
    assert_eq!(
        notes(&translation),
        [
            "14: also counts requests that have the attributes of a level below",
            "17: `replaces` is left out: between the descriptors of one request there is none here",
        ]
    );
}

#[test]
fn what_rules_cannot_say_is_told_with_its_line() {
    let translation = translated(
        Origin::EnvoyRatelimit,
        "domain: d
descriptors:
- { key: 'a b', rate_limit: { unit: day, requests_per_unit: 1 } }
- { key: x, value: '!y', rate_limit: { unit: day, requests_per_unit: 1 } }
- key: a
  descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 1 } }
- { key: q, quota_mode: true, detailed_metric: true, metadata: { m: 1 }, rate_limit: { unit: day, requests_per_unit: 1 } }
",
    );
    assert_eq!(translation.files[0].rules, 1);
    assert_eq!(
        notes(&translation),
        [
            "3: left out: the key `a b` cannot be an attribute: use letters, digits, `_`, `-` and `.`",
            "4: left out: the value `!y` would mean \"not\"",
            "7: left out: the key `a` is there twice on the way: an attribute has one value",
            "8: `quota_mode` became `mode: shadow`: a rule refuses by itself or not at all",
            "8: metrics go by rule, never by values",
            "8: `metadata` is left out",
        ]
    );
}

#[test]
fn limits_of_limitador_become_rules_of_their_namespaces() {
    let translation = translated(
        Origin::Limitador,
        "- namespace: toystore
  max_value: 10
  seconds: 60
  conditions: [\"descriptors[0].req_method == 'POST'\", \"descriptors[0]['tier'] != 'gold'\"]
  variables: [\"descriptors[0].user_id\"]
- namespace: toystore
  max_value: 5
  seconds: 1
  name: per-second
  conditions: [\"req.path == /toys\"]
- { namespace: other, max_value: 100, seconds: 3600, conditions: [], variables: [user, app] }
- { namespace: other, max_value: 1, seconds: 1, conditions: [\"request.size() > 5\"] }
",
    );
    let names: Vec<(&str, usize)> =
        translation.files.iter().map(|file| (file.namespace.as_str(), file.rules)).collect();
    assert_eq!(names, [("other", 1), ("toystore", 1)]);
    let toystore = &translation.files[1].text;
    assert!(toystore.contains("match: { req_method: [POST], tier: [\"!gold\"] }"), "{toystore}");
    assert!(toystore.contains("limit: { requests: 10, window: 60s, algorithm: fixed_window }"), "{toystore}");
    assert!(translation.files[0].text.contains("key_by: [user, app]"), "{}", translation.files[0].text);
    assert_eq!(
        notes(&translation),
        [
            "6: left out: `req.path == /toys` does not compare an attribute with a text",
            "12: left out: `request.size() > 5` does not compare an attribute with a text",
        ]
    );
}

#[test]
fn a_file_of_another_kind_is_an_error_with_its_place() {
    let report =
        translate(Origin::Limitador, "limits.yaml", "- { namespace: a, max_value: -1, second: 1 }").unwrap_err();
    let codes: Vec<&str> = report.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["out-of-range", "unknown-field"]);
    assert!(translate(Origin::EnvoyRatelimit, "x.yaml", "- 1").is_err());
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let limit = |name: &str, value: u32| {
        format!("- {{ namespace: a, max_value: {value}, seconds: 1, name: {name}, variables: [v{value}] }}\n")
    };
    let text: String = ["n", "n 2", "n", "n"].iter().zip(1..).map(|(name, value)| limit(name, value)).collect();
    let translation = translated(Origin::Limitador, &text);
    assert_eq!(translation.files[0].rules, 4, "{}", translation.files[0].text);
}
