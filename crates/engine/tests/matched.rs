//! Requests that are matched once and decided in several decisions.

use tollgate_core::{Attribute, Enforcement, ManualClock, Request, Time};
use tollgate_engine::{DecidedBy, Decision, Engine};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::Memory;

fn rules(requests: u64) -> RuleSet {
    let yaml = format!(
        "rules:
  - {{ name: per-user, key_by: user_id, limit: {{ requests: {requests}, window: 1m, algorithm: fixed_window }} }}
  - {{ name: per-key, match: {{ api_key: '*' }}, key_by: api_key, limit: {{ requests: 100, window: 1m }} }}
"
    );
    let file = tollgate_rules::read("rules.yaml", &yaml).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile")
}

fn engine(requests: u64) -> Engine<Memory> {
    Engine::on_clock(rules(requests), ManualClock::at(Time::from_secs(1_800_000_000)))
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

fn now(engine: &Engine<Memory>, requests: &[Request<'_>], all: &[Request<'_>]) -> Decision {
    let matched = engine.match_all(all).expect("valid requests");
    engine.try_decide_matched(&matched, requests).expect("memory answers at once")
}

/// Verdict, and of each ruling: request, rule, and the outcome of its bucket.
fn shown(decision: &Decision) -> String {
    let rulings =
        decision.rulings().iter().map(|ruling| (ruling.request, ruling.rule, ruling.outcome, ruling.requests));
    format!("{:?} {:?} {:?}", decision.verdict, decision.decided_by, rulings.collect::<Vec<_>>())
}

#[test]
fn a_decision_about_matched_requests_is_that_of_the_requests() {
    let (once, anew) = (engine(5), engine(5));
    let all = [user("a").cost(2), user("b").with(Attribute::ApiKey, "k"), user("a").cost(2)];
    let selections = [
        all,
        [all[0].mention(), all[1], all[2].mention()],
        [all[0].peek(), all[1].peek(), all[2].peek()],
        all, // denied: two units are left
        [all[0].mention(), all[1].mention(), all[2].mention()],
    ];
    for selected in selections {
        assert_eq!(shown(&now(&once, &selected, &all)), shown(&anew.decide_all_now(&selected)), "{selected:?}");
    }
    assert_eq!(once.store().stats(), anew.store().stats());
}

#[test]
fn requests_that_ask_different_things_of_one_bucket_are_matched_and_not_decided_together() {
    let engine = engine(5);
    let all = [user("a"), user("a").peek(), user("b")];
    let matched = engine.match_all(&all).expect("valid requests");
    assert!(engine.try_decide_matched(&matched, &all).is_none());
    assert_eq!(engine.store().stats().buckets, 0, "nothing was charged");
    for round in [[all[0].mention(), all[1], all[2].mention()], [all[0], all[1].mention(), all[2]]] {
        assert!(engine.try_decide_matched(&matched, &round).expect("one round").is_allowed());
    }
    assert_eq!(engine.store().stats().buckets, 2);
}

#[tokio::test]
async fn matched_requests_keep_the_rules_that_they_were_matched_against() {
    let engine = engine(5);
    let all = [user("a")];
    let matched = engine.match_all(&all).expect("valid requests");
    let before = engine.rules().number;
    engine.swap_rules(rules(7));
    let decision = engine.decide_matched(&matched, &all).await;
    assert_eq!((decision.generation(), decision.limit()), (before, Some(5)), "matched once, not again");
    assert_eq!(engine.look_at_matched(&matched, &all).await.remaining(), Some(4), "a look charges nothing");
    assert_eq!(engine.refund_matched(&matched, &all).await.expect("memory").remaining(), Some(5));
    assert_eq!(engine.decide(&user("a")).await.limit(), Some(7));
}

#[tokio::test]
async fn while_limits_are_off_matched_requests_pass_and_cost_nothing() {
    let engine = engine(1);
    let all = [user("a").cost(9)];
    engine.set_enforcement(Enforcement::Off);
    let matched = engine.match_all(&all).expect("valid requests");
    for decision in [now(&engine, &all, &all), engine.decide_matched(&matched, &all).await] {
        assert_eq!((decision.is_allowed(), decision.decided_by), (true, DecidedBy::Off));
    }
    assert_eq!(engine.store().stats().buckets, 0);
}
