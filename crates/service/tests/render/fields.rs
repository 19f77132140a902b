//! Header fields of many decisions, read back by an independent structured-fields parser.

use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};
use tollgate_core::{Attribute, Span};
use tollgate_engine::Decision;
use tollgate_rules::spec::{LimitSpec, RuleFile, RuleSpec};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_service::Reply;
use tollgate_service::render::{Jitter, RenderConfig, ResponseOptions, write_decision};

use crate::{engine, rendered, user};

const RULES: &str = "
rules:
  - { name: gcra-w, resource: 'gcra ; w=1', key_by: user_id, limit: { requests: 7, window: 10s, burst: 9 } }
  - { name: fixed, match: { tier: [b, c] }, key_by: user_id, limit: { requests: 8, window: 30s, algorithm: fixed_window } }
  - { name: log, match: { tier: b }, key_by: user_id, limit: { requests: 6, window: 1500ms, algorithm: sliding_window_log } }
  - { name: counter, match: { tier: c }, key_by: user_id, limit: { requests: 5, window: 400ms, algorithm: sliding_window } }
  - { name: line, match: { tier: d }, key_by: user_id, limit: { requests: 2, window: 3s, max_delay: 4s, algorithm: leaky_bucket } }
  - { name: debts, match: { tier: e }, key_by: user_id, max_debt: 50, limit: { requests: 2, window: 1m } }
  - { name: soft, match: { tier: f }, key_by: user_id, soft: 50%, limit: { requests: 6, window: 1m } }
  - { name: huge, match: { tier: g }, key_by: user_id, limit: { requests: 9007199254740992, window: 1d, algorithm: fixed_window } }
";

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 29)
    }
}

fn many_decisions(mut check: impl FnMut(&Decision, u64)) {
    let (engine, clock) = engine(RULES);
    let mut numbers = Numbers(42);
    for _ in 0..5_000 {
        let place = numbers.below(7) as usize;
        let tier = "abcdefg".get(place..=place).unwrap_or_default();
        let request = user("1").with(Attribute::Tier, tier).cost(numbers.below(4));
        let request = if tier == "e" && numbers.below(3) == 0 { request.report() } else { request };
        check(&engine.decide_now(&request), numbers.next());
        let step = numbers.below(4_000_000_000);
        clock.advance(Span::from_nanos(step / (1 + numbers.below(20))));
    }
}

fn field<'a>(reply: &'a Reply, name: &str) -> &'a [u8] {
    reply.fields.get(name).unwrap_or_default()
}

fn items(value: &[u8]) -> Vec<Item> {
    let list: List = Parser::new(value).parse().unwrap_or_else(|error| panic!("{error}: {value:?}"));
    let item = |entry: &ListEntry| match entry {
        ListEntry::Item(item) => item.clone(),
        ListEntry::InnerList(_) => panic!("an inner list"),
    };
    list.iter().map(item).collect()
}

fn parameter(item: &Item, key: &str) -> Option<i64> {
    let value = item.params.get(key)?;
    match value {
        BareItem::Integer(number) => Some(i64::from(*number)),
        other => panic!("{key} is {other:?}"),
    }
}

fn name(item: &Item) -> String {
    match &item.bare_item {
        BareItem::String(name) => name.as_str().to_owned(),
        other => panic!("{other:?} is no name"),
    }
}

