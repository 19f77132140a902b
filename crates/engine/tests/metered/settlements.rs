//! Settling several meters and a slot.

use std::sync::Arc;

use tollgate_core::{Attribute, Enforcement, ManualClock, Request, Span, Time};
use tollgate_engine::{DecidedBy, Engine, Extension, Settled, UnchargedUnits};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::{Memory, MemoryConfig};

use crate::rig::{RULES, STREAM, carried, fleet, granted, opened, user};

fn repeated() -> Settled {
    Settled { repeated: true, ..Settled::default() }
}

#[tokio::test]
async fn one_reservation_takes_all_meters_and_a_slot_in_one_call() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    assert_eq!(fleet.store.calls(), (1, 0));
    let reservation = opened(&receipt);
    assert!(reservation.slot().is_some());
    assert_eq!(reservation.slot_ttl(), Some(Span::from_secs(60)));
    assert_eq!(reservation.amounts().collect::<Vec<_>>(), [("requests", 1), STREAM[0], STREAM[1]]);
    assert_eq!(fleet.usage().await, [1, 100, 50, 300, 1]);
}

#[tokio::test]
async fn all_or_nothing_over_meters_and_slots() {
    let fleet = fleet(RULES);
    let (decision, receipt) = fleet.reserve(&[("input_tokens", 900), ("output_tokens", 501)]).await;
    assert!(!decision.is_allowed() && receipt.is_none());
    assert_eq!(fleet.usage().await, [0; 5]);
    let _held = [fleet.reserved(&STREAM).await, fleet.reserved(&STREAM).await];
    let before = fleet.usage().await;
    let (decision, _) = fleet.reserve(&STREAM).await;
    assert_eq!(decision.deciding_rule().expect("a rule denied").0.name, "flight");
    assert_eq!(fleet.usage().await, before, "no slot, no tokens");
}

#[tokio::test]
async fn settles_each_meter_lower_and_higher() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.store.calls();
    let actual = [("input_tokens", 80), ("output_tokens", 60)];
    let settled = fleet.here.settle_costs(opened(&receipt), &actual).await.unwrap();
    assert_eq!(fleet.store.calls(), (2, 1), "its turn and the charge, and one refund");
    let above = [("output_tokens".into(), 10)].into_iter().collect();
    let expected = Settled { refunded: 2, extended: 2, above, ..Settled::default() };
    assert_eq!(settled, expected, "input and slot; output and credits");
    assert_eq!(fleet.usage().await, [1, 80, 60, 320, 0]);
}

#[tokio::test]
async fn meters_without_an_amount_keep_their_estimate() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 0)]).await.unwrap();
    assert_eq!(fleet.usage().await, [1, 100, 0, 100, 0]);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.here.settle_costs(opened(&receipt), &[]).await.unwrap();
    assert_eq!(fleet.usage().await, [2, 200, 50, 400, 0], "only the slot came back");
}

#[tokio::test]
async fn an_estimate_of_zero_is_charged_when_it_is_settled() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&[("output_tokens", 0)]).await;
    assert_eq!(fleet.usage().await, [1, 0, 0, 0, 1]);
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 40)]).await.unwrap();
    assert_eq!(fleet.usage().await, [1, 0, 40, 160, 0]);
}

#[tokio::test]
async fn settling_above_the_limit_is_charged() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    let settled = fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 700)]).await.unwrap();
    assert_eq!(settled.extended, 2);
    assert_eq!(fleet.usage().await, [1, 100, 700, 2900, 0], "used is used, also beyond the limit of 500");
}

