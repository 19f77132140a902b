//! Quotas of rules: calendar periods, calendars of clients, rollover, overdraft, lifetime.

use tollgate_core::{Attribute, ManualClock, Request, Span, Time, Wait};
use tollgate_engine::Engine;
use tollgate_rules::datetime;
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::Memory;

fn at(text: &str) -> Time {
    Time::from_nanos(datetime::parse(text).expect("an instant"))
}

fn engine(rules: &str, start: &str) -> (Engine<Memory>, ManualClock) {
    let clock = ManualClock::at(at(start));
    (Engine::on_clock(compiled(rules), clock.clone()), clock)
}

fn compiled(rules: &str) -> RuleSet {
    let file = tollgate_rules::read("rules", rules).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("valid rules")
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

fn remaining(engine: &Engine<Memory>, request: Request<'_>) -> u64 {
    engine.decide_now(&request.cost(0)).remaining().expect("a limit applies")
}

const MONTHLY: &str = "
rules:
  - name: monthly
    key_by: user_id
    quota: { amount: 100, every: month, time_zone: Europe/Berlin, anchor: 17 }
clients:
  - { client_key: 'user:own', time_zone: America/New_York, anchor: 31 }
  - { client_key: 'user:member', org: acme }
  - { client_key: 'org:acme', anchor: 5 }
";

#[test]
fn a_month_starts_on_the_anchor_in_the_zone_of_the_rule() {
    // 17 November in Berlin begins at 23:00 UTC of the 16th.
    let (engine, clock) = engine(MONTHLY, "2026-11-16T22:59:59Z");
    assert!(engine.decide_now(&user("1").cost(100)).is_allowed());
    let denied = engine.decide_now(&user("1"));
    assert_eq!(denied.retry_after(), Wait::For(Span::SECOND));
    clock.advance(Span::SECOND);
    assert!(engine.decide_now(&user("1")).is_allowed());
    let decision = engine.decide_now(&user("1").cost(100));
    assert_eq!(decision.retry_after().span().map(|wait| clock_after(&clock, wait)), Some(at("2026-12-16T23:00:00Z")));
}

fn clock_after(clock: &ManualClock, wait: Span) -> Time {
    use tollgate_core::Clock;
    clock.now().after(wait)
}

#[test]
fn a_client_and_its_organisation_have_calendars_of_their_own() {
    let (engine, clock) = engine(MONTHLY, "2026-02-28T04:59:59Z");
    let reset = |request: Request<'_>| {
        let decision = engine.decide_now(&request);
        let ruling = decision.deciding().and_then(|ruling| ruling.outcome).unwrap();
        clock_after(&clock, ruling.reset_after)
    };
    assert_eq!(reset(user("own")), at("2026-02-28T05:00:00Z"), "the 31st is the last day of February");
    assert_eq!(reset(user("member")), at("2026-03-04T23:00:00Z"), "the anchor of the organisation, the rule's zone");
    assert_eq!(reset(user("other")), at("2026-03-16T23:00:00Z"));
    let asked = [("time_zone", "Asia/Tokyo"), ("anchor", "1"), ("@anchor", "1")];
    assert_eq!(reset(user("other").with_custom(&asked)), at("2026-03-16T23:00:00Z"), "callers do not choose");
}

#[test]
fn rollover_carries_what_was_left_once() {
    let rules = "rules: [{ key_by: user_id, quota: { amount: 100, every: day, rollover: 20% } }]";
    let (engine, clock) = engine(rules, "2026-03-01T12:00:00Z");
    assert!(engine.decide_now(&user("1").cost(95)).is_allowed());
    clock.advance(Span::from_secs(86_400));
    assert_eq!(remaining(&engine, user("1")), 105, "five were left");
    assert!(engine.decide_now(&user("1").cost(1)).is_allowed());
    clock.advance(Span::from_secs(86_400));
    assert_eq!(remaining(&engine, user("1")), 120, "at most a fifth is carried");
    assert_eq!(remaining(&engine, user("2")), 100, "a client that is new carries nothing");
}

