//! Grants: units that a client gets once, in the period of a quota.

use tollgate_core::{Attribute, ManualClock, Request, Span, Time};
use tollgate_engine::Engine;
use tollgate_rules::datetime;
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::Memory;

fn engine(rules: &str, start: &str) -> (Engine<Memory>, ManualClock) {
    let clock = ManualClock::at(Time::from_nanos(datetime::parse(start).expect("an instant")));
    (Engine::on_clock(compiled(rules), clock.clone()), clock)
}

fn compiled(rules: &str) -> RuleSet {
    let file = tollgate_rules::read("rules", rules).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("valid rules")
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

/// Limit and remaining units of the rule that decides.
fn numbers(engine: &Engine<Memory>, request: Request<'_>) -> (u64, u64) {
    let decision = engine.decide_now(&request.cost(0));
    decision.limit().zip(decision.remaining()).expect("a limit applies")
}

const DAY: Span = Span::from_secs(86_400);

const MONTHLY: &str = "
rules:
  - { name: monthly, key_by: user_id, quota: { amount: 100, every: month, time_zone: Europe/Berlin, rollover: 20% } }
clients:
  - { client_key: 'user:tokyo', time_zone: Asia/Tokyo }
overrides:
  - { client_key: 'user:1', rule: monthly, requests: 200, valid_from: 2026-03-20T00:00:00Z, valid_until: 2026-04-01T00:00:00Z }
grants:
  - { client_key: 'user:1', rule: monthly, amount: 30, valid_from: 2026-03-10T00:00:00Z }
  - { client_key: 'user:1', rule: monthly, amount: 7, valid_from: 2026-03-12T00:00:00Z, valid_until: 2026-03-14T00:00:00Z }
  - { client_key: 'user:tokyo', rule: monthly, amount: 5, valid_from: 2026-03-31T14:59:59Z }
  - { client_key: 'user:blocked', rule: monthly, amount: 5, valid_from: 2026-03-01T00:00:00Z }
";

#[test]
fn grants_add_up_in_the_period_of_their_start() {
    let (engine, clock) = engine(MONTHLY, "2026-03-09T00:00:00Z");
    assert!(engine.decide_now(&user("1").cost(90)).is_allowed());
    assert_eq!(numbers(&engine, user("1")), (100, 10));
    clock.advance(DAY);
    assert_eq!(numbers(&engine, user("1")), (130, 40));
    clock.advance(Span::from_secs(2 * 86_400));
    assert_eq!(numbers(&engine, user("1")), (137, 47), "two at once");
    assert_eq!(numbers(&engine, user("2")), (100, 100), "not for others");
    clock.advance(Span::from_secs(2 * 86_400));
    assert_eq!(numbers(&engine, user("1")), (130, 40), "one has ended, and nothing of it was used");
    clock.advance(Span::from_secs(6 * 86_400));
    assert_eq!(numbers(&engine, user("1")), (230, 140), "an override changes the amount, grants add");
    clock.advance(Span::from_secs(12 * 86_400));
    assert_eq!(numbers(&engine, user("1")), (110, 110), "gone with the period; ten of the amount are carried");
}

#[test]
fn a_period_is_that_of_the_clients_calendar() {
    let (engine, clock) = engine(MONTHLY, "2026-03-31T14:59:59Z");
    assert_eq!(numbers(&engine, user("tokyo")).0, 105);
    clock.advance(Span::SECOND);
    assert_eq!(numbers(&engine, user("tokyo")).0, 100, "it is April in Tokyo");
}

#[test]
fn a_lifetime_is_one_period() {
    let rules = "
rules: [{ name: trial, key_by: user_id, quota: { amount: 3, every: never } }]
grants:
  - { client_key: 'user:1', rule: trial, amount: 2, valid_from: 2026-01-01T00:00:00Z }
  - { client_key: 'user:1', rule: trial, amount: 10, valid_from: 2026-01-01T00:00:00Z, valid_until: 2026-03-01T00:00:00Z }
";
    let (engine, clock) = engine(rules, "2026-02-28T23:59:59Z");
    assert!(engine.decide_now(&user("1").cost(4)).is_allowed());
    clock.advance(Span::SECOND);
    assert_eq!(numbers(&engine, user("1")), (5, 1));
    clock.advance(Span::from_secs(20 * 365 * 86_400));
    assert_eq!(numbers(&engine, user("1")), (5, 1), "a lifetime has no end");
}

/// Otherwise a grant to an organisation would be given to every one of its users.
#[test]
fn a_grant_counts_where_the_bucket_is_that_of_its_client() {
    let rules = "
rules:
  - { name: per-org, match: { path_kind: a }, key_by: org, quota: { amount: 10, every: day } }
  - { name: per-user, match: { path_kind: b }, key_by: [user_id, org], quota: { amount: 10, every: day } }
  - { name: per-client, match: { path_kind: c }, key_by: client_key, quota: { amount: 10, every: day } }
grants:
  - { client_key: 'org:acme', rule: per-org, amount: 5, valid_from: 2026-03-01T00:00:00Z }
  - { client_key: 'org:acme', rule: per-client, amount: 5, valid_from: 2026-03-01T00:00:00Z }
  - { client_key: 'user:1', rule: per-client, amount: 7, valid_from: 2026-03-01T00:00:00Z }
";
    let (engine, _) = engine(rules, "2026-03-01T12:00:00Z");
    let limit = |kind: &'static str, client: &'static str| {
        let request = Request::new().with(Attribute::ClientKey, client).with(Attribute::Org, "acme");
        numbers(&engine, request.with_custom(&[("path_kind", kind)])).0
    };
    assert_eq!(limit("a", "user:1"), 15);
    assert_eq!(limit("b", "user:1"), 10);
    assert_eq!(limit("c", "user:1"), 17, "not that of the organisation");
    assert_eq!(limit("c", "org:acme"), 15);
}

#[test]
fn an_amount_of_zero_blocks_grants_too() {
    let blocked =
        MONTHLY.replace("overrides:", "overrides:\n  - { client_key: 'user:blocked', rule: monthly, requests: 0 }");
    let (engine, _) = engine(&blocked, "2026-03-09T00:00:00Z");
    assert_eq!(numbers(&engine, user("blocked")), (0, 0));
}

#[test]
fn an_explanation_names_the_grants() {
    let set = compiled(MONTHLY);
    let wall = Time::from_nanos(datetime::parse("2026-03-13T00:00:00Z").expect("an instant"));
    let told = set.explain(&user("1"), wall).expect("readable");
    let units: Vec<u64> = told[0].grants.iter().map(|grant| grant.units).collect();
    assert_eq!(units, [7, 30], "the latest start first");
    assert_eq!((told[0].overrides, told[0].active_override.is_some()), (1, false), "grants are no overrides");
}

/// A customer whose billing day is `anchor`, with a grant.
fn billed(anchor: u8, grant: &str) -> String {
    format!(
        "
rules: [{{ name: monthly, key_by: user_id, quota: {{ amount: 100, every: month }} }}]
clients: [{{ client_key: 'user:1', anchor: {anchor} }}]
grants: [{{ client_key: 'user:1', rule: monthly, amount: 30, {grant} }}]
"
    )
}

/// Usage stays; which grants count follows the new period (docs/guide/quotas.md).
#[test]
fn a_changed_anchor_leaves_grants_behind_that_started_before_the_new_period() {
    let grant = "valid_from: 2026-11-10T00:00:00Z";
    let (engine, _) = engine(&billed(1, grant), "2026-11-20T00:00:00Z");
    assert!(engine.decide_now(&user("1").cost(90)).is_allowed());
    assert_eq!(numbers(&engine, user("1")), (130, 40));
    engine.swap_rules(compiled(&billed(17, grant)));
    assert_eq!(numbers(&engine, user("1")), (100, 10), "the period is that from November 17");
    engine.swap_rules(compiled(&billed(5, grant)));
    assert_eq!(numbers(&engine, user("1")), (130, 40), "and that from November 5 has it");
}

#[test]
fn a_grant_with_an_end_does_not_count_again_when_a_period_reaches_back_to_its_start() {
    let (open, ended) =
        ("valid_from: 2026-11-20T00:00:00Z", "valid_from: 2026-11-20T00:00:00Z, valid_until: 2026-12-01T00:00:00Z");
    for (grant, limit) in [(open, 130), (ended, 100)] {
        let (engine, clock) = engine(&billed(1, grant), "2026-11-30T00:00:00Z");
        assert_eq!(numbers(&engine, user("1")).0, 130);
        clock.advance(Span::from_secs(5 * 86_400));
        assert_eq!(numbers(&engine, user("1")).0, 100, "December");
        engine.swap_rules(compiled(&billed(17, grant)));
        assert_eq!(numbers(&engine, user("1")).0, limit, "{grant}, in the period from November 17");
    }
}
