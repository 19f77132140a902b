//! Translations of typical files.

use super::*;

fn translated(origin: SourceFormat, text: &str) -> Translation {
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
        SourceFormat::EnvoyRatelimit,
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
  - name: database-users
    match: { database: users }
    key_by: global
    limit: { requests: 500, window: 1s, algorithm: fixed_window }
    count_denied: true
  - name: default-db
    match: { database: default }
    key_by: global
    limit: { requests: 500, window: 30d, algorithm: fixed_window }
    count_denied: true
  - name: database-tmp_
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
  - name: database-operation-find
    match: { database: [\"!users\", \"!default\", \"!tmp_*\"], operation: find }
    unlimited: true
"
    );
    assert_eq!(
        notes(&translation),
        [
            "3: like lines 6, 9, 14, counts every descriptor that has its keys; there, only one that ends with the last of them",
            "17: `replaces` is left out: between the descriptors of one request there is none here",
            "17: exempts every descriptor that has its keys from all limits; there, only one that ends with the last of them",
        ]
    );
}

#[test]
fn options_without_a_translation_get_a_note_with_their_line() {
    let translation = translated(
        SourceFormat::EnvoyRatelimit,
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
            "8: `detailed_metric` is left out: metrics go by rule, never by values",
            "8: `metadata` is left out",
            "8: counts every descriptor that has its keys; there, only one that ends with the last of them",
        ]
    );
    assert_eq!(translation.left_out("d"), 3);
}

/// Names with a meaning here are either translated to it, or left out with a note.
#[test]
fn reserved_names_are_left_out_with_a_note() {
    let limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
    let keys = ["path", "method", "endpoint", "namespace", "global", "ip", "remote_address"];
    let nodes: String = keys.iter().map(|key| format!("- {{ key: {key}, {limit} }}\n")).collect();
    let translation = translated(SourceFormat::EnvoyRatelimit, &format!("domain: d\ndescriptors:\n{nodes}"));
    let other = "use another name, in the file and in requests";
    assert_eq!(
        notes(&translation),
        [
            "3: `path` is taken without its query and in one spelling: `/a//b?c` is `/a/b`".to_owned(),
            "3: like lines 4, 8, 9, counts every descriptor that has its keys; there, only one that ends with the last of them"
                .to_owned(),
            format!("5: left out: here, `endpoint` means a method and a path: {other}"),
            format!("6: left out: here, `namespace` means the namespace itself, which every request has: {other}"),
            format!("7: left out: here, `global` means one bucket for all: {other}"),
            "8: `ip` must be an address, may come as `remote_address`, too, and counts IPv6 by network".to_owned(),
        ]
    );
    let limits = "- { namespace: a, max_value: 1, seconds: 1, conditions: [\"namespace != 'x'\"] }
- { namespace: a, max_value: 1, seconds: 1, variables: [endpoint] }
- { namespace: a, max_value: 1, seconds: 1, variables: ['a b'] }
- { namespace: a, max_value: 1, seconds: 1, variables: [path], policy: token_bucket }
- { namespace: a, max_value: 1, seconds: 1, variables: [method], policy: fixed_window }
";
    let translation = translated(SourceFormat::Limitador, limits);
    assert_eq!((translation.left_out("a"), translation.files[0].rules), (3, 2));
    assert_eq!(
        notes(&translation)[2..],
        [
            "3: left out: the variable `a b` is no attribute",
            "4: `path` is taken without its query and in one spelling: `/a//b?c` is `/a/b`",
            "4: `policy` is left out: it is counted in fixed windows",
        ]
    );
}

#[test]
fn a_limit_of_zero_is_translated() {
    let text = "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 0 } }]\n";
    let translation = translated(SourceFormat::EnvoyRatelimit, text);
    assert!(translation.files[0].text.contains("\nallow_block_all: true\n"), "{}", translation.files[0].text);
    assert_eq!((translation.files[0].rules, translation.left_out("d")), (1, 0));
}

#[test]
fn limits_of_limitador_become_rules_of_their_namespaces() {
    let translation = translated(
        SourceFormat::Limitador,
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
    assert_eq!(["other", "toystore", "a"].map(|namespace| translation.left_out(namespace)), [1, 1, 0]);
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
        translate(SourceFormat::Limitador, "limits.yaml", "- { namespace: a, max_value: -1, second: 1 }").unwrap_err();
    let codes: Vec<&str> = report.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["out-of-range", "unknown-field"]);
    assert!(translate(SourceFormat::EnvoyRatelimit, "x.yaml", "- 1").is_err());
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let limit = |name: &str, value: u32| {
        format!("- {{ namespace: a, max_value: {value}, seconds: 1, name: {name}, variables: [v{value}] }}\n")
    };
    let text: String = ["n", "n 2", "n", "n"].iter().zip(1..).map(|(name, value)| limit(name, value)).collect();
    let translation = translated(SourceFormat::Limitador, &text);
    assert_eq!(translation.files[0].rules, 4, "{}", translation.files[0].text);
}