#[test]
fn fields_are_structured_and_agree_with_each_other_and_with_the_body() {
    let config = RenderConfig { retry_jitter: Jitter::Percent(10), ..RenderConfig::default() };
    let (mut refused, mut reply) = (0, Reply::default());
    many_decisions(|decision, random| {
        write_decision(decision, &ResponseOptions { random, ..ResponseOptions::default() }, &config, &mut reply);
        let (policies, limits) = (items(field(&reply, "RateLimit-Policy")), items(field(&reply, "RateLimit")));
        let enforced: Vec<_> = decision.rulings().iter().filter(|ruling| ruling.enforced).collect();
        assert_eq!((policies.len(), limits.len()), (enforced.len(), enforced.len()));
        let text = |name| str::from_utf8(field(&reply, name)).unwrap().to_owned();
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(text("X-RateLimit-Reset"), body["reset_at"].to_string());
        let retry_after: Option<i64> = text("Retry-After").parse().ok();
        let exact = body["retry_after"].as_i64();
        assert_eq!(retry_after.is_some(), exact.is_some());
        assert!(retry_after >= exact, "jitter only adds: {retry_after:?} after {exact:?}");
        refused += i32::from(retry_after.is_some());
        for ((policy, limit), ruling) in policies.iter().zip(&limits).zip(enforced) {
            let rule = decision.rule(ruling).unwrap();
            assert_eq!((name(policy), name(limit)), (rule.name.clone(), rule.name.clone()));
            let (q, r) = (parameter(policy, "q").unwrap(), parameter(limit, "r").unwrap());
            let burst = parameter(policy, "tollgate-burst").unwrap_or(q);
            assert!(q > 0 && (0..=burst).contains(&r), "{}", text("RateLimit"));
            assert!(parameter(policy, "w").is_none_or(|window| window > 0));
            let t = parameter(limit, "t").unwrap_or(0);
            if ruling.refused() && !decision.is_allowed() {
                assert!(retry_after.is_none_or(|wait| wait >= t), "{} < {t}", text("Retry-After"));
            }
        }
    });
    assert!(refused > 500, "{refused}");
}

#[test]
fn older_styles_are_structured_too() {
    let config = |style: &str| RenderConfig { headers: style.parse().unwrap(), ..RenderConfig::default() };
    let (six, seven, envoy) = (config("draft-06"), config("draft-07"), config("envoy"));
    many_decisions(|decision, _| {
        let numbers = |value: &[u8]| items(value).iter().all(|item| matches!(item.bare_item, BareItem::Integer(_)));
        let reply = rendered(decision, &ResponseOptions::default(), &seven);
        let state: Dictionary = Parser::new(field(&reply, "RateLimit")).parse().unwrap();
        assert!(["limit", "remaining", "reset"].iter().all(|key| state.contains_key(*key)));
        assert!(numbers(field(&reply, "RateLimit-Policy")));
        let reply = rendered(decision, &ResponseOptions::default(), &six);
        for name in ["RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"] {
            assert!(numbers(field(&reply, name)), "{name}");
        }
        let reply = rendered(decision, &ResponseOptions::default(), &envoy);
        assert!(numbers(field(&reply, "X-RateLimit-Limit")));
    });
}

/// Rules from a file have no such names; rules built in code were not validated.
#[test]
fn any_name_makes_a_field_that_can_be_read() {
    for strange in ["café", "tab\t", "new\r\nline", "\u{7f}", "a\"b\\c", "\0", ""] {
        let limit = LimitSpec { requests: 1, window_ns: 1_000_000_000, ..LimitSpec::default() };
        let rule = RuleSpec { name: Some(strange.to_owned()), limit: Some(limit), ..RuleSpec::default() };
        let file = RuleFile { rules: vec![rule], ..RuleFile::default() };
        let set = RuleSet::compile(&[file], &CompileOptions::reproducible()).unwrap();
        let decision =
            tollgate_engine::Engine::in_memory(set).decide_now(&user("1").with(Attribute::ClientKey, "user:1"));
        let reply = rendered(&decision, &ResponseOptions::default(), &RenderConfig::default());
        assert_eq!(items(field(&reply, "RateLimit")).len(), 1, "{strange:?}");
        assert!(reply.fields.iter().all(|(_, value)| value.iter().all(|byte| matches!(byte, b' '..=b'~'))));
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(body["rule"], strange);
    }
}

/// A head of some kilobytes is refused by many clients; the rule that decides is listed in any case.
#[test]
fn header_fields_list_a_bounded_number_of_rules() {
    let mut yaml = String::from("rules:\n");
    for number in 0..40 {
        let requests = 100 - number;
        yaml += &format!("  - {{ name: r{number}, key_by: user_id, limit: {{ requests: {requests}, window: 1m }} }}\n");
    }
    let (engine, _) = engine(&yaml);
    let decision = engine.decide_now(&user("1"));
    let reply = rendered(&decision, &ResponseOptions::default(), &RenderConfig::default());
    let names: Vec<String> = items(field(&reply, "RateLimit")).iter().map(name).collect();
    assert_eq!((names.len(), names.last().map(String::as_str)), (33, Some("r39")));
    let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(body["rules"].as_array().map(Vec::len), Some(40));
}
