//! The memory stays within its budget, whatever keys callers choose.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use tollgate_analytics::{DecisionSample, RulingSample, Traffic, TrafficBudget};
use tollgate_core::{Limit, Outcome, Span, Time, Wait};

/// A refusal by a limit of a hundred.
fn refusal() -> Outcome {
    let unused = Limit::per_minute(100).unwrap().unused(Time::ZERO);
    Outcome { allowed: false, used: 100, remaining: 0, wait: Wait::For(Span::SECOND), ..unused }
}

/// Records `keys` decisions of different clients with long names; returns the most bytes that were taken.
fn flood(keys: u64, bytes: usize, rules: u64) -> u64 {
    let outcome = refusal();
    let info = allocation_counter::measure(|| {
        let mut traffic = Traffic::new(TrafficBudget::of(bytes));
        let namespace = traffic.rule("default", "");
        for number in 0..keys {
            let rule = traffic.rule("default", &format!("rule-{}", number % rules));
            let ruling = RulingSample {
                rule,
                is_enforced: number % 3 > 0,
                is_refused: number % 2 == 0,
                mode: "store",
                outcome: Some(outcome),
                requests: 100,
                window: Span::from_secs(60),
            };
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let client = format!("user:\u{1b}[31m<script>{key:0200x}");
            traffic.record(
                &DecisionSample {
                    id: number,
                    // Ten thousand a second.
                    at: Time::from_nanos(1_800_000_000_000_000_000 + number * 100_000),
                    namespace: "default",
                    client: &client,
                    key,
                    is_allowed: number % 2 == 1,
                    cost: 1,
                    mode: "store",
                    generation: 1,
                    deciding: Some(0),
                    rulings: &[ruling],
                },
                namespace,
            );
        }
    });
    info.bytes_max
}

#[test]
fn ten_million_keys_take_no_more_than_the_setting() {
    let taken = flood(10_000_000, TrafficBudget::BYTES_DEFAULT, 40);
    assert!(taken <= TrafficBudget::BYTES_DEFAULT as u64, "{taken} bytes");
}

#[test]
fn a_million_names_of_rules_take_no_more_than_the_setting() {
    let taken = flood(1_000_000, 4 << 20, 1_000_000);
    assert!(taken <= 4 << 20, "{taken} bytes");
}

#[test]
fn the_least_memory_is_kept_too() {
    let taken = flood(200_000, TrafficBudget::BYTES_MIN, 5_000);
    assert!(taken <= TrafficBudget::BYTES_MIN as u64, "{taken} bytes");
}
