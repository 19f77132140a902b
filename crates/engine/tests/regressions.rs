//! Ways around a limit that a security review found; each stays closed.

use std::sync::Arc;

use tollgate_core::{Attribute, ManualClock, Request, SlotId, Span, Time};
use tollgate_engine::{AcquireError, DecidedBy, Engine, Verdict};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::{Memory, MemoryConfig};

fn rules(yaml: &str) -> RuleSet {
    let file = tollgate_rules::read("rules.yaml", yaml).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn engine(yaml: &str) -> (Engine<Memory>, ManualClock) {
    let clock = ManualClock::at(Time::from_secs(1_800_000_000));
    (Engine::on_clock(rules(yaml), clock.clone()), clock)
}

/// An engine whose store is full of buckets of other users.
fn full(yaml: &str) -> (Engine<Memory>, ManualClock) {
    let clock = ManualClock::at(Time::from_secs(1_800_000_000));
    let config = MemoryConfig { max_memory: 4096, shards: 1, overflow_factor: 10 };
    let engine = Engine::new(Memory::with_clock(config, Arc::new(clock.clone())), rules(yaml));
    for number in 0..10_000u32 {
        let id = format!("stranger {number}");
        let request = user(&id).with(Attribute::Tier, "a").holding(SlotId(u128::from(number)));
        if engine.decide_now(&request).decided_by == DecidedBy::Overflow {
            return (engine, clock);
        }
    }
    panic!("the store never became full");
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

fn admitted(engine: &Engine<Memory>, request: &Request<'_>, of: usize) -> usize {
    (0..of).filter(|_| engine.decide_now(request).is_allowed()).count()
}

#[test]
fn waiting_is_enough_although_a_refusal_was_counted() {
    let (engine, clock) = engine(
        "key_by: user_id
rules:
  - { name: a, limit: { requests: 1, window: 1s } }
  - { name: b, count_denied: true, limit: { requests: 2, window: 1h, algorithm: fixed_window } }
",
    );
    assert!(engine.decide_now(&user("1")).is_allowed());
    let wait = engine.decide_now(&user("1")).retry_after().span().expect("waiting helps");
    clock.advance(wait);
    assert!(engine.decide_now(&user("1")).is_allowed(), "promised {wait}");
}

#[test]
fn rules_that_replace_each_other_are_refused() {
    let circle = "key_by: user_id
rules:
  - { name: a, replaces: [b], limit: { requests: 1, window: 1h } }
  - { name: b, replaces: [c], limit: { requests: 1, window: 1h } }
  - { name: c, replaces: [a], limit: { requests: 1, window: 1h } }
";
    let report = tollgate_rules::read("rules.yaml", circle).expect_err("a circle").to_string();
    assert!(report.contains("replaces-cycle"), "{report}");
}

#[test]
fn a_rule_that_does_not_apply_replaces_no_other() {
    for other in [
        "key_by: org, limit: { requests: 1, window: 1h }",
        "key_by: user_id, limit: { algorithm: concurrency, slots: 1 }",
    ] {
        let (engine, _) = engine(&format!(
            "rules:
  - {{ name: other, replaces: [rate], {other} }}
  - {{ name: rate, key_by: user_id, limit: {{ requests: 1, window: 1h }} }}
"
        ));
        assert_eq!(admitted(&engine, &user("1"), 10), 1, "{other}");
    }
}

#[test]
fn a_replaced_rule_replaces_no_other() {
    let (engine, _) = engine(
        "key_by: user_id
rules:
  - { name: a, replaces: [b], limit: { requests: 100, window: 1h } }
  - { name: b, replaces: [c], limit: { requests: 50, window: 1h } }
  - { name: c, limit: { requests: 1, window: 1h } }
  - { name: all, unlimited: true }
  - { name: strict, replaces: [all], limit: { requests: 9, window: 1h } }
",
    );
    let decision = engine.decide_now(&user("1"));
    let rules = decision.rulings().iter().filter_map(|ruling| decision.rule(ruling));
    assert_eq!(rules.map(|rule| rule.name.as_str()).collect::<Vec<_>>(), ["a", "c", "strict"]);
}

#[test]
fn i07_i08_a_client_key_that_is_an_address_has_one_spelling() {
    for key in ["key_by: api_key, ", ""] {
        let (engine, _) = engine(&format!("rules: [{{ {key}limit: {{ requests: 1, window: 1h }} }}]"));
        let spellings: [&[&str]; 2] = [
            &["ip:192.0.2.1", "ip:192.0.2.1:1000", "ip:::ffff:192.0.2.1", "ip:[::ffff:c000:201]:5"],
            &["ip:2001:db8::1", "ip:2001:db8::2", "ip:2001:DB8:0:0::3"],
        ];
        for one_client in spellings {
            let passed = one_client.iter().filter(|spelling| {
                engine.decide_now(&Request::new().with(Attribute::ClientKey, spelling)).is_allowed()
            });
            assert_eq!(passed.count(), 1, "{key}{one_client:?}");
        }
    }
}

#[test]
fn requests_that_ask_different_things_of_one_bucket_are_not_decided_together() {
    let (rate, _) = engine("rules: [{ key_by: user_id, limit: { requests: 10, window: 1h } }]");
    for other in [user("1").cost(5).peek(), user("1").report()] {
        let decision = rate.decide_all_now(&[user("1"), other]);
        assert!(matches!(&decision.verdict, Verdict::Invalid(error) if error.code == "mixed_purposes"));
    }
    assert_eq!(rate.decide_now(&user("1").cost(0)).remaining(), Some(10), "nothing was charged");
    let (slots, _) = engine("rules: [{ key_by: global, limit: { algorithm: concurrency, slots: 1, slot_ttl: 10s } }]");
    let together = slots.decide_all_now(&[user("1").holding(SlotId(1)), user("2").holding(SlotId(2))]);
    assert!(!together.is_allowed(), "two holders in one slot");
    let many = vec![user("1"); 1025];
    assert!(
        matches!(&rate.decide_all_now(&many).verdict, Verdict::Invalid(error) if error.code == "too_many_requests")
    );
}

#[test]
fn a_soft_excess_follows_the_limit_it_is_an_excess_of() {
    let (overridden, _) = engine(
        "rules: [{ name: r, key_by: user_id, soft: 20%, limit: { requests: 1000, window: 1m, algorithm: fixed_window } }]
overrides: [{ client_key: 'user:1', rule: r, requests: 0 }, { client_key: 'user:2', rule: r, requests: 10 }]
",
    );
    assert_eq!(admitted(&overridden, &user("1"), 1000), 0, "a blocked client");
    assert!(admitted(&overridden, &user("2"), 1000) < 12);
    let (sharded, _) = engine(
        "rules: [{ key_by: user_id, soft: 20%, shards: 8, limit: { requests: 800, window: 1m, algorithm: fixed_window } }]",
    );
    assert!(admitted(&sharded, &user("1"), 10_000) <= 960);
}

#[test]
fn a_soft_draw_holds_for_the_whole_window_of_a_key() {
    let (engine, clock) = engine(
        "rules: [{ key_by: user_id, soft: 100%, limit: { requests: 10, window: 1m, align: key, algorithm: fixed_window } }]",
    );
    for number in 0..100 {
        let id = number.to_string();
        let first = engine.decide_now(&user(&id));
        let left = first.rulings()[0].outcome.map(|outcome| outcome.reset_after).expect("a window");
        admitted(&engine, &user(&id), 50);
        clock.advance(left.minus(Span::from_nanos(1)));
        assert_eq!(admitted(&engine, &user(&id), 50), 0, "user {id} drew again within one window");
    }
}

#[test]
fn keys_that_take_turns_reach_all_their_shards() {
    let (engine, _) = engine("rules: [{ key_by: user_id, shards: 2, limit: { requests: 100, window: 1h } }]");
    let mut passed = [0; 2];
    for _ in 0..100 {
        passed[0] += admitted(&engine, &user("1"), 1);
        passed[1] += admitted(&engine, &user("2"), 1);
    }
    assert!(passed.iter().all(|count| *count > 70), "{passed:?} of 100 each");
}

#[tokio::test]
async fn forgetting_and_holding_cover_all_shards() {
    let (rate, _) = engine("rules: [{ key_by: user_id, shards: 4, limit: { requests: 40, window: 1h } }]");
    admitted(&rate, &user("1"), 400);
    rate.forget(&user("1")).await.expect("memory never fails");
    let free: u64 = (0..400).filter(|_| rate.decide_now(&user("1")).is_allowed()).count() as u64;
    assert_eq!(free, 40);
    let (slots, _) =
        engine("rules: [{ key_by: global, shards: 4, limit: { algorithm: concurrency, slots: 4, slot_ttl: 10s } }]");
    for _ in 0..8 {
        assert!(slots.decide_now(&user("1").holding(SlotId(1))).is_allowed(), "the same slot, renewed");
    }
    assert!(slots.decide_now(&user("2").holding(SlotId(2))).is_allowed());
}

#[test]
fn overrides_reach_networks_and_organisations_and_are_checked_at_load() {
    let (network, _) = engine(
        "rules: [{ name: r, key_by: ip, limit: { requests: 5, window: 1h } }]
overrides: [{ client_key: 'ip:2001:db8::1', rule: r, requests: 0 }]
",
    );
    assert!(
        !network.decide_now(&Request::new().with(Attribute::Ip, "2001:db8::2")).is_allowed(),
        "one /64, one client"
    );
    let (org, _) = engine(
        "rules: [{ name: r, key_by: api_key, limit: { requests: 1, window: 1h } }]
clients: [{ client_key: 'key:abc', org: acme }]
overrides: [{ client_key: 'org:acme', rule: r, requests: 5 }]
",
    );
    assert_eq!(admitted(&org, &Request::new().with(Attribute::ApiKey, "abc"), 10), 5);
    for rule in
        ["shards: 8, limit: { requests: 100, window: 1h }", "max_debt: 250, limit: { requests: 100, window: 366d }"]
    {
        let yaml = format!(
            "rules: [{{ name: r, key_by: user_id, {rule} }}]
overrides: [{{ client_key: 'user:1', rule: r, requests: 1, burst: 300 }}]
"
        );
        let file = tollgate_rules::read("rules.yaml", &yaml);
        let problems = file.ok().map(|file| RuleSet::compile(&[file], &CompileOptions::reproducible()).is_err());
        assert_ne!(problems, Some(false), "{rule}");
    }
}

#[tokio::test]
async fn a_reservation_of_nothing_is_charged_when_settled() {
    let (engine, _) =
        engine("rules: [{ key_by: user_id, cost: 2, limit: { requests: 100, window: 1h, algorithm: fixed_window } }]");
    let (_, reservation) = engine.reserve(&user("1").cost(0)).await;
    engine.settle(reservation.expect("a read passes"), 20).await.expect("memory never fails");
    assert_eq!(engine.decide_now(&user("1").cost(0)).remaining(), Some(60));
}

#[test]
fn a_timeout_counts_for_a_queue_as_well() {
    let (engine, _) = engine(
        "rules: [{ key_by: user_id, limit: { algorithm: leaky_bucket, requests: 1, window: 1s, max_delay: 5s } }]",
    );
    assert!(engine.decide_now(&user("1").cost(4)).is_allowed());
    let late = engine.limiter(user("1")).try_acquire_blocking(1, Span::from_millis(10));
    assert_eq!(late, Err(AcquireError::TimedOut { wait: Span::from_secs(4) }));
}

#[tokio::test]
async fn what_overflowed_is_refunded_where_it_was_charged() {
    let (engine, clock) = full("rules: [{ key_by: user_id, limit: { requests: 10, window: 10s } }]");
    let (decision, reservation) = engine.reserve(&user("victim").cost(10)).await;
    assert_eq!(decision.decided_by, DecidedBy::Overflow);
    clock.advance(Span::from_secs(3));
    for _ in 0..8 {
        engine.store().sweep();
    }
    let own = engine.decide_now(&user("victim").cost(10));
    assert!(own.is_allowed() && own.decided_by == DecidedBy::Store);
    engine.settle(reservation.expect("it was admitted"), 0).await.expect("memory never fails");
    assert!(!engine.decide_now(&user("victim")).is_allowed(), "the refund went to a bucket that was never charged");
}

#[tokio::test]
async fn what_overflowed_is_extended_where_it_was_charged() {
    let (engine, _) = full("rules: [{ key_by: user_id, limit: { requests: 10, window: 10s } }]");
    let (_, reservation) = engine.reserve(&user("v")).await;
    let used = || engine.decide_now(&user("w").peek()).rulings()[0].outcome.map(|outcome| outcome.used);
    let before = used().expect("the overflow bucket");
    engine.settle(reservation.expect("it was admitted"), 6).await.expect("memory never fails");
    assert_eq!(used(), Some(before + 5));
}

#[tokio::test]
async fn slots_that_overflowed_are_renewed_and_released() {
    let (engine, _) = full("rules: [{ key_by: user_id, limit: { algorithm: concurrency, slots: 1, slot_ttl: 10s } }]");
    for number in 0..20u128 {
        let id = format!("v{number}");
        let (decision, reservation) = engine.reserve(&user(&id).holding(SlotId(1 << 64 | number))).await;
        assert_eq!((decision.is_allowed(), decision.decided_by), (true, DecidedBy::Overflow), "holder {number}");
        let reservation = reservation.expect("it was admitted");
        assert!(engine.renew(&reservation).await.expect("memory never fails"));
        engine.release(reservation).await.expect("memory never fails");
    }
}

#[test]
fn a_peek_in_a_full_store_tells_what_would_happen() {
    let (engine, _) = full("rules: [{ key_by: user_id, limit: { requests: 1, window: 1h } }]");
    for number in 0..20 {
        let id = format!("new {number}");
        let peek = engine.decide_now(&user(&id).peek()).is_allowed();
        assert_eq!(peek, engine.decide_now(&user(&id)).is_allowed(), "{id}");
    }
}

#[test]
fn an_empty_key_does_not_hide_the_address_behind_it() {
    let (engine, _) = engine("rules: [{ key_by: 'api_key|ip', limit: { requests: 1, window: 1h } }]");
    for address in ["192.0.2.1", "192.0.2.2"] {
        let request = Request::new().with(Attribute::ApiKey, "").with(Attribute::Ip, address);
        assert_eq!(admitted(&engine, &request, 3), 1, "{address}");
    }
}
