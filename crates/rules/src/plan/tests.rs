//! Plans of files: what they expand to, and every mistake with its position.

use super::*;
use crate::spec::{PlanSchedule, RuleFile};
use crate::{format, read};

const TIERS: &str = r#"plans:
  free:
    default: true
    limits:
      - { name: requests, limit: { requests: 10, window: 1m } }
      - { name: uploads, match: { endpoint: "POST /uploads" }, limit: { requests: 2, window: 1h } }
  pro:
    extends: free
    limits:
      - { name: requests, limit: { requests: 100, window: 1m } }
  team: { extends: pro }
"#;

fn good(text: &str) -> RuleFile {
    read("rules.yaml", text).unwrap_or_else(|report| panic!("{report}"))
}

/// Code, field, line and column of each problem.
fn problems(text: &str) -> Vec<(&'static str, String, u32, u32)> {
    let report = read("rules.yaml", text).expect_err(text);
    report.problems.iter().map(|found| (found.code, found.field.clone(), found.line, found.column)).collect()
}

/// The name of each rule, and the plans that have it.
fn expanded_names(file: &RuleFile) -> Vec<(String, Vec<String>)> {
    let plans = |rule: &RuleSpec| {
        let condition = rule.matches.attributes.iter().find(|(name, _)| name == PLAN);
        condition.into_iter().flat_map(|(_, matcher)| &matcher.any).map(ToString::to_string).collect()
    };
    file.rules.iter().map(|rule| (rule.name.clone().unwrap(), plans(rule))).collect()
}

fn named(name: &str, plans: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), plans.iter().map(|plan| (*plan).to_owned()).collect())
}

#[test]
fn an_inherited_rule_is_one_rule_and_a_replaced_one_its_own() {
    let file = good(TIERS);
    let expected = [
        named("free.requests", &["free"]),
        named("free.uploads", &["free", "pro", "team"]),
        named("pro.requests", &["pro", "team"]),
    ];
    assert_eq!(expanded_names(&file), expected);
    assert_eq!(file.default_plan(), Some("free"));
    let origin = file.rules[2].plan.as_deref().unwrap();
    assert_eq!((origin.plan.as_str(), origin.name.as_str()), ("pro", "requests"));
    assert_eq!(file.rules[1].matches.attributes.len(), 1, "beside the endpoint");
    assert_eq!((file.path_of(1), file.path_of(2)), ("plans.free.limits[1]".into(), "plans.pro.limits[0]".into()));
    let of_team: Vec<&str> = rules_of(&file.plans, "team").iter().map(|(plan, _)| plan.name.as_str()).collect();
    assert_eq!(of_team, ["pro", "free"]);
}

#[test]
fn rules_of_the_file_come_first_and_may_match_a_plan() {
    let text =
        format!("rules:\n  - {{ name: all, match: {{ plan: pro }}, limit: {{ requests: 1, window: 1s }} }}\n{TIERS}");
    let names: Vec<String> = expanded_names(&good(&text)).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["all", "free.requests", "free.uploads", "pro.requests"]);
}

#[test]
fn replaces_names_rules_of_the_same_plans_or_of_the_file() {
    let text = r#"rules:
  - { name: all, limit: { requests: 1, window: 1s } }
plans:
  free:
    limits:
      - { name: requests, limit: { requests: 10, window: 1m } }
      - { name: internal, match: { org: us }, unlimited: true, replaces: [requests, all] }
  pro:
    extends: free
    limits: [{ name: requests, limit: { requests: 100, window: 1m } }]
"#;
    let file = good(text);
    let internal = file.rules.iter().find(|rule| rule.name.as_deref() == Some("free.internal")).unwrap();
    assert_eq!(internal.replaces, ["free.requests", "pro.requests", "all"], "it applies in both plans");
}

