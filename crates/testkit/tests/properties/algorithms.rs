//! Every algorithm against its model and the oracle: RELIABILITY P1 to P4, P10 and P20, and SPEC 0.2.
//!
//! Calm scenarios have a clock that runs forward and one limit throughout: the bounds hold over their whole length. Wild
//! ones step back, change limits and force usage.

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_core::LimitKind;
use tollgate_testkit::oracle::{Scenario, play};

use crate::holds;

/// What a calm scenario may not contain, as bits of the first byte.
const TROUBLE: u8 = 0b111;

fn play_calm_and_wild(seeds: &'static str, kind: LimitKind) {
    let words = (any::<bool>(), any::<[u8; 8]>(), vec(any::<u32>(), 0..=160));
    holds(seeds, words, |(calm, mut head, words)| {
        head[0] &= if calm { !TROUBLE } else { !0 };
        play(&Scenario::decode(kind, head, &words))
    });
}

#[test]
fn gcra_keeps_its_promises() {
    play_calm_and_wild("proptest-regressions/gcra.txt", LimitKind::Gcra);
}

#[test]
fn queue_keeps_its_promises() {
    play_calm_and_wild("proptest-regressions/queue.txt", LimitKind::Queue);
}

#[test]
fn fixed_window_keeps_its_promises() {
    play_calm_and_wild("proptest-regressions/fixed_window.txt", LimitKind::FixedWindow);
}

#[test]
fn sliding_log_keeps_its_promises() {
    play_calm_and_wild("proptest-regressions/sliding_log.txt", LimitKind::SlidingLog);
}

#[test]
fn sliding_counter_keeps_its_promises() {
    play_calm_and_wild("proptest-regressions/sliding_counter.txt", LimitKind::SlidingCounter);
}

#[test]
fn concurrency_keeps_its_promises() {
    play_calm_and_wild("proptest-regressions/concurrency.txt", LimitKind::Concurrency);
}

#[test]
fn quota_keeps_its_promises() {
    play_calm_and_wild("proptest-regressions/quota.txt", LimitKind::Quota);
}
