//! Reservations over leased rules, without the store, and by value.

use tollgate_core::Span;
use tollgate_engine::{DecidedBy, Engine, Extension};
use tollgate_ruleset::RuleSet;

use crate::rig::{RULES, STREAM, carried, denied, fleet, granted, opened, user};

#[tokio::test]
async fn leased_rules_are_exact_for_reservations() {
    let leased = RULES.replace("meter: output_tokens,", "meter: output_tokens, consistency: leased,");
    let fleet = fleet(&leased);
    let receipt = fleet.reserved(&STREAM).await;
    assert!(!opened(&receipt).is_local());
    let extension = fleet.there.extend(opened(&receipt), &[("output_tokens", 450)]).await.unwrap();
    let receipt = granted(extension);
    let (denial, _) = denied(fleet.here.extend(opened(&receipt), &[("output_tokens", 1)]).await.unwrap());
    assert_eq!(denial.remaining(), Some(0));
    fleet.there.settle_costs(opened(&receipt), &[("output_tokens", 123)]).await.unwrap();
    assert_eq!(fleet.usage().await[2], 123);
}

#[tokio::test]
async fn a_reservation_without_the_store_is_extended_and_settled_in_fallback_buckets() {
    let fleet = fleet(RULES);
    fleet.store.set_away(true);
    let (decision, receipt) = fleet.reserve(&STREAM).await;
    let receipt = receipt.expect("the share of this node has room");
    assert!(decision.is_allowed() && opened(&receipt).is_local());
    let extended = granted(fleet.here.extend(opened(&receipt), &[("output_tokens", 20)]).await.unwrap());
    assert!(matches!(fleet.here.extend(opened(&receipt), &[]).await, Ok(Extension::Replaced)));
    fleet.store.set_away(false);
    assert_eq!(fleet.usage().await, [0; 5]);
    fleet.store.calls();
    fleet.here.settle_costs(opened(&extended), &[("output_tokens", 5)]).await.unwrap();
    assert!(fleet.here.settle_costs(opened(&extended), &[]).await.unwrap().repeated);
    assert_eq!((fleet.store.calls(), fleet.usage().await), ((0, 0), vec![0; 5]), "the store has no record of it");
    fleet.store.set_away(true);
    let refill = fleet.here.decide(&user(&[("output_tokens", 495)])).await;
    assert!(refill.is_allowed(), "five of the share are used");
    assert!(!fleet.here.decide(&user(&[("output_tokens", 1)])).await.is_allowed());
}

/// The policy decides as it does for a check, and what it grants is charged when the stream is settled.
#[tokio::test]
async fn an_extension_without_the_store_is_decided_by_policy() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.store.set_away(true);
    let extension = fleet.here.extend(opened(&receipt), &[("output_tokens", 20)]).await.unwrap();
    let Extension::Granted(decision, extended) = extension else { panic!("the share of this node has room") };
    assert_eq!(decision.decided_by, DecidedBy::Fallback);
    assert!(matches!(fleet.here.extend(opened(&receipt), &[("output_tokens", 20)]).await, Ok(Extension::Replaced)));
    let (denial, slot_lost) = denied(fleet.here.extend(*extended, &[("output_tokens", 500)]).await.unwrap());
    assert_eq!((denial.deciding_rule().unwrap().0.name.as_str(), slot_lost), ("output", false));
    fleet.store.set_away(false);
    let receipt = granted(fleet.here.extend(opened(&receipt), &[("output_tokens", 10)]).await.unwrap());
    assert_eq!(fleet.usage().await[2], 60, "the store knows nothing of the step without it");
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 90)]).await.unwrap();
    assert_eq!(fleet.usage().await, [1, 100, 90, 460, 0], "settled to what was used");
}

#[tokio::test]
async fn an_extension_without_the_store_is_denied_where_the_policy_says_so() {
    let fleet = fleet(&RULES.replace("meter: output_tokens,", "meter: output_tokens, on_fail: deny,"));
    let receipt = fleet.reserved(&STREAM).await;
    fleet.store.set_away(true);
    let (denial, _) = denied(fleet.here.extend(opened(&receipt), &[("output_tokens", 20)]).await.unwrap());
    assert_eq!(denial.decided_by, DecidedBy::Closed);
    fleet.store.set_away(false);
    granted(fleet.here.extend(opened(&receipt), &[("output_tokens", 20)]).await.unwrap());
    assert_eq!(fleet.usage().await[2], 70, "the receipt stays good");
}

/// A program that embeds the engine keeps the reservation by value: no turns, so fewer calls.
#[tokio::test]
async fn a_reservation_in_the_process_needs_no_turn() {
    let fleet = fleet(RULES);
    let (_, reservation) = fleet.here.reserve(&user(&STREAM)).await;
    let extension = fleet.here.extend(reservation.unwrap(), &[("output_tokens", 20)]).await.unwrap();
    let Extension::Granted(decision, reservation) = extension else { panic!("there is room") };
    let left = decision.rulings().iter().map(|ruling| ruling.outcome.unwrap().remaining);
    assert_eq!(left.collect::<Vec<_>>(), [430, 2620], "what is left of output and credits");
    assert_eq!(fleet.store.calls(), (2, 0));
    fleet.here.settle_costs(*reservation, &[("output_tokens", 10)]).await.unwrap();
    assert_eq!(fleet.store.calls(), (0, 1));
    assert_eq!(fleet.usage().await, [1, 100, 10, 140, 0]);
}

#[tokio::test]
async fn a_reservation_that_no_rule_charges_is_extended_and_settled() {
    let engine = Engine::in_memory(RuleSet::empty());
    let (_, reservation) = engine.reserve(&user(&STREAM)).await;
    let receipt = carried(reservation.unwrap());
    let extended = granted(engine.extend(opened(&receipt), &[("output_tokens", 5)]).await.unwrap());
    assert!(matches!(engine.extend(opened(&receipt), &[]).await, Ok(Extension::Replaced)));
    assert!(engine.renew(&opened(&extended)).await.unwrap());
    assert!(!engine.settle_costs(opened(&extended), &[]).await.unwrap().repeated);
    assert!(engine.settle_costs(opened(&extended), &[]).await.unwrap().repeated);
}

#[tokio::test]
async fn a_token_bucket_settles_what_time_has_not_returned() {
    let yaml = "rules: [{ name: output, key_by: user_id, meter: output_tokens, limit: { amount: 100, window: 100s } }]";
    let fleet = fleet(yaml);
    let receipt = fleet.reserved(&[("output_tokens", 40)]).await;
    fleet.clock.advance(Span::from_secs(10));
    let receipt = granted(fleet.here.extend(opened(&receipt), &[("output_tokens", 20)]).await.unwrap());
    assert_eq!(fleet.usage().await, [50]);
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 50)]).await.unwrap();
    assert_eq!(fleet.usage().await, [40]);
}
