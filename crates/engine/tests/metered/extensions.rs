//! Extending a reservation: all or nothing, and only its latest version.

use tollgate_core::{Enforcement, Span, Wait};
use tollgate_engine::Extension;
use tollgate_ruleset::RuleSet;

use crate::rig::{RULES, STREAM, TwoNodes, denied, fleet, granted, opened, user};

const STEP: [(&str, u64); 1] = [("output_tokens", 50)];

async fn extend(fleet: &TwoNodes, receipt: &[u8], more: &[(&str, u64)]) -> Extension {
    fleet.here.extend(opened(receipt), more).await.expect("the store answers")
}

#[tokio::test]
async fn charges_the_next_step_in_one_call() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.store.calls();
    let receipt = granted(extend(&fleet, &receipt, &STEP).await);
    assert_eq!(fleet.store.calls(), (1, 0));
    assert_eq!(opened(&receipt).amount("output_tokens"), Some(100));
    assert_eq!(fleet.usage().await, [1, 100, 100, 500, 1], "no further request");
    fleet.there.settle_costs(opened(&receipt), &[("output_tokens", 70)]).await.unwrap();
    assert_eq!(fleet.usage().await, [1, 100, 70, 380, 0]);
}

#[tokio::test]
async fn a_denied_step_leaves_everything_and_the_receipt_stays_good() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    let before = fleet.usage().await;
    for more in [&[("output_tokens", 451)][..], &[("input_tokens", 1), ("output_tokens", 451)]] {
        let (denial, slot_lost) = denied(extend(&fleet, &receipt, more).await);
        let (rule, _) = denial.deciding_rule().unwrap();
        assert_eq!((rule.name.as_str(), slot_lost), ("output", false));
        assert_eq!((denial.limit(), denial.remaining()), (Some(500), Some(450)));
        assert!(matches!(denial.retry_after(), Wait::For(_)));
        assert_eq!(fleet.usage().await, before);
    }
    let receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 450)]).await);
    assert_eq!(fleet.usage().await[2], 500, "to the last unit");
    let (denial, _) = denied(extend(&fleet, &receipt, &[("output_tokens", 1)]).await);
    assert_eq!(denial.remaining(), Some(0));
}

#[tokio::test]
async fn a_receipt_is_extended_once() {
    let fleet = fleet(RULES);
    let first = fleet.reserved(&STREAM).await;
    let second = granted(extend(&fleet, &first, &STEP).await);
    let once = fleet.usage().await;
    assert!(matches!(extend(&fleet, &first, &STEP).await, Extension::Replaced));
    assert!(matches!(fleet.there.extend(opened(&first), &STEP).await, Ok(Extension::Replaced)));
    assert_eq!(fleet.usage().await, once);
    granted(extend(&fleet, &second, &STEP).await);
}

#[tokio::test]
async fn concurrent_extensions_of_one_receipt_charge_once() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    let (a, b) = tokio::join!(fleet.here.extend(opened(&receipt), &STEP), fleet.there.extend(opened(&receipt), &STEP));
    let replaced = [a, b].into_iter().filter(|extension| matches!(extension, Ok(Extension::Replaced))).count();
    assert_eq!(replaced, 1);
    assert_eq!(fleet.usage().await[2], 100);
}

#[tokio::test]
async fn an_old_receipt_settles_nothing() {
    let fleet = fleet(RULES);
    let first = fleet.reserved(&STREAM).await;
    let second = granted(extend(&fleet, &first, &STEP).await);
    let before = fleet.usage().await;
    let settled = fleet.there.settle_costs(opened(&first), &[("output_tokens", 0)]).await.unwrap();
    assert!(settled.repeated);
    assert_eq!(fleet.usage().await, before);
    let settled = fleet.there.settle_costs(opened(&second), &[("output_tokens", 0)]).await.unwrap();
    assert!(!settled.repeated);
    assert_eq!(fleet.usage().await, [1, 100, 0, 100, 0]);
}

#[tokio::test]
async fn a_settled_receipt_is_not_extended() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.here.settle_costs(opened(&receipt), &[]).await.unwrap();
    let before = fleet.usage().await;
    assert!(matches!(extend(&fleet, &receipt, &STEP).await, Extension::Replaced));
    assert_eq!(fleet.usage().await, before);
}

#[tokio::test]
async fn slots_are_renewed_by_every_step() {
    let fleet = fleet(RULES);
    let mut receipt = fleet.reserved(&STREAM).await;
    for _ in 0..4 {
        fleet.clock.advance(Span::from_secs(59));
        receipt = granted(extend(&fleet, &receipt, &[]).await);
    }
    assert_eq!(fleet.usage().await[4], 1);
    fleet.clock.advance(Span::from_secs(61));
    let before = fleet.usage().await;
    let (denial, slot_lost) = denied(extend(&fleet, &receipt, &STEP).await);
    let (rule, _) = denial.deciding_rule().unwrap();
    assert_eq!((slot_lost, rule.name.as_str(), denial.retry_after()), (true, "flight", Wait::Never));
    assert_eq!(fleet.usage().await, before, "nothing was charged");
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 10)]).await.unwrap();
    assert_eq!(fleet.usage().await[2], 10, "what was used is still settled");
}

