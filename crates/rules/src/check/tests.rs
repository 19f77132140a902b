//! Specs that were not read from YAML.

use super::*;
use crate::spec::{ClientSpec, Cost, LeaseSpec, LimitSpec, SoftSpec};

fn limited(limit: LimitSpec) -> RuleSpec {
    RuleSpec { limit: Some(limit), ..RuleSpec::default() }
}

fn per_second(requests: u64) -> LimitSpec {
    LimitSpec { requests, window_ns: 1_000_000_000, ..LimitSpec::default() }
}

fn named(name: &str) -> RuleSpec {
    RuleSpec { name: Some(name.to_owned()), ..limited(per_second(10)) }
}

fn found(file: RuleFile) -> Vec<(&'static str, String)> {
    check(&file).into_iter().map(|problem| (problem.code, problem.field)).collect()
}

fn rules(rules: Vec<RuleSpec>) -> Vec<(&'static str, String)> {
    found(RuleFile { rules, ..RuleFile::default() })
}

#[test]
fn a_plain_rule_is_fine() {
    assert_eq!(rules(vec![limited(per_second(10))]), []);
}

#[test]
fn numbers_are_checked_without_yaml() {
    let queue =
        LimitSpec { algorithm: LimitAlgorithm::LeakyBucket, max_delay_ns: Some(1_000_000_000), ..per_second(10) };
    let window = LimitSpec { algorithm: LimitAlgorithm::FixedWindow, ..per_second(10) };
    let slots = LimitSpec { algorithm: LimitAlgorithm::Concurrency, slots: 5, ..LimitSpec::default() };
    let cases = [
        (LimitSpec { window_ns: 1, ..per_second(0) }, ["out-of-range", "block-all"].as_slice()),
        (LimitSpec { window_ns: u64::MAX, ..per_second(1) }, &["too-slow", "out-of-range"]),
        (per_second(u64::MAX), &["out-of-range", "too-fast"]),
        (LimitSpec { burst: Some(u64::MAX), ..per_second(1) }, &["out-of-range", "too-slow"]),
        (LimitSpec { burst: Some(5), ..window.clone() }, &["misplaced-field"]),
        (LimitSpec { burst: Some(5), ..queue.clone() }, &["misplaced-field"]),
        (LimitSpec { max_delay_ns: Some(1_000_000), ..window }, &["misplaced-field"]),
        (LimitSpec { slot_ttl_ns: 0, ..slots.clone() }, &["out-of-range"]),
        (LimitSpec { slots: u64::MAX, ..slots }, &["out-of-range"]),
        (LimitSpec { max_delay_ns: Some(u64::MAX), ..queue }, &["too-slow", "out-of-range"]),
    ];
    for (limit, codes) in cases {
        let shown = format!("{limit:?}");
        let found: Vec<_> = rules(vec![limited(limit)]).into_iter().map(|(code, _)| code).collect();
        assert_eq!(found, codes, "{shown}");
    }
}

