//! Compiled sets, tested through their public API.

use tollgate_core::{
    Ask, AskedLimit, Attribute, Charge, Digest, Enforcement, LeaseSize, Limit, LimitKind, Request, Sharing, SlotId,
    Span, Time,
};

use super::*;

const FIRST: &str = include_str!("../../rules/samples/first.yaml");

mod plans;
mod scan;
mod succession;

fn set(yaml: &str) -> RuleSet {
    let file = tollgate_rules::read("rules.yaml", yaml).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn charges(set: &RuleSet, request: &Request<'_>) -> Charges {
    let mut charges = Charges::default();
    set.charges(request, Time::from_secs(1_800_000_000), &mut charges).expect("the request can be read");
    charges
}

fn names<'a>(set: &'a RuleSet, request: &Request<'_>) -> Vec<&'a str> {
    charges(set, request).applied.iter().map(|applied| set.rule(applied.rule).unwrap().name.as_str()).collect()
}

fn bucket(set: &RuleSet, request: &Request<'_>) -> Digest {
    charges(set, request).charges.first().expect("a rule applies").bucket
}

fn only(set: &RuleSet, request: &Request<'_>) -> Charge {
    let charges = charges(set, request);
    assert_eq!(charges.charges.len(), 1, "exactly one charge");
    charges.charges[0]
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

#[test]
fn the_first_users_file_works_as_written() {
    let set = set(r#"rules:
  - match: { tier: free,  endpoint: "POST /api/*" }
    limit:  { requests: 10,   window: 1s,  algorithm: token_bucket, burst: 20 }
  - match: { tier: free,  endpoint: "*" }
    limit:  { requests: 1000, window: 1h,  algorithm: sliding_window }
  - match: { tier: paid,  endpoint: "*" }
    limit:  { requests: 100,  window: 1s,  algorithm: token_bucket, burst: 200 }
key_by:   api_key        # or user_id, ip, "user_id:endpoint"
on_fail:  allow
"#);
    let request = |tier, endpoint| {
        Request::new().with(Attribute::ApiKey, "k").with(Attribute::Tier, tier).with(Attribute::Endpoint, endpoint)
    };
    let kinds = |request: &Request<'_>| {
        charges(&set, request)
            .charges
            .iter()
            .map(|charge| (charge.limit.kind(), charge.limit.capacity()))
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&request("free", "POST /api/orders")), [(LimitKind::Gcra, 20), (LimitKind::SlidingCounter, 1000)]);
    assert_eq!(kinds(&request("free", "GET /api/orders")), [(LimitKind::SlidingCounter, 1000)]);
    assert_eq!(kinds(&request("paid", "/anything")), [(LimitKind::Gcra, 200)]);
    assert_eq!(kinds(&request("gold", "/anything")), []);
}

#[test]
fn an_absent_attribute_matches_neither_a_star_nor_a_negation() {
    let set = set("rules:
  - { name: star, match: { tier: '*' }, key_by: global, limit: { requests: 1, window: 1s } }
  - { name: not, match: { tier: '!free' }, key_by: global, limit: { requests: 1, window: 1s } }
  - { name: all, key_by: global, limit: { requests: 1, window: 1s } }
");
    assert_eq!(names(&set, &Request::new()), ["all"]);
    assert_eq!(names(&set, &Request::new().with(Attribute::Tier, "free")), ["star", "all"]);
    assert_eq!(names(&set, &Request::new().with(Attribute::Tier, "paid")), ["star", "not", "all"]);
}

/// Proxies send them so: Envoy descriptors have a method and a path, not an endpoint.
#[test]
fn method_and_path_may_be_custom_attributes() {
    let set = set("rules:
  - { name: login, match: { path: /login }, key_by: global, limit: { requests: 1, window: 1s } }
  - { name: posts, match: { method: POST }, key_by: global, limit: { requests: 1, window: 1s } }
  - { name: both, match: { endpoint: 'POST /login' }, key_by: endpoint, limit: { requests: 1, window: 1s } }
  - { name: any, match: { path: '*' }, key_by: path, limit: { requests: 1, window: 1s } }
");
    let named = |custom: &[(&str, &str)]| names(&set, &Request::new().with_custom(custom)).join(" ");
    assert_eq!(named(&[("method", "POST"), ("path", "/login")]), "login posts both any");
    assert_eq!(named(&[("path", "//log%69n?next=/"), ("method", "GET")]), "login any");
    assert_eq!(named(&[("method", "POST")]), "posts");
    assert_eq!(named(&[("method", "post"), ("path", "files/a")]), "any");
    assert_eq!(named(&[("path", "/a/%2F")]), "any", "what servers read differently is taken as it was sent");
    let sent = [("method", "POST"), ("path", "/login")];
    let other = Request::new().with_custom(&sent).with(Attribute::Endpoint, "/other");
    assert_eq!(names(&set, &other), ["any"], "an endpoint says it all");
}

#[test]
fn i17_key_parts_do_not_run_into_each_other() {
    let set = set("rules: [{ key_by: [a, b], limit: { requests: 1, window: 1s } }]");
    let keys = [("a_b", "c"), ("a", "b_c"), ("a:b", "c"), ("a", "b:c"), ("a\0", "b"), ("", "ab"), ("ab", "")];
    let buckets: Vec<Digest> =
        keys.iter().map(|(a, b)| bucket(&set, &Request::new().with_custom(&[("a", a), ("b", b)]))).collect();
    for (i, bucket) in buckets.iter().enumerate() {
        assert!(!buckets[..i].contains(bucket), "{:?} shares a bucket", keys[i]);
    }
}

#[test]
fn a_missing_key_part_skips_the_rule_or_shares_one_bucket() {
    let set = set("rules:
  - { name: skip, key_by: org, limit: { requests: 1, window: 1s } }
  - { name: share, key_by: org, missing: share, limit: { requests: 1, window: 1s } }
");
    assert_eq!(names(&set, &user("1")), ["share"]);
    assert_eq!(bucket(&set, &user("1")), bucket(&set, &user("2")));
    let empty = charges(&set, &user("1").with(Attribute::Org, ""));
    assert_ne!(empty.charges[1].bucket, bucket(&set, &user("1")), "an empty part is not a missing one");
}

#[test]
fn an_absent_api_key_falls_back_to_the_client_key() {
    let set = set("rules: [{ key_by: api_key, limit: { requests: 1, window: 1s } }]");
    let client = |key| Request::new().with(Attribute::ClientKey, key);
    assert_eq!(bucket(&set, &client("key:abc")), bucket(&set, &Request::new().with(Attribute::ApiKey, "abc")));
    assert_ne!(bucket(&set, &client("user:1")), bucket(&set, &client("user:2")));
    let forged = Request::new().with(Attribute::ApiKey, "user:1");
    assert_ne!(bucket(&set, &client("user:1")), bucket(&set, &forged), "a key cannot pose as a client");
    assert_eq!(names(&set, &Request::new()).len(), 0);
}

#[test]
fn the_first_present_alternative_is_the_key() {
    let set = set("rules: [{ key_by: 'api_key|ip', limit: { requests: 1, window: 1s } }]");
    let by_ip = Request::new().with(Attribute::Ip, "192.0.2.1");
    let by_key = by_ip.with(Attribute::ApiKey, "192.0.2.1");
    assert_ne!(bucket(&set, &by_ip), bucket(&set, &by_key), "an api key cannot pose as an address");
    assert_eq!(bucket(&set, &by_key), bucket(&set, &by_key.with(Attribute::Ip, "192.0.2.2")));
    assert_eq!(bucket(&set, &by_ip), bucket(&set, &by_ip.with(Attribute::ClientKey, "anything")));
}

#[test]
fn i07_i08_addresses_are_counted_in_one_spelling() {
    let set = set("rules: [{ key_by: ip, limit: { requests: 1, window: 1s } }]");
    let ip = |text| bucket(&set, &Request::new().with(Attribute::Ip, text));
    assert_eq!(ip("192.0.2.1"), ip("::ffff:192.0.2.1"));
    assert_eq!(ip("192.0.2.1"), ip("::ffff:c000:201"));
    assert_ne!(ip("192.0.2.1"), ip("192.0.2.2"));
    assert_eq!(ip("2001:db8::1"), ip("2001:DB8:0:0::2"));
    assert_ne!(ip("2001:db8::1"), ip("2001:db8:0:1::1"));
}

#[test]
fn templates_make_one_bucket_of_many_paths() {
    let set = set(
        "rules: [{ match: { endpoint: '/users/{id}/orders' }, key_by: endpoint, limit: { requests: 1, window: 1s } }]",
    );
    let at = |endpoint| bucket(&set, &Request::new().with(Attribute::Endpoint, endpoint));
    assert_eq!(at("GET /users/1/orders"), at("GET /users/2/orders"));
    assert_eq!(at("GET /users/1/orders"), at("/users//1/./orders/"));
    assert_eq!(
        at("GET /users/1/orders"),
        at("INVENTED /users/1/orders"),
        "a method that the pattern does not name is no new bucket"
    );
}

#[test]
fn globs_keep_paths_apart_and_named_methods_count() {
    let set = set(
        "rules: [{ match: { endpoint: 'GET,POST /export/*' }, key_by: endpoint, limit: { requests: 1, window: 1s } }]",
    );
    let at = |endpoint| bucket(&set, &Request::new().with(Attribute::Endpoint, endpoint));
    assert_ne!(at("GET /export/a"), at("GET /export/b"));
    assert_ne!(at("GET /export/a"), at("POST /export/a"));
    assert_eq!(at("GET /export/a"), at("GET /%65xport/a?x=1"));
}

#[test]
fn unreadable_requests_are_errors_with_a_code_and_a_field() {
    let set = set("rules: [{ key_by: ip, limit: { requests: 1, window: 1s } }]");
    let long = "x".repeat(5000);
    let [above_path, above_text] = [8_193, 9_000].map(|length| format!("GET /{}", "x".repeat(length - 1)));
    let query = format!("GET /?{}", "x".repeat(9_000));
    let cases: [(Request<'_>, &str, &str); 8] = [
        (Request::new().with(Attribute::Endpoint, &above_path), "path_too_long", "endpoint"),
        (Request::new().with(Attribute::Endpoint, &above_text), "path_too_long", "endpoint"),
        (Request::new().with(Attribute::Endpoint, &query), "path_too_long", "endpoint"),
        (Request::new().with(Attribute::Ip, "010.0.0.1"), "bad_address", "ip"),
        (Request::new().with(Attribute::Endpoint, "/a%2Fb"), "path_escaped_slash", "endpoint"),
        (Request::new().with(Attribute::Endpoint, "get /a"), "bad_method", "endpoint"),
        (Request::new().with(Attribute::Endpoint, "nonsense"), "path_not_absolute", "endpoint"),
        (Request::new().with(Attribute::ApiKey, &long), "value_too_long", "api_key"),
    ];
    for (request, code, field) in cases {
        let mut charges = Charges::default();
        let error = set.charges(&request, Time::ZERO, &mut charges).expect_err(code);
        assert_eq!((error.code, error.field.as_str()), (code, field));
        assert!(charges.charges.is_empty() && !error.to_string().contains("xxxx"));
    }
}

#[test]
fn unlimited_exempts_from_all_and_replaces_only_from_those_named() {
    let set = set("rules:
  - { name: limit, key_by: global, limit: { requests: 1, window: 1s } }
  - { name: other, key_by: global, limit: { requests: 2, window: 1s } }
  - { name: health, match: { endpoint: /health }, unlimited: true }
  - { name: vip, match: { tier: vip }, unlimited: true, replaces: [limit] }
  - { name: gold, match: { tier: gold }, key_by: global, replaces: [limit], limit: { requests: 9, window: 1s } }
  - { name: trial, match: { tier: trial }, unlimited: true, mode: shadow }
");
    let tier = |tier| Request::new().with(Attribute::Tier, tier);
    assert_eq!(names(&set, &tier("none")), ["limit", "other"]);
    assert_eq!(names(&set, &tier("none").with(Attribute::Endpoint, "GET /health")), ["health"]);
    assert_eq!(names(&set, &tier("vip")), ["other", "vip"]);
    assert_eq!(names(&set, &tier("gold")), ["other", "gold"]);
    assert_eq!(names(&set, &tier("trial")), ["limit", "other", "trial"], "a shadow rule changes nothing");
}

#[test]
fn costs_multiply_and_the_first_case_counts() {
    let set = set("rules:
  - key_by: global
    limit: { requests: 100, window: 1s }
    cost:
      - { match: { endpoint: '/export/*' }, cost: 10 }
      - { match: { endpoint: 'GET *' }, cost: 1 }
      - { cost: 3 }
");
    let cost = |endpoint, cost| only(&set, &Request::new().with(Attribute::Endpoint, endpoint).cost(cost)).ask;
    assert_eq!(cost("GET /export/x", 1), Ask::Consume(10));
    assert_eq!(cost("GET /a", 4), Ask::Consume(4));
    assert_eq!(cost("POST /a", 1), Ask::Consume(3));
    assert_eq!(cost("POST /a", u64::MAX), Ask::Consume(u64::MAX));
    assert_eq!(cost("POST /a", 0), Ask::Consume(0));
}

#[test]
fn purposes_become_asks() {
    let set = set("rules:
  - { key_by: global, limit: { requests: 9, window: 1s } }
  - { key_by: global, limit: { algorithm: concurrency, slots: 2 } }
");
    let asks =
        |request: Request<'_>| charges(&set, &request).charges.iter().map(|charge| charge.ask).collect::<Vec<_>>();
    let id = SlotId(7);
    assert_eq!(asks(Request::new()), [Ask::Consume(1)], "a request without a slot cannot be released");
    assert_eq!(asks(Request::new().holding(id)), [Ask::Consume(1), Ask::Hold(id)]);
    assert_eq!(asks(Request::new().peek().cost(4)), [Ask::Peek(4)], "a look sees what a check would");
    assert_eq!(asks(Request::new().peek().cost(4).holding(id)), [Ask::Peek(4), Ask::Peek(1)]);
    assert_eq!(asks(Request::new().report().holding(id)), [Ask::Force(1)]);
}

#[test]
fn a_client_table_fills_in_what_the_caller_left_out() {
    let set = set("rules: [{ name: paid, match: { tier: paid, region: eu }, key_by: api_key, limit: { requests: 1, window: 1s } }]
clients: [{ client_key: 'key:abc', tier: paid, org: acme, attributes: { region: eu } }]
");
    let known = Request::new().with(Attribute::ApiKey, "abc");
    assert_eq!(names(&set, &known), ["paid"]);
    assert_eq!(names(&set, &Request::new().with(Attribute::ClientKey, "key:abc")), ["paid"]);
    assert_eq!(names(&set, &known.with(Attribute::Tier, "free")).len(), 0, "what the caller says comes first");
    assert_eq!(names(&set, &Request::new().with(Attribute::ApiKey, "xyz")).len(), 0);
}

#[test]
fn overrides_change_one_rule_for_one_client_while_they_hold() {
    let set = set("rules:
  - { name: a, key_by: user_id, limit: { requests: 10, window: 1s } }
  - { name: b, key_by: user_id, limit: { requests: 5, window: 1m, algorithm: fixed_window } }
overrides:
  - { client_key: 'user:42', rule: a, requests: 50, burst: 70, valid_until: 2030-01-01T00:00:00Z }
  - { client_key: 'user:42', rule: b, unlimited: true, valid_from: 2030-01-01T00:00:00Z, valid_until: 2031-01-01T00:00:00Z }
");
    assert!(set.is_dated());
    let at = |secs: u64, id: &str| {
        let mut charges = Charges::default();
        set.charges(&user(id), Time::from_secs(secs), &mut charges).unwrap();
        charges.charges.iter().map(|charge| (charge.limit.requests(), charge.limit.capacity())).collect::<Vec<_>>()
    };
    let (before, within) = (1_800_000_000, 1_900_000_000); // 2027 and 2030
    assert_eq!(at(before, "42"), [(50, 70), (5, 5)]);
    assert_eq!(at(within, "42"), [(10, 10)], "a's override is over, b's unlimited one holds");
    assert_eq!(at(before, "43"), [(10, 10), (5, 5)]);
    assert_eq!(bucket(&set, &user("42")), {
        let mut charges = Charges::default();
        set.charges(&user("42"), Time::from_secs(within), &mut charges).unwrap();
        charges.charges[0].bucket
    });
}

#[test]
fn an_override_of_the_rate_keeps_a_burst_that_the_rule_names() {
    let set = set("rules:
  - { name: plain, key_by: user_id, limit: { requests: 10, window: 1s } }
  - { name: bursty, key_by: user_id, limit: { requests: 10, window: 1s, burst: 40 } }
overrides:
  - { client_key: 'user:1', rule: plain, requests: 20, valid_until: 2031-01-01T00:00:00Z }
  - { client_key: 'user:1', rule: bursty, requests: 20, valid_until: 2031-01-01T00:00:00Z }
");
    let limits =
        charges(&set, &user("1")).charges.iter().map(|c| (c.limit.requests(), c.limit.capacity())).collect::<Vec<_>>();
    assert_eq!(limits, [(20, 20), (20, 40)]);
}

#[test]
fn an_unnamed_rule_is_known_by_what_it_says_not_by_its_place_or_numbers() {
    let rule = "{ match: { tier: free }, key_by: user_id, limit: { requests: 1, window: 1s } }";
    let more = "{ match: { tier: free }, key_by: user_id, limit: { requests: 9, burst: 99, window: 1s } }";
    let other = "{ match: { tier: paid }, key_by: user_id, limit: { requests: 1, window: 1s } }";
    let slower = "{ match: { tier: free }, key_by: user_id, limit: { requests: 1, window: 2s } }";
    let bucket_in = |rules: &[&str]| {
        let set = set(&format!("rules: [{}]", rules.join(", ")));
        bucket(&set, &user("1").with(Attribute::Tier, "free"))
    };
    assert_eq!(bucket_in(&[rule]), bucket_in(&[other, rule]));
    assert_eq!(bucket_in(&[rule]), bucket_in(&[more]), "a changed limit keeps the bucket");
    assert_ne!(bucket_in(&[rule]), bucket_in(&[slower]), "a changed window starts anew");
    let twice = tollgate_rules::read("x", &format!("rules: [{rule}, {more}]"))
        .map_err(|report| report.to_string())
        .and_then(|file| {
            RuleSet::compile(&[file], &CompileOptions::reproducible()).map_err(|problems| format!("{problems:?}"))
        });
    assert!(twice.expect_err("two rules that say the same").contains("duplicate-rule"));
}

#[test]
fn a_rule_without_a_name_is_called_after_what_it_says() {
    let names = |text: &str| -> Vec<String> { set(text).rules().iter().map(|rule| rule.name.clone()).collect() };
    assert_eq!(names(FIRST), ["free-post-api-1s", "free-1h", "paid-1s"]);
    let rules = "rules:
  - limit: { requests: 1, window: 90s }
  - { key_by: global, limit: { algorithm: concurrency, slots: 5, slot_ttl: 10s } }
  - { match: { org: acme }, unlimited: true }
  - { match: { tier: ['!free'], endpoint: 'GET,HEAD /v1/users/{id}' }, limit: { requests: 1, window: 1m } }
  - { name: Paid-1H, match: { tier: x }, limit: { requests: 1, window: 1h } }
  - { match: { tier: paid }, limit: { requests: 1, window: 1h } }
  - { match: { tier: same }, limit: { requests: 1, window: 1h } }
  - { match: { tier: same }, key_by: ip, limit: { requests: 1, window: 1h } }
";
    let found = names(rules);
    assert_eq!(
        found.get(..5).unwrap(),
        ["per-client_key-90s", "global-slots", "org-acme-unlimited", "not-free-get-head-v1-users-id-1m", "Paid-1H"]
    );
    // A digest distinguishes generated names from written ones, in any case, and from each other.
    let apart = |name: &String, base: &str| name.strip_prefix(base).is_some_and(|digits| digits.len() == 5);
    assert!(apart(&found[5], "paid-1h") && apart(&found[6], "same-1h") && apart(&found[7], "same-1h"), "{found:?}");
    let turned = rules.lines().rev().filter(|line| line.starts_with("  -")).collect::<Vec<_>>().join("\n");
    let mut turned = names(&format!("rules:\n{turned}\n"));
    turned.reverse();
    assert_eq!(turned, found, "the order of the file does not matter");
    assert!(found.iter().all(|name| tollgate_rules::check::is_rule_name(name)), "{found:?}");
    let long =
        format!("rules: [{{ match: {{ endpoint: /{} }}, limit: {{ requests: 1, window: 1s }} }}]", "long/".repeat(40));
    let long = names(&long);
    assert!(tollgate_rules::check::is_rule_name(&long[0]) && long[0].ends_with("-1s"), "{long:?}");
}

#[test]
fn a_generated_name_is_no_part_of_a_bucket() {
    // Names from the time before readable names: counters of that time are found again.
    let mut digests = ["rule-4352f4749744ed1b", "rule-128e68dd8aa768d3", "rule-60e0e19cfb124c85"].into_iter();
    let lines = FIRST.lines().map(|line| match line.strip_prefix("  - ") {
        Some(rest) => format!("  - name: {}\n    {rest}\n", digests.next().unwrap()),
        None => format!("{line}\n"),
    });
    let (nameless, named) = (set(FIRST), set(&lines.collect::<String>()));
    for tier in ["free", "paid"] {
        let request = Request::new().with(Attribute::ApiKey, "k").with(Attribute::Tier, tier);
        let request = request.with(Attribute::Endpoint, "POST /api/x");
        let buckets = |set: &RuleSet| charges(set, &request).charges.iter().map(|c| c.bucket).collect::<Vec<_>>();
        assert_eq!(buckets(&nameless), buckets(&named), "{tier}");
    }
}

#[test]
fn shards_add_up_to_the_whole() {
    let set = set("rules: [{ key_by: global, shards: 3, limit: { requests: 10, window: 1s } }]");
    let share = |random| {
        let mut charges = Charges { random, ..Charges::default() };
        set.charges(&Request::new(), Time::ZERO, &mut charges).unwrap();
        charges.charges[0]
    };
    let shares: Vec<Charge> = (0..3).map(share).collect();
    assert_eq!(shares.iter().map(|charge| charge.limit.capacity()).sum::<u64>(), 10);
    assert!(shares[0].bucket != shares[1].bucket && shares[1].bucket != shares[2].bucket);
    assert_eq!(share(3).bucket, shares[0].bucket);
}

#[test]
fn windows_aligned_by_key_reset_at_different_times() {
    let set =
        set("rules: [{ key_by: user_id, limit: { requests: 1, window: 1h, algorithm: fixed_window, align: key } }]");
    let limit = |id| only(&set, &user(id)).limit;
    assert_ne!(limit("1"), limit("2"));
    assert_eq!(limit("1"), limit("1"));
}

#[test]
fn modes_and_flags_reach_the_charge() {
    let set = set("rules:
  - { name: shadow, key_by: global, mode: shadow, limit: { requests: 1, window: 1s } }
  - { name: off, key_by: global, mode: off, limit: { requests: 1, window: 2s } }
  - { name: counted, key_by: global, count_denied: true, max_memory: 5%, limit: { requests: 4, window: 3s } }
  - { name: soft, key_by: global, soft: 20%, limit: { requests: 100, window: 4s } }
");
    assert_eq!(names(&set, &Request::new()), ["shadow", "counted", "soft"]);
    let charges = charges(&set, &Request::new()).charges;
    assert_eq!(charges[0].enforcement, Enforcement::Shadow);
    assert!(charges[1].count_denied && charges[1].owner.share == 5);
    assert_eq!(charges[2].soft.map(|soft| soft.excess), Some(20));
    assert!(matches!(charges[1].limit, Limit::Gcra(gcra) if gcra.max_debt() == 4));
}

#[test]
fn namespaces_do_not_see_each_other() {
    let file = |namespace: &str, requests: u64| {
        let yaml = format!(
            "namespace: {namespace}\nrules: [{{ name: r, key_by: user_id, limit: {{ requests: {requests}, window: 1s }} }}]"
        );
        tollgate_rules::read("rules.yaml", &yaml).unwrap()
    };
    let set = RuleSet::compile(&[file("a", 1), file("b", 2)], &CompileOptions::reproducible()).unwrap();
    let (a, b) = (only(&set, &user("1").in_namespace("a")), only(&set, &user("1").in_namespace("b")));
    assert_eq!((a.limit.capacity(), b.limit.capacity()), (1, 2));
    assert_ne!(a.bucket, b.bucket);
    assert!(charges(&set, &user("1").in_namespace("c")).applied.is_empty());
    assert!(RuleSet::compile(&[file("a", 1), file("a", 2)], &CompileOptions::reproducible()).is_err());
}

/// A custom attribute of that name used to have its own bucket for every value.
#[test]
fn custom_attributes_cannot_replace_the_namespace() {
    let set = set("rules: [{ key_by: namespace, limit: { requests: 1, window: 1s } }]");
    let posing = [("namespace", "another")];
    assert_eq!(bucket(&set, &Request::new()), bucket(&set, &Request::new().with_custom(&posing)));
}

#[test]
fn requests_decided_together_charge_a_shared_bucket_once() {
    let set = set("rules: [{ key_by: user_id, limit: { requests: 10, window: 1s } }]");
    let mut charges = Charges::default();
    for cost in [2, 3] {
        set.charges(&user("1").cost(cost), Time::ZERO, &mut charges).unwrap();
    }
    set.charges(&user("2"), Time::ZERO, &mut charges).unwrap();
    let asks: Vec<Ask> = charges.charges.iter().map(|charge| charge.ask).collect();
    assert_eq!(asks, [Ask::Consume(5), Ask::Consume(1)]);
    let places: Vec<_> = charges.applied.iter().map(|applied| (applied.request, applied.charge)).collect();
    assert_eq!(places, [(0, Some(0)), (1, Some(0)), (2, Some(1))]);
}

#[test]
fn explain_says_why_a_rule_does_not_apply() {
    let set = set("rules:
  - { name: hit, match: { tier: free }, key_by: user_id, limit: { requests: 1, window: 1s } }
  - { name: tier, match: { tier: [paid, '!x'] }, key_by: user_id, limit: { requests: 1, window: 1s } }
  - { name: path, match: { endpoint: 'POST /a' }, key_by: user_id, limit: { requests: 1, window: 1s } }
  - { name: key, key_by: org, limit: { requests: 1, window: 1s } }
  - { name: off, mode: off, key_by: org, limit: { requests: 1, window: 1s } }
  - { name: flight, key_by: global, limit: { algorithm: concurrency, slots: 1 } }
");
    let request = user("1").with(Attribute::Tier, "free").with(Attribute::Endpoint, "GET /a");
    let told: Vec<String> = set
        .explain(&request, Time::ZERO)
        .unwrap()
        .iter()
        .map(|explanation| match &explanation.applicability {
            Applicability::Applies { .. } => format!("{}={:?}", explanation.key[0].attribute, explanation.key[0].value),
            Applicability::NoMatch { attribute, wanted, found } => format!("{attribute}: {wanted} not {found:?}"),
            Applicability::MissingKey { part } => format!("no {part}"),
            Applicability::Off => "off".to_owned(),
            Applicability::NoSlot => "no slot".to_owned(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            r#"user_id=Some("1")"#,
            r#"tier: paid, !x not Some("free")"#,
            r#"endpoint: POST /a not Some("GET /a")"#,
            "no org",
            "off",
            "no slot",
        ]
    );
}

#[test]
fn the_buckets_of_a_client_are_those_that_its_requests_charge() {
    let set = set("rules:
  - { name: path, match: { tier: free, endpoint: 'POST /a' }, key_by: user_id, limit: { requests: 1, window: 1s } }
  - { name: both, key_by: 'user_id:endpoint', limit: { requests: 1, window: 1s } }
  - { name: paid, match: { tier: paid, endpoint: 'POST /a' }, key_by: user_id, limit: { requests: 1, window: 1s } }
  - { name: flight, key_by: user_id, limit: { algorithm: concurrency, slots: 1 } }
  - { name: sharded, key_by: user_id, shards: 3, limit: { requests: 30, window: 1s } }
");
    let client = user("1").with(Attribute::Tier, "free");
    let buckets = set.buckets(&client, Time::ZERO).unwrap();
    let told: Vec<String> = buckets
        .iter()
        .map(|buckets| match &buckets.charges {
            Ok(charges) => format!("{} if {:?}", charges.len(), buckets.assumed),
            Err(Applicability::NoMatch { attribute, .. }) => format!("other {attribute}"),
            Err(Applicability::MissingKey { part }) => format!("no {part}"),
            Err(other) => format!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [r#"1 if ["endpoint"]"#, "no endpoint", "other tier", "1 if []", "3 if []"]);
    let request = client.with(Attribute::Endpoint, "POST /a");
    let charged = set.explain(&request, Time::ZERO).unwrap();
    let Applicability::Applies { charge, .. } = &charged[0].applicability else { panic!("{:?}", charged[0]) };
    let derived = &buckets[0].charges.as_ref().unwrap()[0];
    assert_eq!((derived.bucket, derived.identity), (charge.bucket, charge.identity));
    let shards: std::collections::HashSet<_> =
        buckets[4].charges.as_ref().unwrap().iter().map(|charge| charge.bucket).collect();
    assert_eq!(shards.len(), 3);
}

#[test]
fn a_window_of_a_rule_reaches_its_limit() {
    let set =
        set("rules: [{ key_by: global, limit: { requests: 6, window: 1m, algorithm: leaky_bucket, max_delay: 20s } }]");
    let charge = only(&set, &Request::new());
    assert_eq!(
        (charge.limit.kind(), charge.limit.window(), charge.limit.capacity()),
        (LimitKind::Queue, Span::from_secs(60), 3)
    );
}

#[test]
fn tiers_come_from_rules_costs_and_clients_and_never_from_requests() {
    let set = set(r#"
rules:
  - { name: a, match: { tier: [free, '!trial'] }, limit: { requests: 1, window: 1s } }
  - { name: b, match: { tier: 'gold*' }, limit: { requests: 1, window: 1s } }
  - name: c
    limit: { requests: 1, window: 1s }
    cost: [ { match: { tier: bulk }, cost: 2 }, { cost: 1 } ]
clients:
  - { client_key: 'user:42', tier: paid }
  - { client_key: 'user:43', org: acme }
"#);
    assert_eq!(set.tiers(), ["bulk", "free", "paid", "trial"]);
    assert_eq!(set.tier_of(&user("42")), Some("paid"));
    assert_eq!(
        set.tier_of(&user("42").with(Attribute::Tier, "sent")),
        Some("sent"),
        "what the caller says comes first"
    );
    assert_eq!(set.tier_of(&user("43")), None);
    assert_eq!(set.tier_of(&user("42").in_namespace("elsewhere")), None);
}

#[test]
fn buckets_of_one_client_have_one_identity() {
    let set = set("rules:
  - { name: rate, key_by: user_id, limit: { requests: 1, window: 1s } }
  - { name: export, key_by: [user_id, endpoint], limit: { requests: 1, window: 2s } }
  - { name: all, key_by: global, limit: { requests: 9, window: 3s } }
  - { name: day, key_by: global, limit: { requests: 9, window: 4s } }
");
    let identities = |id: &str| {
        let mut charges = Charges { identities: true, ..Charges::default() };
        let request = user(id).with(Attribute::Endpoint, "/a");
        set.charges(&request, Time::ZERO, &mut charges).expect("the request can be read");
        charges.charges.iter().map(|charge| charge.identity).collect::<Vec<u32>>()
    };
    let (one, two) = (identities("1"), identities("2"));
    assert!(one[0] == one[1] && one[2] == one[3] && one[0] != one[2], "{one:?}");
    assert!(one[0] != two[0] && one[2] == two[2], "{one:?} {two:?}");
    assert_eq!(only_identity(&set, &user("1")), 0, "identities are not requested");
}

fn only_identity(set: &RuleSet, request: &Request<'_>) -> u32 {
    charges(set, request).charges[0].identity
}

#[test]
fn networks_are_for_clients_behind_nat64_and_6to4_too() {
    let long: Vec<String> = (1..20).map(|number| format!("10.{number}.0.0/16")).collect();
    for networks in ["10.0.0.0/8".to_owned(), format!("[{}]", long.join(", ")), "['*', '!11.0.0.0/8']".to_owned()] {
        let set = set(&format!(
            "rules: [{{ key_by: ip, match: {{ ip: {networks} }}, limit: {{ requests: 1, window: 1s }} }}]"
        ));
        let applies = |ip: &str| charges(&set, &Request::new().with(Attribute::Ip, ip)).charges.len();
        for ip in ["10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1"] {
            assert_eq!(applies(ip), 1, "{ip} in {networks}");
        }
        for ip in ["11.1.2.3", "64:ff9b::11.1.2.3", "2002:b01:203::1"] {
            assert_eq!(applies(ip), 0, "{ip} in {networks}");
        }
    }
}

#[test]
fn local_rules_ignore_shards() {
    let set = set("rules: [{ key_by: global, consistency: local, shards: 8, limit: { requests: 40, window: 1s } }]");
    let charge = |random, whole| {
        let mut charges = Charges { random, whole, ..Charges::default() };
        set.charges(&Request::new(), Time::ZERO, &mut charges).unwrap();
        (charges.charges[0].bucket, charges.charges[0].limit.requests())
    };
    let (bucket, _) = charge(0, false);
    for (random, whole) in [(1, false), (7, false), (3, true)] {
        assert_eq!(charge(random, whole), (bucket, 40), "a share of the whole, not the sum of rounded shares of parts");
    }
}

#[test]
fn shards_of_a_key_have_different_identities() {
    let set = set("rules: [{ key_by: global, shards: 3, limit: { requests: 10, window: 1s } }]");
    let identity = |random| {
        let mut charges = Charges { identities: true, random, ..Charges::default() };
        set.charges(&Request::new(), Time::ZERO, &mut charges).expect("the request can be read");
        charges.charges[0].identity
    };
    assert!(identity(0) != identity(1) && identity(1) != identity(2));
    assert_eq!(identity(3), identity(0));
}

#[test]
fn how_nodes_share_a_bucket_reaches_the_charge() {
    let set = set("rules:
  - { name: a, key_by: global, limit: { requests: 1, window: 1s } }
  - { name: b, key_by: global, consistency: leased, limit: { requests: 1, window: 2s } }
  - { name: c, key_by: global, consistency: leased, lease: { tokens: 7 }, limit: { requests: 1, window: 3s } }
  - { name: d, key_by: global, consistency: leased, lease: { seconds: 2 }, limit: { requests: 1, window: 4s } }
  - { name: e, key_by: global, consistency: async, limit: { requests: 1, window: 5s } }
  - { name: f, key_by: global, consistency: local, limit: { requests: 1, window: 6s } }
");
    let sharing: Vec<Sharing> = charges(&set, &Request::new()).charges.iter().map(|charge| charge.sharing).collect();
    let leased = [LeaseSize::Auto, LeaseSize::Units(7), LeaseSize::Millis(2000)].map(Sharing::Leased);
    let [auto, units, millis] = leased;
    assert_eq!(sharing, [Sharing::Exact, auto, units, millis, Sharing::Async, Sharing::Local]);
}

#[test]
fn a_limit_in_the_request_applies_only_with_accept_limits() {
    let set = set("rules:
  - { name: fixed, key_by: user_id, limit: { requests: 5, window: 1m, algorithm: fixed_window } }
  - { name: open, key_by: user_id, accept_limits: true, limit: { requests: 5, window: 1m } }
");
    let asked = |requests, secs| user("1").asking(AskedLimit { requests, window: Span::from_secs(secs) });
    let of = |request: &Request<'_>| charges(&set, request).charges.to_vec();
    let (plain, more, longer) = (of(&user("1")), of(&asked(9, 60)), of(&asked(9, 3600)));
    assert_eq!(plain[0], more[0]);
    let (limit, window) = (more[1].limit, longer[1].limit.window());
    assert_eq!((limit.requests(), limit.capacity(), window), (9, 9, Span::from_secs(3600)));
    assert_eq!(plain[1].bucket, more[1].bucket, "usage stays when only the number changes");
    assert_ne!(plain[1].bucket, longer[1].bucket, "another window is another bucket");
    let mut charges = Charges::default();
    let error = set.charges(&asked(1, 0), Time::ZERO, &mut charges).expect_err("a window of no length");
    assert_eq!((error.code, error.field.as_str()), ("bad_limit", "limit"));
}

#[test]
fn accept_limits_is_rejected_where_it_cannot_work() {
    for rule in [
        "{ accept_limits: true, limit: { algorithm: concurrency, slots: 1 } }",
        "{ accept_limits: true, shards: 2, limit: { requests: 10, window: 1s } }",
        "{ accept_limits: true, consistency: leased, limit: { requests: 10, window: 1s } }",
    ] {
        let report = tollgate_rules::read("rules.yaml", &format!("rules: [{rule}]")).expect_err(rule).to_string();
        assert!(report.contains("accept_limits"), "{report}");
    }
}

#[test]
fn reserved_slots_are_left_out_for_all_but_their_class() {
    let limit = "algorithm: concurrency, slots: 9";
    let slots = |options: &str, class: Option<&'static str>| {
        let set = set(&format!("rules: [{{ key_by: global, limit: {{ {limit}{options} }} }}]"));
        let custom: Vec<(&str, &str)> = class.map(|class| ("priority", class)).into_iter().collect();
        let request = Request::new().with_custom(&custom).holding(SlotId(1));
        let charge = only(&set, &request);
        (charge.limit.capacity(), charge.bucket)
    };
    let (all, bucket) = slots("", None);
    assert_eq!(all, 9);
    for (options, class, wanted) in [
        (", reserved: 20%", None, 7),
        (", reserved: 20%", Some("test"), 7),
        (", reserved: 20%", Some("critical"), 9),
        (", reserved: 20%", Some("health"), 9),
        (", reserved_for: gold", Some("critical"), 7),
        (", reserved_for: gold", Some("gold"), 9),
        (", reserved: 100%", None, 0),
    ] {
        assert_eq!(slots(options, class), (wanted, bucket), "{options} {class:?}: one count for all");
    }
}
