//! P22: rules change under load; every decision is made under exactly one generation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tollgate_core::{Attribute, Request};
use tollgate_engine::Engine;
use tollgate_ruleset::{CompileOptions, RuleSet};

/// Rules of generation n, recognisable by their number: two rules, both with a limit of 1,000,000 + n.
fn rules(number: u64) -> RuleSet {
    let limit = 1_000_000 + number;
    let yaml = format!(
        "rules:
  - {{ name: a, key_by: user_id, limit: {{ requests: {limit}, window: 1h, algorithm: fixed_window }} }}
  - {{ name: b, key_by: global, limit: {{ requests: {limit}, window: 1h, algorithm: fixed_window }} }}
"
    );
    let file = tollgate_rules::read("rules.yaml", &yaml).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile")
}

#[test]
fn p22_every_decision_uses_one_generation_and_numbers_never_go_back() {
    let engine = Engine::in_memory(rules(1));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let deciders: Vec<_> = ["x", "y"]
            .into_iter()
            .map(|user| {
                let (engine, over) = (&engine, &over);
                scope.spawn(move || {
                    let (mut last, mut decided) = (0, 0u64);
                    while !over.load(Ordering::Relaxed) {
                        let decision = engine.decide_now(&Request::new().with(Attribute::UserId, user));
                        let generation = decision.generation();
                        let limits = decision.rulings().iter().filter_map(|ruling| ruling.outcome);
                        assert!(
                            limits.map(|outcome| outcome.limit).eq([1_000_000 + generation; 2]),
                            "mixed generations"
                        );
                        assert!(generation >= last, "{generation} after {last}");
                        last = generation;
                        decided += 1;
                    }
                    (last, decided)
                })
            })
            .collect();
        for number in 2..=300 {
            assert_eq!(engine.swap_rules(rules(number)), number);
        }
        over.store(true, Ordering::Relaxed);
        let decided: u64 = deciders.into_iter().map(|decider| decider.join().expect("no decider panics").1).sum();
        assert!(decided > 0);
        let decision = engine.decide_now(&Request::new().with(Attribute::UserId, "x").peek());
        assert_eq!(decision.generation(), 300);
        let used =
            decision.rulings().iter().filter_map(|ruling| ruling.outcome).map(|outcome| outcome.used).next_back();
        assert_eq!(used, Some(decided), "no usage was lost or made up over 300 generations");
    });
}

#[test]
fn numbers_given_from_outside_are_kept_unless_they_have_passed() {
    let engine = Engine::in_memory(rules(1));
    assert_eq!(engine.swap_rules_as(rules(1), 40), 40);
    assert_eq!(engine.swap_rules(rules(1)), 41);
    assert_eq!(engine.swap_rules_as(rules(1), 40), 42, "40 has passed");
    assert_eq!(engine.swap_rules_as(rules(1), 43), 43);
    assert_eq!(engine.rules().number, 43);
}

#[test]
fn numbers_grow_and_are_unique_across_threads() {
    let engine = Engine::in_memory(rules(1));
    let given = thread::scope(|scope| {
        let swappers: Vec<_> = (0..3u64)
            .map(|thread| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut given = Vec::new();
                    for step in 0..200 {
                        let at_least = if thread == 0 { 0 } else { step * thread };
                        let number = engine.swap_rules_as(RuleSet::empty(), at_least);
                        assert!(number >= at_least);
                        assert!(engine.rules().number >= number, "a thread sees its own swap");
                        given.push(number);
                    }
                    assert!(given.is_sorted());
                    given
                })
            })
            .collect();
        swappers.into_iter().flat_map(|swapper| swapper.join().expect("no swapper panics")).collect::<Vec<u64>>()
    });
    let mut unique = given.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), given.len(), "no number was given twice");
    assert_eq!(engine.rules().number, unique.last().copied().unwrap_or_default(), "the highest stays");
}