#[test]
fn a_client_has_plans_over_time() {
    let clients = r#"clients:
  - { client_key: "key:a", plan: pro }
  - { client_key: "key:b", plan: [free, { plan: pro, from: 2026-12-01 }] }
  - { client_key: "key:c", plan: { plan: pro, from: 2026-12-01T01:00:00+01:00 } }
"#;
    let file = good(&format!("{TIERS}{clients}"));
    let at = 1_796_083_200_000_000_000;
    let expected =
        [PlanSchedule::always("pro"), PlanSchedule::of([(0, "free"), (at, "pro")]), PlanSchedule::of([(at, "pro")])];
    let plans: Vec<PlanSchedule> = file.clients.iter().filter_map(|client| client.plan.clone()).collect();
    assert_eq!(plans, expected);
    assert_eq!(plans[1].as_str(), "free;1796083200000000000=pro");
}

#[test]
fn plans_that_cannot_be_are_reported_where_they_are() {
    let limit = "limit: { requests: 1, window: 1s }";
    let cases: [(String, &str, &str, u32, u32); 14] = [
        ("plans:\n  a: { extends: b }\n  b: { extends: a }\n".into(), "plan-cycle", "plans.a.extends", 2, 17),
        ("plans:\n  a: { extends: a }\n".into(), "plan-cycle", "plans.a.extends", 2, 17),
        ("plans:\n  free: {}\n  pro: { extends: fre }\n".into(), "unknown-plan", "plans.pro.extends", 3, 19),
        (format!("plans:\n  a: {{ limits: [{{ {limit} }}] }}\n"), "missing-field", "plans.a.limits[0]", 2, 17),
        (
            format!("plans:\n  a:\n    limits:\n      - {{ name: x, {limit} }}\n      - {{ name: X, {limit} }}\n"),
            "duplicate-name",
            "plans.a.limits[1].name",
            5,
            17,
        ),
        (
            "plans:\n  a: { default: true }\n  b: { default: true }\n".into(),
            "duplicate-default",
            "plans.b.default",
            3,
            17,
        ),
        ("plans:\n  a.b: {}\n".into(), "bad-name", "plans.a.b", 2, 3),
        ("plans:\n  a: { limit: [] }\n".into(), "unknown-field", "plans.a.limit", 2, 8),
        (
            format!("plans:\n  a: {{ limits: [{{ name: x, match: {{ plan: b }}, {limit} }}] }}\n"),
            "misplaced-field",
            "plans.a.limits[0].match.plan",
            2,
            43,
        ),
        (
            "plans:\n  a: { limits: [{ name: x, limit: { requests: 1, window: 1s, burst: 9, algorithm: fixed_window } }] }\n".into(),
            "misplaced-field",
            "plans.a.limits[0].limit.burst",
            2,
            69,
        ),
        (
            format!("rules:\n  - {{ name: a.x, {limit} }}\nplans:\n  a: {{ limits: [{{ name: x, {limit} }}] }}\n"),
            "duplicate-name",
            "plans.a.limits[0].name",
            4,
            25,
        ),
        (format!("plans: [a]\nrules: [{{ {limit} }}]\n"), "wrong-type", "plans", 1, 8),
        (
            format!("plans:\n  a: {{ limits: [{{ name: {}, {limit} }}] }}\n", "x".repeat(64)),
            "bad-name",
            "plans.a.limits[0].name",
            2,
            25,
        ),
        (
            format!("plans:\n  a: {{ limits: [{{ name: x, {limit}, replaces: [y] }}] }}\n"),
            "unknown-rule",
            "plans.a.limits[0].replaces[0]",
            2,
            75,
        ),
    ];
    for (text, code, field, line, column) in cases {
        let found = problems(&text);
        assert_eq!(found.first(), Some(&(code, field.to_owned(), line, column)), "{text}");
    }
}

