//! Plans: which one a client has, what it keeps when that changes, and overrides of a plan's rules.

use tollgate_rules::spec::{ClientSpec, PlanSchedule};

use super::*;

/// 2026-12-01T00:00:00Z.
const DECEMBER: u64 = 1_796_083_200;

const PLANS: &str = r#"key_by: api_key
plans:
  free:
    default: true
    limits:
      - { name: requests, limit: { requests: 10, window: 1m, algorithm: fixed_window } }
      - { name: uploads, match: { endpoint: "POST /uploads" }, limit: { requests: 2, window: 1h } }
  pro:
    extends: free
    limits:
      - { name: requests, limit: { requests: 100, window: 1m, algorithm: fixed_window } }
  team:
    limits:
      - { name: requests, limit: { requests: 100, window: 1h, algorithm: fixed_window } }
clients:
  - { client_key: "key:paying", plan: pro }
  - { client_key: "key:later", plan: [free, { plan: pro, from: 2026-12-01 }] }
  - { client_key: "key:trial", org: acme, plan: { plan: pro, from: 2026-12-01 } }
  - { client_key: "key:member", org: acme }
  - { client_key: "org:acme", plan: team }
"#;

fn charges_at(set: &RuleSet, request: &Request<'_>, secs: u64) -> Charges {
    let mut charges = Charges::default();
    set.charges(request, Time::from_secs(secs), &mut charges).expect("the request can be read");
    charges
}

/// The names of the rules that apply.
fn applied(set: &RuleSet, request: &Request<'_>, secs: u64) -> Vec<String> {
    let charges = charges_at(set, request, secs);
    charges.applied.iter().map(|applied| set.rule(applied.rule).unwrap().name.clone()).collect()
}

fn key(key: &str) -> Request<'_> {
    Request::new().with(Attribute::ApiKey, key)
}

#[test]
fn the_plan_is_the_clients_or_its_organisations_or_the_default() {
    let set = set(PLANS);
    let cases = [
        ("paying", DECEMBER - 1, "pro.requests"),
        ("unknown", DECEMBER - 1, "free.requests"),
        ("member", DECEMBER - 1, "team.requests"),
        ("later", DECEMBER - 1, "free.requests"),
        ("later", DECEMBER, "pro.requests"),
        ("trial", DECEMBER - 1, "team.requests"),
        ("trial", DECEMBER, "pro.requests"),
    ];
    for (client, secs, rule) in cases {
        assert_eq!(applied(&set, &key(client), secs), [rule], "{client} at {secs}");
    }
    let sent = [("plan", "team")];
    assert_eq!(applied(&set, &key("paying").with_custom(&sent), DECEMBER), ["team.requests"], "a request may send it");
    let upload = key("paying").with(Attribute::Endpoint, "POST /uploads");
    assert_eq!(applied(&set, &upload, DECEMBER), ["free.uploads", "pro.requests"], "an inherited rule applies too");
}

#[test]
fn an_upgrade_keeps_the_bucket_unless_the_window_differs() {
    let set = set(PLANS);
    let bucket = |plan: &'static str| {
        let sent = [("plan", plan)];
        charges_at(&set, &key("k").with_custom(&sent), DECEMBER).charges[0]
    };
    let (free, pro, team) = (bucket("free"), bucket("pro"), bucket("team"));
    assert_eq!(free.bucket, pro.bucket);
    assert_eq!((free.limit.requests(), pro.limit.requests()), (10, 100));
    assert_ne!(free.bucket, team.bucket, "another window is another count");
    assert_ne!(free.owner.id, pro.owner.id, "each rule has its own share of the memory");
    let same_name = "key_by: api_key\nrules:\n  - { name: requests, limit: { requests: 10, window: 1m, algorithm: fixed_window } }\n";
    assert_ne!(
        super::bucket(&super::set(same_name), &key("k")),
        free.bucket,
        "a rule outside of plans counts by itself"
    );
}

#[test]
fn dates_of_plans_need_the_wall_clock() {
    assert!(set(PLANS).is_dated());
    let plain = PLANS
        .replace("[free, { plan: pro, from: 2026-12-01 }]", "free")
        .replace("{ plan: pro, from: 2026-12-01 }", "pro");
    assert!(!set(&plain).is_dated());
}

#[test]
fn an_override_applies_in_one_plan_or_in_every_plan() {
    let over = |rules: &[(&str, u64)]| {
        let line = |(rule, requests): &(&str, u64)| {
            format!("  - {{ client_key: \"key:later\", rule: {rule}, requests: {requests} }}\n")
        };
        let set = set(&format!("{PLANS}overrides:\n{}", rules.iter().map(line).collect::<String>()));
        [DECEMBER - 1, DECEMBER].map(|secs| charges_at(&set, &key("later"), secs).charges[0].limit.requests())
    };
    assert_eq!(over(&[("free.requests", 11)]), [11, 100], "the plan of December has its own rule");
    assert_eq!(over(&[("requests", 12)]), [12, 12], "by the name within plans");
    assert_eq!(over(&[("requests", 12), ("pro.requests", 13)]), [12, 13], "the full name comes first");
}