/// Two windows: the units of the first are gone, those of the second are refunded.
#[tokio::test]
async fn charges_of_several_windows_are_settled_from_the_newest() {
    let yaml = "rules: [{ name: output, key_by: user_id, meter: output_tokens,
        limit: { amount: 100, window: 1m, algorithm: fixed_window } }]";
    let fleet = fleet(yaml);
    let mut receipt = fleet.reserved(&[("output_tokens", 60)]).await;
    fleet.clock.advance(Span::from_secs(60));
    receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 60)]).await);
    receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 30)]).await);
    assert_eq!(fleet.usage().await, [90]);
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 70)]).await.unwrap();
    assert_eq!(fleet.usage().await, [10], "of 150, 60 were in the first window");
}

/// More steps than charges that are kept apart: nothing is lost, and nothing is refunded twice.
#[tokio::test]
async fn many_steps_settle_to_what_was_used() {
    let yaml = "rules: [{ name: output, key_by: user_id, meter: output_tokens,
        limit: { amount: 10000, window: 10000s } }]";
    for used in [0, 15, 100, 200, 250] {
        let fleet = fleet(yaml);
        let mut receipt = fleet.reserved(&[("output_tokens", 10)]).await;
        for _ in 0..19 {
            fleet.clock.advance(Span::from_millis(1));
            receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 10)]).await);
        }
        assert_eq!(fleet.usage().await, [200]);
        fleet.here.settle_costs(opened(&receipt), &[("output_tokens", used)]).await.unwrap();
        assert_eq!(fleet.usage().await, [used], "settled at {used}");
    }
}

/// Charges of other requests between the steps: what is refunded is never more than the reservation still owes.
#[tokio::test]
async fn charges_of_others_between_many_steps_stay_charged() {
    let yaml = "rules: [{ name: output, key_by: user_id, meter: output_tokens,
        limit: { amount: 10000, window: 10000s } }]";
    let fleet = fleet(yaml);
    let mut receipt = fleet.reserved(&[("output_tokens", 10)]).await;
    for _ in 0..19 {
        let other = [("output_tokens", 3)];
        assert!(fleet.here.decide(&user(&other)).await.is_allowed());
        receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 10)]).await);
    }
    assert_eq!(fleet.usage().await, [257]);
    fleet.clock.advance(Span::from_secs(5));
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 0)]).await.unwrap();
    let [used] = fleet.usage().await[..] else { panic!("one rule") };
    assert!((52..=57).contains(&used), "{used}: others used 57 and got up to 5 back");
}

const SHADOWED: &str = "rules:
  - { name: output, key_by: user_id, meter: output_tokens, limit: { amount: 500, window: 1h, algorithm: fixed_window } }
  - name: trial
    mode: shadow
    key_by: user_id
    meter: output_tokens
    limit: { amount: 100, window: 1h, algorithm: fixed_window }
";

#[tokio::test]
async fn shadow_rules_deny_no_step_and_are_settled_to_what_was_used() {
    let fleet = fleet(SHADOWED);
    let receipt = fleet.reserved(&[("output_tokens", 80)]).await;
    let receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 50)]).await);
    assert_eq!(fleet.usage().await, [130, 80], "the shadow rule refused and was not charged");
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 70)]).await.unwrap();
    assert_eq!(fleet.usage().await, [70, 70]);
    let receipt = fleet.reserved(&[("output_tokens", 20)]).await;
    let receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 50)]).await);
    fleet.here.settle_costs(opened(&receipt), &[]).await.unwrap();
    assert_eq!(fleet.usage().await, [140, 90], "unchanged amounts change no charge");
}

#[tokio::test]
async fn the_kill_switch_lets_every_step_pass() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.here.set_enforcement(Enforcement::Shadow);
    let receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 451)]).await);
    assert_eq!(fleet.usage().await, [1, 100, 50, 2104, 1], "output refused, credits had room");
    fleet.here.set_enforcement(Enforcement::Off);
    fleet.store.calls();
    let receipt = granted(extend(&fleet, &receipt, &[("output_tokens", 1_000_000)]).await);
    assert_eq!(fleet.store.calls(), (0, 0));
    fleet.here.set_enforcement(Enforcement::Enforce);
    assert_eq!(opened(&receipt).amount("output_tokens"), Some(1_000_501));
    fleet.here.settle_costs(opened(&receipt), &[("output_tokens", 60)]).await.unwrap();
    assert_eq!(fleet.usage().await, [1, 100, 60, 340, 0]);
}

#[tokio::test]
async fn the_limits_of_the_reservation_hold_after_rules_changed() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    fleet.here.swap_rules(RuleSet::empty());
    let (denial, slot_lost) = denied(extend(&fleet, &receipt, &[("output_tokens", 451)]).await);
    assert!(denial.deciding_rule().is_none() && !slot_lost, "the rule is gone, its bucket is not");
    granted(extend(&fleet, &receipt, &[("output_tokens", 450)]).await);
}

#[tokio::test]
async fn amounts_saturate() {
    let fleet = fleet(RULES);
    let receipt = fleet.reserved(&STREAM).await;
    let twice = [("output_tokens", u64::MAX), ("output_tokens", u64::MAX)];
    let (denial, _) = denied(extend(&fleet, &receipt, &twice).await);
    assert_eq!(denial.retry_after(), Wait::Never);
    let half = [("output_tokens", 225), ("output_tokens", 225)];
    let receipt = granted(extend(&fleet, &receipt, &half).await);
    assert_eq!(opened(&receipt).amount("output_tokens"), Some(500));
    assert_eq!(fleet.usage().await[2], 500, "what is added is what is charged");
}