#[test]
fn options_must_suit_the_limit() {
    let slots = || limited(LimitSpec { algorithm: LimitAlgorithm::Concurrency, slots: 5, ..LimitSpec::default() });
    let ten = || limited(per_second(10));
    let cases = [
        (RuleSpec { consistency: Consistency::Leased, ..slots() }, Some(("bad-consistency", "consistency"))),
        (RuleSpec { consistency: Consistency::Local, ..slots() }, None),
        (RuleSpec { consistency: Consistency::Async, ..ten() }, None),
        (RuleSpec { soft: Some(SoftSpec { percent: 10 }), ..slots() }, Some(("misplaced-field", "soft"))),
        (RuleSpec { lease: Some(LeaseSpec::Seconds(1)), ..ten() }, Some(("misplaced-field", "lease"))),
        (RuleSpec { shards: 0, ..ten() }, Some(("out-of-range", "shards"))),
        (RuleSpec { shards: 2000, ..ten() }, Some(("out-of-range", "shards"))),
        (RuleSpec { shards: 11, ..ten() }, Some(("bad-shards", "shards"))),
        (RuleSpec { shards: 10, ..ten() }, None),
        (RuleSpec { shards: 5, cost: Cost::Fixed(3), ..ten() }, Some(("bad-shards", "shards"))),
        (RuleSpec { shards: 5, cost: Cost::Fixed(2), ..ten() }, None),
        (RuleSpec { cost: Cost::Fixed(u64::MAX), ..ten() }, Some(("out-of-range", "cost"))),
        (RuleSpec { unlimited: true, ..ten() }, Some(("misplaced-field", "limit"))),
        (RuleSpec { unlimited: true, ..RuleSpec::default() }, None),
        (RuleSpec { doc_url: Some("javascript:alert(1)".into()), ..ten() }, Some(("bad-url", "doc_url"))),
        (RuleSpec { resource: Some("a\"b".into()), ..ten() }, Some(("bad-name", "resource"))),
    ];
    for (rule, expected) in cases {
        let shown = format!("{rule:?}");
        let expected: Vec<_> = expected.iter().map(|(code, field)| (*code, format!("rules[0].{field}"))).collect();
        assert_eq!(rules(vec![rule]), expected, "{shown}");
    }
    assert_eq!(rules(vec![RuleSpec::default()]), [("missing-field", "rules[0]".to_owned())]);
}

#[test]
fn names_are_safe_unique_and_known() {
    for name in ["", " a", "a\n", "a\"b", "a\\b", "é", "\u{1b}[31m", "a b", "a/b", &"x".repeat(65)] {
        assert_eq!(rules(vec![named(name)]), [("bad-name", "rules[0].name".to_owned())], "{name:?}");
    }
    assert_eq!(rules(vec![named("a.B_c-9"), named(&"x".repeat(64))]), []);
    assert_eq!(rules(vec![named("Api"), named("b"), named("api")]), [("duplicate-name", "rules[2].name".to_owned())]);
    assert_eq!(rules(vec![named("a"), named("b"), named("a")]), [("duplicate-name", "rules[2].name".to_owned())]);
    let replacing = |name: &str| RuleSpec { replaces: vec![name.to_owned()], ..named("a") };
    for name in ["a", "nobody"] {
        assert_eq!(rules(vec![replacing(name), named("b")]), [("unknown-rule", "rules[0].replaces[0]".to_owned())]);
    }
    assert_eq!(rules(vec![replacing("b"), named("b")]), []);
}

#[test]
fn error_codes_have_one_spelling() {
    let coded = |code: &str| RuleSpec { error_code: Some(code.to_owned()), ..limited(per_second(10)) };
    for code in ["", "Too_Many", "too many", "too/many", "zu_häufig", "a\n", "a\"b", &"x".repeat(65)] {
        assert_eq!(rules(vec![coded(code)]), [("bad-name", "rules[0].error_code".to_owned())], "{code:?}");
    }
    for code in ["a", "429", "search.too_many-1", &"x".repeat(64)] {
        assert_eq!(rules(vec![coded(code)]), [], "{code:?}");
    }
}