#[tokio::test]
async fn what_a_bucket_does_not_charge_above_the_reservation_is_reported() {
    let fleet = fleet(
        "key_by: user_id
rules:
  - { name: capped, meter: output_tokens, max_debt: 100, limit: { amount: 500, window: 366d } }
  - { name: doubled, meter: { output_tokens: 2 }, max_debt: 10000, limit: { amount: 5000, window: 366d } }
  - { name: shadowed, mode: shadow, meter: output_tokens, limit: { amount: 500, window: 366d } }
  - { name: requests, limit: { requests: 9, window: 1h, algorithm: fixed_window } }",
    );
    let receipt = fleet.reserved(&[("output_tokens", 50)]).await;
    let settled = fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 700)]).await.unwrap();
    let uncharged = vec![UnchargedUnits { rule: "capped".to_owned(), units: 100 }];
    let above = [("output_tokens".into(), 650)].into_iter().collect();
    assert_eq!(settled, Settled { refunded: 0, extended: 3, above, uncharged, ..Settled::default() });
    let usage = fleet.usage().await;
    assert_eq!(usage[..2], [600, 1400], "500 and a debt of 100; twice 700");
}

#[tokio::test]
async fn a_meter_that_is_lower_is_not_above_although_another_is() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    let actual = [("input_tokens", 0), ("output_tokens", 51)];
    let settled = fleet.here.settle_costs(opened(&receipt), &actual).await.unwrap();
    assert_eq!(settled.above.as_slice(), [("output_tokens".into(), 1)]);
    assert_eq!((settled.refunded, settled.extended), (3, 1), "credits are lower in sum");
}

#[tokio::test]
async fn a_receipt_settles_once_at_whatever_node() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    let low = [("input_tokens", 10), ("output_tokens", 5)];
    fleet.there.settle_costs(opened(&receipt), &low).await.unwrap();
    let once = fleet.usage().await;
    assert_eq!(once, [1, 10, 5, 30, 0]);
    for amounts in [&low[..], &[], &[("output_tokens", 400)]] {
        assert_eq!(fleet.here.settle_costs(opened(&receipt), amounts).await, Ok(repeated()));
    }
    assert_eq!(fleet.usage().await, once);
}

#[tokio::test]
async fn a_settlement_above_the_estimate_has_one_effect_while_its_receipt_is_accepted() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    let high = [("output_tokens", 70)];
    assert!(!fleet.there.settle_costs(opened(&receipt), &high).await.unwrap().repeated);
    assert_eq!(fleet.usage().await, [1, 100, 70, 380, 0]);
    // A call with other amounts does not shorten what is remembered.
    for (after, amounts) in [(0, &[][..]), (61, &high), (61, &[]), (3600, &high), (23 * 3600 - 122, &high)] {
        fleet.clock.advance(Span::from_secs(after));
        assert_eq!(fleet.here.settle_costs(opened(&receipt), amounts).await, Ok(repeated()), "{after} s later");
        let extension = fleet.here.extend(opened(&receipt), &high).await;
        assert!(matches!(extension, Ok(Extension::Replaced)), "{extension:?}");
    }
    assert_eq!(fleet.usage().await, [0; 5]);
}

/// Settlements above their estimate are remembered in a tenth of the memory, and the others as long as callers retry.
#[tokio::test]
async fn remembered_settlements_are_bounded_and_leave_room_for_buckets() {
    const MANY: usize = 20_000;
    let file =
        tollgate_rules::read("rules", "rules: [{ key_by: user_id, limit: { requests: 1000000, window: 366d } }]");
    let rules = RuleSet::compile(&[file.unwrap()], &CompileOptions::reproducible()).unwrap();
    let clock = ManualClock::at(Time::from_secs(1_800_000_000));
    let config = MemoryConfig { max_memory: 4 << 20, shards: 4, ..MemoryConfig::default() };
    let memory = Memory::with_clock(config, Arc::new(clock.clone()));
    let engine = Engine::with_clock(memory, rules, Arc::new(clock.clone()));
    let mut receipts = Vec::new();
    for _ in 0..MANY {
        receipts.push(carried(engine.reserve(&user(&[])).await.1.unwrap()));
        let settled = engine.settle(opened(receipts.last().unwrap()), 2).await.unwrap();
        assert_eq!((settled.repeated, settled.extended), (false, 1));
    }
    for receipt in [&receipts[0], &receipts[MANY - 1]] {
        assert!(engine.settle(opened(receipt), 2).await.unwrap().repeated, "the share is full, a minute is remembered");
    }
    clock.advance(Span::from_secs(3600));
    let mut remembered = 0;
    for receipt in &receipts {
        remembered += usize::from(engine.settle(opened(receipt), 1).await.unwrap().repeated);
    }
    assert!((10_000..MANY - 4_000).contains(&remembered), "{remembered} of 32 bytes in 400 KiB");
    for number in 0..1_000 {
        let key = number.to_string();
        let decision = engine.decide_now(&Request::new().with(Attribute::UserId, &key));
        assert_eq!(decision.decided_by, DecidedBy::Store, "user {key} has a bucket of its own");
    }
}