#[test]
fn a_chain_of_plans_has_a_bound() {
    let chain = |count: usize| {
        let plan = |number: usize| match number {
            0 => "  p0: {}\n".to_owned(),
            _ => format!("  p{number}: {{ extends: p{} }}\n", number - 1),
        };
        format!("plans:\n{}", (0..count).map(plan).collect::<String>())
    };
    good(&chain(DEPTH_MAX));
    assert_eq!(problems(&chain(DEPTH_MAX + 1))[0].0, "plan-depth");
}

#[test]
fn assignments_that_cannot_be_are_reported_where_they_are() {
    let client = |plan: &str| format!("{TIERS}clients:\n  - {{ client_key: a, plan: {plan} }}\n");
    let cases = [
        ("prro", "unknown-plan", 28),
        ("[free, { plan: teem, from: 2026-12-01 }]", "unknown-plan", 43),
        ("[free, { plan: pro, from: soon }]", "bad-time", 54),
        ("[free, pro]", "bad-time", 35),
        ("[{ plan: free, from: 2026-12-01 }, { plan: pro, from: 2026-12-01 }]", "bad-time", 63),
        ("[]", "blank", 28),
        ("{ from: 2026-12-01 }", "missing-field", 28),
        ("a;b", "bad-name", 28),
    ];
    for (plan, code, column) in cases {
        let found = problems(&client(plan));
        assert_eq!((found[0].0, found[0].2, found[0].3), (code, 13, column), "{plan}");
    }
    let report = read("rules.yaml", &client("prro")).unwrap_err();
    assert_eq!(report.problems[0].help.as_deref(), Some("did you mean `pro`?"));
    let steps: Vec<String> = (1..=33).map(|day| format!("{{ plan: pro, from: 20{:02}-01-01 }}", 26 + day)).collect();
    assert_eq!(problems(&client(&format!("[{}]", steps.join(", "))))[0].0, "too-large");
    // A file without plans may name those of a database.
    good("rules: [{ limit: { requests: 1, window: 1s } }]\nclients: [{ client_key: a, plan: pro }]\n");
}

#[test]
fn an_override_names_a_rule_in_one_plan_or_in_all() {
    let over = |rule: &str, more: &str| {
        format!("{TIERS}overrides:\n  - {{ client_key: a, rule: {rule}, requests: 5{more} }}\n")
    };
    good(&over("pro.requests", ""));
    good(&over("requests", ""));
    let found = problems(&over("team.requests", ""));
    assert_eq!(found[0].0, "unknown-rule");
    let wrong = over("requests", ", burst: 5").replace("window: 1m", "window: 1m, algorithm: fixed_window");
    assert_eq!(problems(&wrong)[0].0, "misplaced-field", "checked against the rules that it means");
}

#[test]
fn a_rule_for_a_plan_that_is_not_there_is_suspicious() {
    let text = format!(
        "key_by: api_key\nrules:\n  - {{ match: {{ plan: [pro, gold] }}, limit: {{ requests: 1, window: 1s }} }}\n{TIERS}"
    );
    let (warnings, _) = crate::lint_text(&good(&text), &text).into_parts();
    let found: Vec<_> = warnings.iter().map(|found| (found.code, found.field.as_str(), found.line)).collect();
    assert_eq!(found, [("unknown-plan", "rules[0].match.plan", 3)]);
}

#[test]
fn plans_have_one_layout() {
    let text = "plans:\n  pro:\n    limits: [{ limit: { window: 1s, requests: 1 }, name: a }]\n    extends: free\n  free: { default: true, description: d }\nclients:\n  - { plan: [{ from: 2026-12-01, plan: pro }], client_key: a }\n";
    let laid_out = "plans:\n  pro:\n    extends: free\n    limits: [{ name: a, limit: { requests: 1, window: 1s } }]\n  free: { description: d, default: true }\nclients:\n  - { client_key: a, plan: [{ plan: pro, from: 2026-12-01 }] }\n";
    assert_eq!(format("rules.yaml", text).unwrap(), laid_out);
    good(laid_out);
}