#[test]
fn overrides_fit_their_rule() {
    let plain =
        || OverrideSpec { client_key: "user:1".into(), rule: "a".into(), requests: Some(5), ..OverrideSpec::default() };
    let dated = |from, until| OverrideSpec { valid_from_ns: Some(from), valid_until_ns: Some(until), ..plain() };
    let window = LimitSpec { algorithm: LimitAlgorithm::FixedWindow, ..per_second(10) };
    let with = |overrides: Vec<OverrideSpec>| {
        let windowed = RuleSpec { name: Some("w".into()), ..limited(window.clone()) };
        let free = RuleSpec { name: Some("u".into()), unlimited: true, ..RuleSpec::default() };
        let file = RuleFile { rules: vec![named("a"), windowed, free], overrides, ..RuleFile::default() };
        found(file).into_iter().map(|(code, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(with(vec![plain()]), [] as [&str; 0]);
    assert_eq!(with(vec![plain(), plain()]), ["duplicate-name"]);
    assert_eq!(with(vec![dated(1, 5), dated(5, 9)]), [] as [&str; 0]);
    assert_eq!(with(vec![dated(1, 6), dated(5, 9)]), ["duplicate-name"]);
    assert_eq!(with(vec![dated(5, 5)]), ["bad-time"]);
    assert_eq!(with(vec![OverrideSpec { requests: None, ..plain() }]), ["bad-override"]);
    assert_eq!(with(vec![OverrideSpec { unlimited: true, ..plain() }]), ["bad-override"]);
    assert_eq!(with(vec![OverrideSpec { rule: "b".into(), ..plain() }]), ["unknown-rule"]);
    assert_eq!(with(vec![OverrideSpec { rule: "u".into(), ..plain() }]), ["bad-override"]);
    assert_eq!(with(vec![OverrideSpec { rule: "w".into(), burst: Some(2), ..plain() }]), ["misplaced-field"]);
    assert_eq!(with(vec![OverrideSpec { requests: Some(2_000_000), ..plain() }]), ["too-fast"]);
    assert_eq!(with(vec![OverrideSpec { requests: Some(0), ..plain() }]), [] as [&str; 0]);
}

#[test]
fn clients_are_there_once() {
    let client = |key: &str| ClientSpec { client_key: key.to_owned(), ..ClientSpec::default() };
    let with = |clients| found(RuleFile { rules: vec![named("a")], clients, ..RuleFile::default() });
    assert_eq!(with(vec![client("user:1"), client("user:2")]), []);
    assert_eq!(
        with(vec![client("user:1"), client("user:1")]),
        [("duplicate-name", "clients[1].client_key".to_owned())]
    );
    assert_eq!(with(vec![client("a\nb")]), [("bad-name", "clients[0].client_key".to_owned())]);
}

#[test]
fn overrides_of_one_client_do_not_overlap() {
    let change = |from, until| OverrideSpec {
        client_key: "user:1".to_owned(),
        rule: "r".to_owned(),
        requests: Some(1),
        valid_from_ns: from,
        valid_until_ns: until,
        ..OverrideSpec::default()
    };
    let fields = |periods: &[(Option<u64>, Option<u64>)]| {
        let overrides = periods.iter().map(|(from, until)| change(*from, *until)).collect();
        found(RuleFile { rules: vec![named("r")], overrides, ..RuleFile::default() })
    };
    let twice = |index: u32| vec![("duplicate-name", format!("overrides[{index}]"))];
    assert_eq!(fields(&[(None, Some(5)), (Some(7), None), (Some(5), Some(7))]), []);
    assert_eq!(fields(&[(None, None), (Some(5), Some(7))]), twice(1));
    assert_eq!(fields(&[(Some(5), Some(7)), (None, None)]), twice(1));
    assert_eq!(fields(&[(Some(5), Some(7)), (None, Some(6))]), twice(1));
    assert_eq!(fields(&[(Some(5), Some(7)), (Some(1), Some(2)), (Some(6), Some(8))]), twice(2));
    let many: Vec<_> = (0..100_000).map(|second| (Some(2 * second), Some(2 * second + 1))).collect();
    assert_eq!(fields(&many), [], "and a hundred thousand cost no square");
}

/// Loading bounds the cost of finding the rules of a request: patterns over two letters, which differ only in order,
/// would all have to be compared.
#[test]
fn crowded_patterns_are_bounded() {
    let pattern =
        |number: usize| (0..11).map(|bit| if number >> bit & 1 == 0 { "*a" } else { "*b" }).collect::<String>();
    let with = |field: &str, text: String| {
        let mut rule = named(&format!("r-{}", text.replace('*', "")));
        if field == "endpoint" {
            let mut endpoint = crate::EndpointMatcher::default();
            endpoint.push(&(text + "*"), crate::EscapedSlash::Reject, crate::PathCase::Sensitive).unwrap();
            rule.matches.endpoint = Some(endpoint);
        } else {
            let mut matcher = crate::Matcher::default();
            matcher.push(&(text + "*")).unwrap();
            rule.matches.attributes.push((field.to_owned(), matcher));
        }
        rule
    };
    for field in ["org", "endpoint"] {
        assert_eq!(rules((0..500).map(|number| with(field, pattern(number))).collect()), []);
        let refused = rules((0..2048).map(|number| with(field, pattern(number))).collect());
        assert!(refused.len() >= 2048 - 2 * 512, "{}", refused.len());
        assert!(refused.iter().all(|(code, _)| *code == "crowded-patterns"), "{:?}", refused.first());
        let last = refused.last().unwrap();
        assert_eq!(last.1, format!("rules[2047].match.{field}"));
    }
    let own = |number: usize| with("org", format!("*a*-{number}-*b"));
    assert_eq!(rules((0..2048).map(own).collect()), [], "each has text of its own");
}

#[test]
fn grants_fit_their_rule() {
    let found = |grant: &str| {
        let text = format!(
            "rules:
  - {{ name: monthly, key_by: user_id, quota: {{ amount: 10, every: month }} }}
  - {{ name: by-org, key_by: org, quota: {{ amount: 10, every: month }} }}
  - {{ name: all, key_by: global, quota: {{ amount: 10, every: month }} }}
  - {{ name: rate, key_by: user_id, limit: {{ requests: 1, window: 1s }} }}
grants: [{{ valid_from: 2026-03-01T00:00:00Z, {grant} }}]
"
        );
        match crate::read("rules.yaml", &text) {
            Ok(file) => format!("{} of {}", file.grants[0].amount, file.grants[0].rule),
            Err(report) => report.to_string().lines().take(1).collect(),
        }
    };
    assert_eq!(found("client_key: 'user:1', rule: monthly, amount: 5"), "5 of monthly");
    assert_eq!(found("client_key: 'org:1', rule: by-org, amount: 5"), "5 of by-org");
    assert_eq!(found("client_key: raw, rule: monthly, amount: 5"), "5 of monthly");
    let refused = [
        ("client_key: 'user:1', rule: monthly, amount: 0", "error[out-of-range]: grants[0].amount is `0`"),
        (
            "client_key: 'user:1', rule: monthly, amount: 9007199254740993",
            "error[out-of-range]: grants[0].amount is `9007199254740993`",
        ),
        (
            "client_key: 'user:1', rule: montly, amount: 5",
            "error[unknown-rule]: grants[0].rule: there is no rule with the name `montly`",
        ),
        (
            "client_key: 'user:1', rule: rate, amount: 5",
            "error[bad-grant]: grants[0].rule: the rule `rate` is not a quota",
        ),
        (
            "client_key: 'org:1', rule: monthly, amount: 5",
            "error[bad-grant]: grants[0].client_key: the rule `monthly` counts by user_id, not by org",
        ),
        (
            "client_key: 'user:1', rule: all, amount: 5",
            "error[bad-grant]: grants[0].client_key: the rule `all` counts by global, not by user_id",
        ),
        (
            "client_key: 'user:1', rule: monthly, amount: 5, valid_until: 2026-03-01T00:00:00Z",
            "error[bad-time]: grants[0].valid_until: the grant ends before it starts",
        ),
    ];
    for (grant, expected) in refused {
        assert!(found(grant).starts_with(expected), "{}", found(grant));
    }
}

#[test]
fn an_override_of_all_rules_exempts_and_has_no_numbers() {
    let found = |change: &str| {
        let text = format!(
            "rules: [{{ name: r, limit: {{ requests: 1, window: 1s }} }}]\noverrides: [{{ client_key: 'user:1', rule: '*', {change} }}]"
        );
        crate::read("rules.yaml", &text).err().map(|report| report.to_string())
    };
    assert_eq!(found("unlimited: true"), None);
    let refused = found("requests: 5").unwrap_or_default();
    assert!(
        refused.starts_with("error[bad-override]: overrides[0].rule: an override of all rules has numbers"),
        "{refused}"
    );
}
