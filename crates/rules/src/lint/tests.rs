//! Warnings, by what causes them.

use super::*;

/// Codes and lines, without the warning that most of these short files deserve.
fn codes(rules: &str) -> Vec<String> {
    let file = crate::read("rules.yaml", rules).unwrap_or_else(|report| panic!("{report}"));
    let (problems, _) = lint(&file).into_parts();
    let others = problems.iter().filter(|problem| ![keys::IMPLICIT, quotas::NOT_HELD].contains(&problem.code));
    others.map(|problem| format!("{}:{}", problem.line, problem.code)).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn a_plain_file_has_nothing_to_say() {
    assert_eq!(
        codes(
            "rules:
  - { match: { tier: free, endpoint: 'POST /api/*' }, limit: { requests: 10, window: 1s, burst: 20 } }
  - { match: { tier: free, endpoint: '*' }, limit: { requests: 1000, window: 1h, algorithm: sliding_window } }
  - { match: { tier: paid, region: eu }, key_by: [user_id, region], limit: { requests: 1000, window: 1h } }
"
        ),
        NONE
    );
}

#[test]
fn rules_that_count_by_the_default_key_are_named_once() {
    let limit = "limit: { requests: 1, window: 1s }";
    let implicit = |file: String| -> Vec<(String, bool)> {
        let read = crate::read("rules.yaml", &file).unwrap_or_else(|report| panic!("{report}"));
        let (problems, _) = lint(&read).into_parts();
        let found = problems.into_iter().filter(|problem| problem.code == keys::IMPLICIT);
        found.map(|problem| (problem.field, problem.message.contains("so do 2 more rules"))).collect()
    };
    let one = |more: &str| implicit(format!("rules: [{{ {more}{limit} }}]"));
    assert_eq!(one(""), [("rules[0].key_by".to_owned(), false)]);
    assert_eq!(one("match: { client_key: '!user:1' }, "), [("rules[0].key_by".to_owned(), false)]);
    let clear = [
        "key_by: client_key, ",
        "key_by: global, ",
        "missing: share, ",
        "mode: off, ",
        "match: { client_key: 'user:*' }, ",
    ];
    for clear in clear {
        assert_eq!(one(clear), [], "{clear}");
    }
    assert_eq!(implicit(format!("key_by: ip\nrules: [{{ {limit} }}]")), [], "said for the whole file");
    assert_eq!(implicit("rules: [{ unlimited: true }]".to_owned()), []);
    let rule = format!("{{ {limit} }}");
    let many = implicit(format!("rules: [{{ key_by: ip, {limit} }}, {rule}, {rule}, {rule}]"));
    assert_eq!(many, [("rules[1].key_by".to_owned(), true)], "one warning, which counts the others");
}

#[test]
fn large_bursts_are_named() {
    assert_eq!(codes("rules:\n  - { limit: { requests: 10, window: 1s, burst: 61 } }"), ["2:large-burst"]);
    assert_eq!(codes("rules:\n  - { limit: { requests: 10, window: 1s, burst: 50 } }"), NONE);
    assert_eq!(codes("rules:\n  - { limit: { requests: 1000, window: 1h } }"), NONE);
}

#[test]
fn warnings_point_at_their_field() {
    let text = "rules:\n  - key_by: ip\n    limit: { requests: 10, window: 1s, burst: 61 }\n";
    let file = crate::read("rules.yaml", text).unwrap();
    let (problems, _) = lint_text(&file, text).into_parts();
    assert_eq!((problems[0].line, problems[0].column), (3, 40));
}

#[test]
fn rules_that_cannot_match_are_named() {
    let rule = |matches: &str| {
        codes(&format!("rules:\n  - {{ match: {{ {matches} }}, limit: {{ requests: 1, window: 1s }} }}"))
    };
    assert_eq!(rule("tier: [free, '!f*']"), ["2:never-matches"]);
    assert_eq!(rule("ip: ['10.1.0.0/16', '!10.0.0.0/8']"), ["2:never-matches"]);
    assert_eq!(rule("endpoint: [/a, '!/a']"), ["2:never-matches"]);
    assert_eq!(rule("tier: [free, paid, '!f*']"), NONE);
}

#[test]
fn rules_of_different_meters_and_calendars_do_not_shadow_each_other() {
    let rules = "rules:
  - limit: { requests: 60, window: 1m }
  - { meter: output_tokens, limit: { amount: 8000, window: 1m } }
  - { name: utc, quota: { amount: 100, every: month } }
  - { name: berlin, quota: { amount: 200, every: month, time_zone: Europe/Berlin } }";
    assert_eq!(codes(rules), NONE);
}

#[test]
fn quotas_without_a_failure_policy_are_named_once() {
    let warned = |top: &str, first: &str| {
        let text = format!(
            "{top}rules:\n  - {{ limit: {{ requests: 1, window: 1s }} }}\n  - {{ {first}quota: {{ amount: 1, every: day }} }}\n  \
             - {{ quota: {{ amount: 1, every: day }} }}"
        );
        let (problems, _) = lint(&crate::read("rules.yaml", &text).unwrap()).into_parts();
        let found = problems.iter().filter(|problem| problem.code == quotas::NOT_HELD);
        found.map(|problem| (problem.line, problem.message.contains("1 more quota"))).collect::<Vec<_>>()
    };
    assert_eq!(warned("", ""), [(3, true)]);
    assert_eq!(warned("", "on_fail: local, "), [(4, false)], "a policy of the rule's own is meant");
    assert_eq!(warned("on_fail: local\n", ""), [(4, true)], "one of the file is for all kinds of limits");
    assert_eq!(warned("on_fail: deny\n", ""), []);
    let text = "rules: [{ quota: { amount: 1, every: day } }]";
    let found = lint_rule(&crate::read("rules.yaml", text).unwrap().rules[0]);
    assert_eq!(found.iter().map(|problem| problem.field.as_str()).collect::<Vec<_>>(), ["key_by", "on_fail"]);
}

#[test]
fn anchors_of_clients_that_suit_no_quota_are_named_once() {
    let file = |rules: &str| {
        codes(&format!(
            "rules:\n{rules}\nclients:\n  - {{ client_key: a, anchor: 17 }}\n  - {{ client_key: b, anchor: monday }}\n  \
             - {{ client_key: c, anchor: monday }}"
        ))
    };
    let monthly = "  - { name: monthly, quota: { amount: 100, every: month } }";
    assert_eq!(file(monthly), ["5:unsuitable-anchor"]);
    assert_eq!(file(&format!("{monthly}\n  - {{ name: weekly, quota: {{ amount: 10, every: week }} }}")), NONE);
    assert_eq!(
        file("  - { limit: { requests: 1, window: 1s } }"),
        NONE,
        "quotas of a database may have a use for them"
    );
    let warned = "  - { mode: off, quota: { amount: 100, every: month } }\n  - { quota: { amount: 9, every: never } }";
    assert_eq!(file(warned), ["5:unsuitable-anchor", "6:unsuitable-anchor"]);
}

#[test]
fn costs_that_cannot_fit_are_named() {
    assert_eq!(codes("rules:\n  - { cost: 11, limit: { requests: 10, window: 1s } }"), ["2:cost-never-fits"]);
    assert_eq!(codes("rules:\n  - { cost: 10, limit: { requests: 10, window: 1s } }"), NONE);
}

#[test]
fn rules_behind_a_wider_exemption_are_named() {
    let rules = "rules:
  - { name: all, unlimited: true, match: { tier: '*' } }
  - { name: free, match: { tier: free }, limit: { requests: 1, window: 1s } }
  - { name: any, limit: { requests: 100, window: 2s } }
";
    assert_eq!(codes(rules), ["3:always-exempted"]);
}

#[test]
fn a_looser_rule_behind_a_stricter_one_is_named() {
    let rules = "rules:
  - { name: strict, match: { tier: free }, key_by: user_id, limit: { requests: 10, window: 1s } }
  - { name: loose, match: { tier: free, endpoint: /x }, key_by: user_id, limit: { requests: 600, window: 1m, burst: 20 } }
  - { name: other-key, match: { tier: free }, key_by: org, limit: { requests: 20, window: 1s } }
  - { name: slower, match: { tier: free }, key_by: user_id, limit: { requests: 100, window: 1h } }
";
    assert_eq!(codes(rules), ["3:shadowed-rule"]);
}

#[test]
fn misspelt_attributes_are_named() {
    let rules = "rules:
  - { match: { teir: free }, key_by: usr_id, limit: { requests: 1, window: 1s } }
";
    assert_eq!(codes(rules), ["2:unknown-attribute", "2:unknown-attribute"]);
    let key = |key: &str| codes(&format!("rules: [{{ key_by: {key}, limit: {{ requests: 1, window: 1s }} }}]"));
    assert_eq!(key("adress"), ["1:unknown-attribute"]);
    assert_eq!(key("remote_address"), NONE);
}

#[test]
fn short_names_of_known_attributes_are_named() {
    let key = |key: &str| codes(&format!("rules: [{{ key_by: {key}, limit: {{ requests: 1, window: 1s }} }}]"));
    for short in ["user", "client", "key", "organisation"] {
        assert_eq!(key(short), ["1:unknown-attribute"], "{short}");
    }
    let text = "rules: [{ limit: { requests: 1, window: 1s } }]\nkey_by: user\n";
    let (problems, _) = lint_text(&crate::read("rules.yaml", text).unwrap(), text).into_parts();
    let told: Vec<_> = problems.iter().map(|p| (p.code, p.line, p.help.as_deref())).collect();
    assert_eq!(told, [("unknown-attribute", 2, Some("did you mean `user_id`?"))], "the key of the whole file");
}

#[test]
fn paths_that_routers_read_differently_are_named() {
    let rule = |more: &str| codes(&format!("rules: [{{ {more}, limit: {{ requests: 1, window: 1s }} }}]"));
    assert_eq!(rule("match: { endpoint: '/users/:id' }"), ["1:colon-parameter"]);
    assert_eq!(rule("match: { endpoint: ['/a', '!GET /users/:id/x'] }"), ["1:colon-parameter"]);
    assert_eq!(rule("match: { endpoint: '/users/{id}' }"), NONE);
    assert_eq!(rule("match: { endpoint: '/time/12:30' }"), NONE);
    assert_eq!(rule("match: { endpoint: 'POST /API/login' }"), ["1:case-of-path"]);
    assert_eq!(rule("match: { endpoint: 'POST /API/login' }, case: sensitive"), NONE);
    assert_eq!(rule("match: { endpoint: 'POST /API/login' }, case: insensitive"), NONE);
    assert_eq!(rule("match: { endpoint: '/users/{userId}/caf%C3%A9' }"), NONE);
    let text =
        "case: sensitive\nrules: [{ key_by: ip, match: { endpoint: /API }, limit: { requests: 1, window: 1s } }]\n";
    let (problems, _) = lint_text(&crate::read("rules.yaml", text).unwrap(), text).into_parts();
    assert_eq!(problems, [], "said for the whole file");
}

#[test]
fn a_rule_alone_has_the_warnings_of_its_file_that_need_no_other_rule() {
    let rules = [
        "key_by: user",
        "match: { teir: free, api_kye: a }",
        "match: { tier: free, endpoint: ['/API/:id', '/x'] }",
        "match: { tier: [free, '!free'] }",
        "cost: 9",
        "match: { region: eu }, key_by: region",
    ];
    let limit = "limit: { requests: 1, window: 1s, burst: 7 }";
    for rule in rules {
        let text = format!("rules: [{{ {rule}, {limit} }}]");
        let file = crate::read("rules.yaml", &text).unwrap_or_else(|report| panic!("{report}"));
        let (mut expected, _) = lint(&file).into_parts();
        for problem in &mut expected {
            problem.field = problem.field.replace("rules[0].", "");
        }
        assert!(!expected.is_empty());
        assert_eq!(lint_rule(&file.rules[0]), expected, "{rule}");
        let off = RuleSpec { mode: Enforcement::Off, ..file.rules[0].clone() };
        assert_eq!(lint_rule(&off), []);
    }
}

/// RELIABILITY Y05: what is text here is a switch, a number or a date elsewhere.
#[test]
fn y05_values_that_other_readers_take_for_something_else_are_named() {
    let text = "rules:
  - match: { country: no, starts: 12:30:45, since: 2024-01-01, on: x, ok: 'no', zone: 12:75, v: 1.2 }
    limit: { requests: 1, window: 1s }
  - match: { country: [de, NO] }
    limit: { requests: 1, window: 1s }
key_by: ip
clients:
  - { client_key: 'user:1', tier: off }
";
    let file = crate::read("rules.yaml", text).unwrap();
    let (problems, _) = lint_text(&file, text).into_parts();
    let told: Vec<String> = problems.iter().map(|p| format!("{}:{} {}", p.line, p.column, p.message)).collect();
    assert_eq!(
        told,
        [
            "2:23 `no` is text here, and false to other readers of YAML",
            "2:35 `12:30:45` is text here, and the number 45045 to other readers of YAML",
            "2:52 `2024-01-01` is text here, and a date to other readers of YAML",
            "2:64 `on` is text here, and true to other readers of YAML",
            "4:28 `NO` is text here, and false to other readers of YAML",
            "8:35 `off` is text here, and false to other readers of YAML",
        ]
    );
    assert_eq!(problems[0].help.as_deref(), Some("write 'no', in quotes"));
}

/// Comparing every rule with every other takes minutes here.
#[test]
fn many_rules_take_linear_time() {
    let narrow = [("key_by: k", ""), ("match: { tier: t", " }"), ("match: { tier: '*', endpoint: /e", " }")];
    let rule = |number: usize| {
        let (head, tail) = narrow[number % 3];
        format!("  - {{ {head}{number}{tail}, limit: {{ requests: 1, window: 1s }} }}\n")
    };
    let rules: String = (0..60_000).map(rule).collect();
    assert_eq!(codes(&format!("rules:\n{rules}")), NONE);
}

#[test]
fn a_penalty_of_many_clients_at_once_is_a_warning() {
    let with = |key: &str| {
        codes(&format!(
            "rules:\n  - {{ {key}, limit: {{ requests: 1, window: 1s }}, penalty: {{ after: 9, within: 1m, block: 10m }} }}\n"
        ))
    };
    assert_eq!(with("key_by: api_key"), NONE);
    assert_eq!(with("key_by: [endpoint, \"api_key|ip\"]"), NONE);
    assert_eq!(with("key_by: global"), ["2:shared-penalty"]);
    assert_eq!(with("key_by: endpoint"), ["2:shared-penalty"]);
    assert_eq!(with("key_by: api_key, missing: share"), ["2:shared-penalty"]);
}