#[test]
fn overdraft_is_admitted_and_not_advertised() {
    let rules = "rules: [{ key_by: user_id, quota: { amount: 100, every: week, overdraft: 5% } }]";
    let (engine, _) = engine(rules, "2026-03-01T12:00:00Z");
    let first = engine.decide_now(&user("1").cost(98));
    assert_eq!((first.limit(), first.remaining()), (Some(100), Some(2)));
    assert!(engine.decide_now(&user("1").cost(7)).is_allowed());
    assert!(!engine.decide_now(&user("1")).is_allowed());
}

#[test]
fn a_lifetime_quota_never_comes_back() {
    let (engine, clock) =
        engine("rules: [{ key_by: user_id, quota: { amount: 3, every: never } }]", "2026-03-01T12:00:00Z");
    assert!(engine.decide_now(&user("1").cost(3)).is_allowed());
    clock.advance(Span::from_secs(50 * 365 * 86_400));
    assert_eq!(engine.decide_now(&user("1")).retry_after(), Wait::Never);
}

#[test]
fn changing_zone_anchor_or_amount_keeps_usage() {
    let (engine, _) = engine(MONTHLY, "2026-11-20T12:00:00Z");
    assert!(engine.decide_now(&user("1").cost(60)).is_allowed());
    for (changed, left) in [("amount: 200, every: month", 140), ("amount: 100, every: month, anchor: 3", 40)] {
        let rules = format!("rules: [{{ name: monthly, key_by: user_id, quota: {{ {changed} }} }}]");
        engine.swap_rules(compiled(&rules));
        assert_eq!(remaining(&engine, user("1")), left, "{changed}");
    }
}

#[test]
fn meters_and_quotas_are_one_decision() {
    let rules = "
rules:
  - { name: rate, key_by: user_id, limit: { requests: 2, window: 1m } }
  - { name: tokens, key_by: user_id, meter: output_tokens, quota: { amount: 1000, every: month } }
  - { name: credits, key_by: user_id, meter: { input_tokens: 1, output_tokens: 4 }, limit: { amount: 5000, window: 1h } }
";
    let (engine, _) = engine(rules, "2026-11-20T12:00:00Z");
    let costs = [("input_tokens", 100), ("output_tokens", 600)];
    let decision = engine.decide_now(&user("1").with_costs(&costs));
    let left: Vec<u64> = decision.rulings().iter().map(|ruling| ruling.outcome.unwrap().remaining).collect();
    assert_eq!(left, [1, 400, 2500]);
    let denied = engine.decide_now(&user("1").with_costs(&costs));
    assert_eq!(denied.deciding_rule().map(|(rule, _)| rule.name.as_str()), Some("tokens"));
    assert_eq!(remaining(&engine, user("1")), 1, "nothing was charged, and a request without tokens meets one rule");
}

#[test]
fn clients_that_share_a_bucket_share_its_periods() {
    let rules = "
rules:
  - { name: daily, key_by: org, quota: { amount: 100, every: day } }
  - { name: all, key_by: global, quota: { amount: 1000, every: day } }
clients:
  - { client_key: 'user:tokyo', org: acme, time_zone: Asia/Tokyo }
  - { client_key: 'user:berlin', org: acme, time_zone: Europe/Berlin }
  - { client_key: 'user:own', org: other }
  - { client_key: 'org:other', time_zone: Asia/Tokyo }
";
    let (engine, clock) = engine(rules, "2026-11-18T12:00:00Z");
    let resets = |id: &str| {
        let decision = engine.decide_now(&user(id));
        decision
            .rulings()
            .iter()
            .map(|ruling| clock_after(&clock, ruling.outcome.unwrap().reset_after))
            .collect::<Vec<_>>()
    };
    let midnight = at("2026-11-19T00:00:00Z");
    assert_eq!(resets("tokyo"), [midnight, midnight], "not by the calendar of one member");
    assert_eq!(resets("berlin"), [midnight, midnight]);
    assert_eq!(resets("own"), [at("2026-11-18T15:00:00Z"), midnight], "by that of the organisation");
}
