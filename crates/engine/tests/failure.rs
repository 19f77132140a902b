//! When the store does not answer, each rule's policy decides.

use tollgate_core::{Attribute, Charge, Receipt, Request, Span, Wait};
use tollgate_engine::{DecidedBy, Engine, EngineConfig, random_slot};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::{Outcomes, Store, StoreError, StoreErrorKind, Taken};

/// A store that cannot be reached, like a Redis that is down.
struct Unreachable;

impl Unreachable {
    fn error<T>() -> Result<T, StoreError> {
        Err(StoreError { kind: StoreErrorKind::Unavailable, detail: "connection refused".to_owned() })
    }
}

impl Store for Unreachable {
    async fn take(&self, _: &[Charge], _: Span, _: &mut Outcomes) -> Result<Taken, StoreError> {
        Unreachable::error()
    }

    async fn give_back(&self, _: &[Receipt]) -> Result<usize, StoreError> {
        Unreachable::error()
    }

    async fn forget(&self, _: &[Charge]) -> Result<(), StoreError> {
        Unreachable::error()
    }
}

fn engine(rules: &str, nodes: u64) -> Engine<Unreachable> {
    let file = tollgate_rules::read("rules.yaml", rules).unwrap_or_else(|report| panic!("{report}"));
    let rules = RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile");
    Engine::new(Unreachable, rules).with_config(EngineConfig { nodes, ..EngineConfig::default() })
}

fn user() -> Request<'static> {
    Request::new().with(Attribute::UserId, "1")
}

#[tokio::test]
async fn allow_lets_everything_pass_and_reports_it() {
    let engine = engine("on_fail: allow\nrules: [{ key_by: user_id, limit: { requests: 1, window: 1h } }]", 1);
    for _ in 0..10 {
        let decision = engine.decide(&user()).await;
        assert!(decision.is_allowed());
        assert_eq!((decision.decided_by, decision.remaining()), (DecidedBy::Open, None));
    }
}

#[tokio::test]
async fn deny_lets_nothing_pass() {
    let engine = engine(
        "rules:
  - { name: open, on_fail: allow, key_by: user_id, limit: { requests: 1, window: 1h } }
  - { name: shut, on_fail: deny, key_by: user_id, limit: { requests: 1, window: 2h } }
",
        1,
    );
    let decision = engine.decide(&user()).await;
    assert!(!decision.is_allowed());
    assert_eq!(decision.decided_by, DecidedBy::Closed);
    assert_eq!(decision.deciding_rule().map(|(rule, _)| rule.name.as_str()), Some("shut"));
    assert_eq!(decision.retry_after(), Wait::For(Span::SECOND));
}

/// P13 for one node: its share, rounded up, and no more.
#[tokio::test]
async fn p13_local_gives_each_node_its_share() {
    let engine =
        engine("rules: [{ key_by: user_id, limit: { requests: 100, window: 1h, algorithm: fixed_window } }]", 3);
    let mut admitted = 0;
    for _ in 0..200 {
        let decision = engine.decide(&user()).await;
        assert_eq!(decision.decided_by, DecidedBy::Fallback);
        admitted += u32::from(decision.is_allowed());
    }
    assert_eq!(admitted, 34);
}

/// P13 for rules with shards: a node's share is a share of the whole limit, not the sum of rounded shares of shards.
#[tokio::test]
async fn p13_shards_do_not_enlarge_the_share_of_a_node() {
    let cases = [(64, 64, 10), (40, 8, 2), (100, 7, 3), (10, 10, 4), (64, 2, 1), (9, 3, 100)];
    for (requests, shards, nodes) in cases {
        for algorithm in ["token_bucket", "fixed_window", "sliding_window", "sliding_window_log"] {
            let limit = format!("{{ requests: {requests}, window: 1h, algorithm: {algorithm} }}");
            let engine = engine(&format!("rules: [{{ key_by: user_id, shards: {shards}, limit: {limit} }}]"), nodes);
            let (mut decided, mut reserved) = (0, 0);
            for _ in 0..200 {
                let decision = engine.decide(&user()).await;
                assert_eq!(decision.decided_by, DecidedBy::Fallback);
                decided += u64::from(decision.is_allowed());
                let other = Request::new().with(Attribute::UserId, "2");
                reserved += u64::from(engine.reserve(&other).await.1.is_some());
            }
            let share = u64::div_ceil(requests, nodes);
            assert_eq!(
                (decided, reserved),
                (share, share),
                "{requests} by {algorithm}, {shards} shards, {nodes} nodes"
            );
        }
    }
}

#[tokio::test]
async fn a_reservation_of_a_rule_with_shards_is_settled_where_it_was_made() {
    let engine = engine("rules: [{ key_by: user_id, shards: 4, cost: 2, limit: { requests: 40, window: 1h } }]", 2);
    let (decision, reservation) = engine.reserve(&user().cost(10)).await;
    assert!(decision.is_allowed(), "20 units are this node's share");
    assert!(!engine.decide(&user()).await.is_allowed());
    let settled = engine.settle(reservation.expect("it was admitted"), 4).await.expect("settled here");
    assert_eq!(settled.refunded, 1);
    assert_eq!(engine.look(&user()).await.remaining(), Some(12));
}

#[tokio::test]
async fn a_shadow_rule_that_fails_closed_still_never_denies() {
    let engine =
        engine("rules: [{ mode: shadow, on_fail: deny, key_by: user_id, limit: { requests: 1, window: 1h } }]", 1);
    assert!(engine.decide(&user()).await.is_allowed());
}

#[tokio::test]
async fn a_reservation_made_without_the_store_is_settled_without_it() {
    let engine = engine("rules: [{ key_by: user_id, limit: { requests: 5, window: 1h } }]", 1);
    let (decision, reservation) = engine.reserve(&user().cost(5)).await;
    assert!(decision.is_allowed());
    assert!(!engine.decide(&user()).await.is_allowed());
    assert!(engine.settle(reservation.expect("it was admitted"), 1).await.is_ok());
    assert_eq!(engine.decide(&user()).await.remaining(), Some(3));
    assert!(engine.forget(&user()).await.is_err());
}

#[tokio::test]
async fn slots_held_without_the_store_come_back() {
    let slots = "rules: [{ key_by: user_id, limit: { algorithm: concurrency, slots: 2, slot_ttl: 10s } }]";
    let engine = engine(slots, 1);
    for _ in 0..10 {
        let (decision, reservation) = engine.reserve(&user().holding(random_slot())).await;
        assert!(decision.is_allowed(), "one after the other, never two in flight");
        let reservation = reservation.expect("it was admitted");
        assert!(engine.renew(&reservation).await.expect("asked locally"));
        engine.release(reservation).await.expect("released locally");
    }
}

#[tokio::test]
async fn an_allowed_decision_is_not_reported_as_closed() {
    let engine = engine(
        "key_by: user_id
rules:
  - { name: a, mode: shadow, on_fail: deny, limit: { requests: 1, window: 1h } }
  - { name: b, on_fail: allow, limit: { requests: 1, window: 1h } }
",
        1,
    );
    let decision = engine.decide(&user()).await;
    assert!(decision.is_allowed() && decision.decided_by == DecidedBy::Open);
}
