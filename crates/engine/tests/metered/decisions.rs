//! What a request with amounts is charged.

use tollgate_core::{Enforcement, Time, Wait};
use tollgate_engine::{Decision, RESERVED_MAX, Verdict};

use crate::rig::{RULES, STREAM, fleet, user};

fn code(decision: &Decision) -> &'static str {
    match &decision.verdict {
        Verdict::Invalid(error) => error.code,
        other => panic!("it is valid: {other:?}"),
    }
}

#[tokio::test]
async fn each_rule_charges_its_meter() {
    let fleet = fleet(RULES);
    let decision = fleet.here.decide(&user(&STREAM)).await;
    assert!(decision.is_allowed());
    assert_eq!(fleet.usage().await, [1, 100, 50, 300, 0], "100 + 4 times 50 credits, and no slot");
    let _ = fleet.here.decide(&user(&[("output_tokens", 10)]).cost(3)).await;
    assert_eq!(fleet.usage().await, [4, 100, 60, 340, 0]);
    let _ = fleet.here.decide(&user(&[])).await;
    assert_eq!(fleet.usage().await, [5, 100, 60, 340, 0], "a request without the meter is not charged for it");
}

#[tokio::test]
async fn one_meter_without_room_charges_no_meter() {
    let fleet = fleet(RULES);
    let decision = fleet.here.decide(&user(&[("input_tokens", 1), ("output_tokens", 501)])).await;
    assert_eq!((decision.is_allowed(), decision.retry_after()), (false, Wait::Never));
    assert_eq!(decision.deciding_rule().expect("a rule denied").0.name, "output");
    assert_eq!(fleet.usage().await, [0; 5]);
}

#[tokio::test]
async fn amounts_of_zero_charge_nothing_and_carry_the_meter() {
    let strict = RULES.replace("meter: output_tokens,", "meter: output_tokens, unmetered: reject,");
    let fleet = fleet(&strict);
    let decision = fleet.here.decide(&user(&[("output_tokens", 0)]).cost(0)).await;
    assert!(decision.is_allowed());
    assert_eq!(fleet.usage().await, [0; 5]);
}

#[tokio::test]
async fn a_rule_may_reject_requests_without_its_meter() {
    let strict = RULES.replace("meter: output_tokens,", "meter: output_tokens, unmetered: reject,");
    let fleet = fleet(&strict);
    assert_eq!(code(&fleet.here.decide(&user(&[("input_tokens", 5)])).await), "missing_meter");
    let (decision, reservation) = fleet.reserve(&[]).await;
    assert_eq!(code(&decision), "missing_meter");
    assert!(reservation.is_none());
    assert_eq!(fleet.usage().await, [0; 5], "nothing was charged");
}

#[tokio::test]
async fn a_meter_that_no_rule_counts_is_an_error() {
    let fleet = fleet(RULES);
    let decision = fleet.here.decide(&user(&[("output_token", 5)])).await;
    assert_eq!(code(&decision), "unknown_meter");
    let Verdict::Invalid(error) = &decision.verdict else { panic!("it is invalid") };
    assert!(error.message.contains("did you mean `output_tokens`?"), "{}", error.message);
    fleet.here.set_enforcement(Enforcement::Off);
    assert_eq!(code(&fleet.here.decide(&user(&[("output_token", 5)])).await), "unknown_meter");
    assert!(fleet.here.rules().rules.explain(&user(&[("output_token", 5)]), Time::ZERO).is_err());
}

#[tokio::test]
async fn sums_saturate() {
    let yaml = "rules: [{ name: credits, key_by: user_id, cost: 1000000, meter: { a: 1000000, b: 1000000 },
        limit: { amount: 9007199254740992, window: 1d, algorithm: fixed_window } }]";
    let fleet = fleet(yaml);
    let most = (1_u64 << 53) - 1;
    for costs in [[("a", most), ("b", most)], [("a", u64::MAX), ("b", u64::MAX)]] {
        let decision = fleet.here.decide(&user(&costs)).await;
        assert_eq!((decision.is_allowed(), decision.retry_after()), (false, Wait::Never));
    }
    assert!(fleet.here.decide(&user(&[("a", 9_000)])).await.is_allowed(), "9,000 of 9,007");
    assert!(!fleet.here.decide(&user(&[("a", 8)])).await.is_allowed());
}

#[tokio::test]
async fn more_buckets_than_a_receipt_holds_are_refused_and_not_charged() {
    let rule = |number: usize| {
        format!(
            "  - {{ name: r{number}, key_by: user_id, limit: {{ requests: 9, window: 1h, algorithm: fixed_window }} }}\n"
        )
    };
    let rules = |count: usize| (0..count).fold("rules:\n".to_owned(), |rules, number| rules + &rule(number));
    let most = fleet(&rules(RESERVED_MAX));
    let receipt = most.reserved(&[]).await;
    assert!(receipt.len() * 4 / 3 < 64 << 10, "fits into a body");
    let more = fleet(&rules(RESERVED_MAX + 1));
    let (decision, receipt) = more.reserve(&[]).await;
    assert_eq!((code(&decision), receipt), ("reservation_too_large", None));
    assert_eq!(more.store.calls(), (0, 0), "nothing was charged");
    assert!(more.here.decide(&user(&[])).await.is_allowed(), "a check needs no receipt");
}