#[test]
fn an_override_of_a_rule_outside_of_plans_is_its_own() {
    let own = "rules:\n  - { name: requests, match: { endpoint: /x }, limit: { requests: 7, window: 1s } }\n";
    let over = "overrides:\n  - { client_key: \"key:paying\", rule: requests, requests: 5 }\n";
    let set = set(&format!("{own}{PLANS}{over}"));
    let request = key("paying").with(Attribute::Endpoint, "/x");
    let limits: Vec<u64> =
        charges_at(&set, &request, DECEMBER).charges.iter().map(|charge| charge.limit.requests()).collect();
    assert_eq!(limits, [5, 100], "the name of a rule comes before a name within plans");
}

#[test]
fn explanations_name_the_plan_of_a_rule_and_of_the_client() {
    let set = set(PLANS);
    let explained = set.explain(&key("later"), Time::from_secs(DECEMBER)).unwrap();
    let plans: Vec<&str> = explained.iter().map(|found| found.rule.spec.plan.as_ref().unwrap().plan.as_str()).collect();
    assert_eq!(plans, ["free", "free", "pro", "team"]);
    let known = |client: &str, secs: u64| {
        let known = set.client_attributes(&key(client), Time::from_secs(secs));
        known.into_iter().find(|(name, _)| name == "plan").map(|(_, plan)| plan).unwrap()
    };
    assert_eq!([known("later", DECEMBER - 1), known("later", DECEMBER)], ["free", "pro"]);
    assert_eq!([known("member", 0), known("unknown", 0)], ["team", "free"]);
}

#[test]
fn directories_follow_plans_through_changes_and_compaction() {
    let text = PLANS.split("clients:").next().unwrap();
    let file = tollgate_rules::read("rules.yaml", text).unwrap();
    let options = CompileOptions::reproducible();
    let mut builder = Directory::builder(options.secret, file.ipv6_prefix);
    let client =
        |plan: PlanSchedule| ClientSpec { client_key: "key:a".to_owned(), plan: Some(plan), ..ClientSpec::default() };
    builder.client(&client(PlanSchedule::always("pro")));
    let first = builder.finish();
    assert!(!first.is_dated());
    let later = PlanSchedule::of([(0, "free"), (DECEMBER * 1_000_000_000, "team")]);
    let record =
        DirectoryRecord { client_key: "key:a".into(), client: Some(client(later)), ..DirectoryRecord::default() };
    let second = first.with(&[record]);
    for (directory, expected) in [
        (&first, ["pro.requests", "pro.requests"]),
        (&second, ["free.requests", "team.requests"]),
        (&second.compact(), ["free.requests", "team.requests"]),
    ] {
        let parts = [NamespaceRules { file: &file, rules: &[], directories: std::slice::from_ref(directory) }];
        let set = RuleSet::assemble(&parts, &options).unwrap();
        let found = [DECEMBER - 1, DECEMBER].map(|secs| applied(&set, &key("a"), secs).remove(0));
        assert_eq!(found, expected);
        assert_eq!(set.is_dated(), expected[0] != expected[1]);
    }
}

#[test]
fn the_default_plan_is_part_of_the_fingerprint() {
    let other = PLANS.replace("    default: true\n", "");
    assert_ne!(set(PLANS).fingerprint(), set(&other).fingerprint());
}

#[test]
fn a_grant_names_a_rule_of_one_plan_or_of_all() {
    let yaml = |rule: &str| {
        format!(
            "key_by: api_key
plans:
  free: {{ default: true, limits: [{{ name: tokens, quota: {{ amount: 100, every: month }} }}] }}
  pro: {{ limits: [{{ name: tokens, quota: {{ amount: 1000, every: month }} }}] }}
clients: [{{ client_key: 'key:a', plan: [free, {{ plan: pro, from: 2026-12-10 }}] }}]
grants: [{{ client_key: 'key:a', rule: {rule}, amount: 50, valid_from: 2026-12-01T00:00:00Z }}]
"
        )
    };
    let ten_days = 10 * 86_400;
    for (rule, expected) in [("tokens", [50, 50]), ("pro.tokens", [0, 50]), ("free.tokens", [50, 0])] {
        let set = set(&yaml(rule));
        let granted = [DECEMBER + 1, DECEMBER + ten_days].map(|secs| {
            let Limit::Quota(quota) = charges_at(&set, &key("a"), secs).charges[0].limit else { panic!("a quota") };
            quota.grant()
        });
        assert_eq!(granted, expected, "{rule}");
    }
}
