//! Reserve, settle, hold, renew and wait.

use tollgate_core::{Attribute, ManualClock, Request, Span, Time};
use tollgate_engine::{AcquireError, Engine, Settled, random_slot};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::Memory;

fn engine(yaml: &str) -> (Engine<Memory>, ManualClock) {
    let file = tollgate_rules::read("rules.yaml", yaml).unwrap_or_else(|report| panic!("{report}"));
    let rules = RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile");
    let clock = ManualClock::at(Time::from_secs(1_800_000_000));
    (Engine::on_clock(rules, clock.clone()), clock)
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

const TOKENS: &str = "rules:
  - { name: a, key_by: user_id, max_debt: 100, limit: { requests: 100, window: 100s } }
  - { name: b, key_by: user_id, cost: 2, limit: { requests: 1000, window: 1h, algorithm: fixed_window } }
";

fn remaining(engine: &Engine<Memory>) -> Vec<u64> {
    let decision = engine.decide_now(&user("1").peek());
    decision.rulings().iter().filter_map(|ruling| ruling.outcome).map(|outcome| outcome.remaining).collect()
}

#[tokio::test]
async fn settling_low_gives_back_and_settling_high_charges_more() {
    let (engine, _) = engine(TOKENS);
    let (decision, reservation) = engine.reserve(&user("1").cost(40)).await;
    assert!(decision.is_allowed());
    assert_eq!(remaining(&engine), [60, 920]);
    let settled = engine.settle(reservation.unwrap(), 10).await.unwrap();
    assert_eq!(settled, Settled { refunded: 2, ..Settled::default() });
    assert_eq!(remaining(&engine), [90, 980]);

    let (_, reservation) = engine.reserve(&user("1").cost(50)).await;
    let settled = engine.settle(reservation.unwrap(), 95).await.unwrap();
    let above = [("requests".into(), 45)].into_iter().collect();
    assert_eq!(settled, Settled { extended: 2, above, ..Settled::default() });
    assert_eq!(remaining(&engine), [0, 790], "used is used, also beyond the limit");
}

#[tokio::test]
async fn a_late_refund_gives_back_only_what_time_has_not() {
    let (engine, clock) = engine(TOKENS);
    let (_, reservation) = engine.reserve(&user("1").cost(40)).await;
    clock.advance(Span::from_secs(30)); // thirty of forty are back already
    engine.settle(reservation.unwrap(), 0).await.unwrap();
    assert_eq!(remaining(&engine)[0], 100);
    let (_, reservation) = engine.reserve(&user("1").cost(40)).await;
    let _ = engine.decide_now(&user("1").cost(60));
    clock.advance(Span::from_secs(50));
    engine.settle(reservation.unwrap(), 0).await.unwrap();
    assert_eq!(
        remaining(&engine)[0],
        50,
        "its own forty were back after forty seconds; the other sixty are not its own"
    );
}

#[tokio::test]
async fn a_denied_request_reserves_nothing() {
    let (engine, _) = engine(TOKENS);
    let (decision, reservation) = engine.reserve(&user("1").cost(101)).await;
    assert!(!decision.is_allowed() && reservation.is_none());
    assert_eq!(remaining(&engine), [100, 1000]);
}

#[tokio::test]
async fn p11_slots_are_held_renewed_released_and_expire() {
    let (engine, clock) =
        engine("rules: [{ name: flight, key_by: global, limit: { algorithm: concurrency, slots: 2, slot_ttl: 10s } }]");
    let hold = || user("1").holding(random_slot());
    let (_, first) = engine.reserve(&hold()).await;
    let (_, second) = engine.reserve(&hold()).await;
    let (third, none) = engine.reserve(&hold()).await;
    assert!(!third.is_allowed() && none.is_none());
    let (first, second) = (first.unwrap(), second.unwrap());

    clock.advance(Span::from_secs(6));
    assert!(engine.renew(&first).await.unwrap());
    clock.advance(Span::from_secs(6)); // the second was not renewed
    assert!(!engine.renew(&second).await.unwrap(), "a lost slot is not taken anew");
    let (fourth, fourth_slot) = engine.reserve(&hold()).await;
    assert!(fourth.is_allowed());
    engine.release(second).await.unwrap(); // late: must not release the slot of another holder
    assert!(!engine.reserve(&hold()).await.0.is_allowed());
    engine.release(first).await.unwrap();
    engine.release(fourth_slot.unwrap()).await.unwrap();
    assert_eq!(engine.decide_now(&hold().peek()).remaining(), Some(2));
}

#[tokio::test]
async fn acquire_waits_exactly_as_long_as_needed() {
    let (engine, clock) = engine("rules: [{ key_by: user_id, limit: { requests: 2, window: 1s } }]");
    let limiter = engine.limiter(user("1"));
    assert_eq!(limiter.acquire(2).await, Ok(Span::ZERO));
    assert_eq!(limiter.acquire(1).await, Ok(Span::from_millis(500)));
    assert_eq!(limiter.acquire_blocking(2), Ok(Span::from_secs(1)));
    assert_eq!(limiter.acquire(3).await, Err(AcquireError::Never));
    let timeout = Span::from_millis(400);
    let timed_out = Err(AcquireError::TimedOut { wait: Span::from_millis(500) });
    assert_eq!(limiter.try_acquire(1, timeout).await, timed_out);
    assert_eq!(limiter.try_acquire_blocking(1, timeout), timed_out, "neither waited nor charged");
    clock.advance(Span::from_millis(500));
    assert_eq!(limiter.try_acquire_blocking(1, timeout), Ok(Span::ZERO));
}

#[test]
fn jitter_only_ever_adds() {
    let (engine, _) = engine("rules: [{ key_by: user_id, limit: { requests: 1, window: 1s } }]");
    let limiter = engine.limiter(user("1")).with_jitter(Span::from_millis(250));
    let _ = limiter.acquire_blocking(1);
    for _ in 0..100 {
        let waited = limiter.acquire_blocking(1).unwrap();
        assert!(waited <= Span::from_millis(1250), "{waited}");
    }
}

#[tokio::test]
async fn acquire_waits_in_real_time_too() {
    let rules = "rules: [{ key_by: user_id, limit: { requests: 200, window: 1s, burst: 1 } }]";
    let engine = Engine::in_memory(tollgate_engine::rules_from_yaml(rules).unwrap());
    let limiter = engine.limiter(user("1"));
    let mut waited = Span::ZERO;
    while waited.is_zero() {
        waited = limiter.acquire(1).await.unwrap(); // zero as long as a busy machine takes longer than the limit asks
    }
    assert!(waited <= Span::from_millis(5), "one interval at most: {waited}");
}