#[tokio::test]
async fn concurrent_settlements_have_one_effect() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    let settle = |node| {
        let engine = if node % 2 == 0 { &fleet.here } else { &fleet.there };
        engine.settle_costs(opened(&receipt), &[("output_tokens", 90)])
    };
    let (a, b, c, d) = tokio::join!(settle(0), settle(1), settle(2), settle(3));
    assert_eq!([a, b, c, d].into_iter().filter(|settled| settled != &Ok(repeated())).count(), 1);
    assert_eq!(fleet.usage().await, [1, 100, 90, 460, 0]);
}

#[tokio::test]
async fn what_is_never_settled_stays_charged_and_its_slot_returns() {
    let fleet = fleet(RULES);
    let _receipt = fleet.reserved(&STREAM).await;
    fleet.clock.advance(Span::from_secs(61));
    assert_eq!(fleet.usage().await, [1, 100, 50, 300, 0]);
}

/// The turn is forgotten after a minute; the hour is not over, and the numbers of the charges are still known.
#[tokio::test]
async fn a_forgotten_turn_refunds_nothing_twice() {
    let fleet = fleet(RULES);
    let first = fleet.reserved(&STREAM).await;
    let extended = granted(fleet.here.extend(opened(&first), &[("output_tokens", 50)]).await.unwrap());
    fleet.here.settle_costs(opened(&extended), &[]).await.unwrap();
    let once = fleet.usage().await;
    assert_eq!(once, [1, 100, 100, 500, 0]);
    fleet.clock.advance(Span::from_secs(601));
    for receipt in [&extended, &first] {
        fleet.here.settle_costs(opened(receipt), &[("input_tokens", 0), ("output_tokens", 0)]).await.unwrap();
        assert_eq!(fleet.usage().await, once);
        fleet.clock.advance(Span::from_secs(601));
    }
}

#[tokio::test]
async fn with_limits_off_nothing_changes() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.store.calls();
    fleet.here.set_enforcement(Enforcement::Off);
    let settled = fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 9)]).await;
    assert_eq!((settled, fleet.store.calls()), (Ok(Settled::default()), (0, 0)));
    assert_eq!(fleet.usage().await, [1, 100, 50, 300, 1]);
}

/// Charges of a log are not one charge: beyond eight the oldest are joined, and the numbers of joined ones are spent.
#[tokio::test]
async fn an_old_version_of_a_long_stream_refunds_nothing_that_was_settled() {
    let rules = "rules: [{ name: log, key_by: user_id, meter: output_tokens, limit: { amount: 1000, window: 1h, algorithm: sliding_window_log } }]";
    let fleet = fleet(rules);
    let step = [("output_tokens", 10)];
    let mut versions = vec![fleet.reserved(&step).await];
    for _ in 0..12 {
        fleet.clock.advance(Span::SECOND);
        let last = versions.last().expect("there is one");
        versions.push(granted(fleet.here.extend(opened(last), &step).await.unwrap()));
    }
    let used = || async { fleet.usage().await[0] };
    fleet.here.settle_costs(opened(versions.last().expect("there is one")), &[]).await.unwrap();
    assert_eq!(used().await, 130);
    for version in &versions {
        fleet.clock.advance(Span::from_secs(61));
        fleet.there.settle_costs(opened(version), &[("output_tokens", 0)]).await.unwrap();
        assert_eq!(used().await, 130);
    }
}
