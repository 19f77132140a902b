//! The vectors of calendars, played as rules with quotas: through the engine, and on every store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use tollgate_core::{Attribute, Charge, Limit, ManualClock, Outcome, Request, Time, Wait};
use tollgate_engine::Engine;
use tollgate_lab::redis::{Flavour, RedisServer};
use tollgate_ruleset::{Charges, CompileOptions, RuleSet};
use tollgate_store::Memory;
use tollgate_testkit::vectors::{CALENDAR_AMOUNT, CalendarCharge, CalendarStep, CalendarVectors};
use tollgate_testkit::{Subject, SubjectKind};

const VECTORS: &str = include_str!("../../calendar/vectors/calendars.json");
/// One of the 171 steps is in the year 2400, where no store counts.
const STEPS: usize = 170;

fn vectors() -> CalendarVectors {
    CalendarVectors::parse(VECTORS).unwrap_or_else(|error| panic!("{error}"))
}

fn rules(vectors: &CalendarVectors) -> RuleSet {
    let file = tollgate_rules::read("calendars.json", &vectors.rules).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).unwrap()
}

fn request<'a>(step: &'a CalendarStep, case: &'a [(&'a str, &'a str)]) -> Request<'a> {
    Request::new().with(Attribute::ClientKey, &step.client).with_custom(case)
}

/// What an outcome says about a charge of a step, and what the vectors say.
fn compare(step: &CalendarStep, charge: &CalendarCharge, outcome: &Outcome) {
    let at = format!("{} at {}: {outcome:?}", step.client, charge.now.nanos() / 1_000_000_000);
    assert_eq!((outcome.allowed, outcome.remaining), (charge.allowed, charge.remaining), "{at}");
    if let Some(end) = step.end.filter(|_| charge.within) {
        assert_eq!(charge.now.after(outcome.reset_after), end, "{at}");
        let wait = if charge.allowed { Wait::None } else { Wait::For(end.since(charge.now)) };
        assert_eq!(outcome.wait, wait, "{at}");
    }
    if charge.now < step.start {
        assert_eq!(charge.now.after(outcome.reset_after), step.start, "the period before ends at the start: {at}");
    }
    if step.end.is_none() && !charge.allowed {
        assert_eq!(outcome.wait, Wait::Never, "{at}");
    }
}

#[test]
fn the_engine_agrees() {
    let vectors = vectors();
    let clock = ManualClock::default();
    let engine: Engine<Memory> = Engine::on_clock(rules(&vectors), clock.clone());
    let mut steps = 0;
    for step in vectors.within_reach() {
        for charge in step.charges() {
            clock.set(charge.now);
            let decision = engine.decide_now(&request(step, &[("case", step.case.as_str())]).cost(charge.cost));
            let ruling = decision.rulings().first().unwrap();
            compare(step, &charge, &ruling.outcome.unwrap());
        }
        steps += 1;
    }
    assert_eq!(steps, STEPS);
}

/// The charges that a node makes whose clock shows this time.
fn charged(rules: &RuleSet, step: &CalendarStep, wall: Time, cost: u64) -> Vec<Charge> {
    let mut charges = Charges::default();
    charges.identities = true;
    rules.charges(&request(step, &[("case", step.case.as_str())]).cost(cost), wall, &mut charges).unwrap();
    charges.charges.to_vec()
}

/// The node knows the calendar and the store the time.
fn agrees(store: SubjectKind) {
    let vectors = vectors();
    let rules = rules(&vectors);
    let mut subject = store.open();
    for step in vectors.within_reach() {
        for charge in step.charges() {
            let outcomes = subject.take(charge.now, &charged(&rules, step, charge.now, charge.cost));
            let [outcome] = outcomes[..] else { panic!("one rule applies: {outcomes:?}") };
            compare(step, &charge, &outcome);
        }
        nodes_with_other_clocks_count_in_the_same_period(subject.as_mut(), &rules, step);
    }
}

/// After the charges of the step, four units of the next period are used.
fn nodes_with_other_clocks_count_in_the_same_period(subject: &mut dyn Subject, rules: &RuleSet, step: &CalendarStep) {
    let Some(end) = step.end else { return };
    let Limit::Quota(next) = charged(rules, step, end, 0)[0].limit else { panic!("a quota") };
    for wall in [step.at, next.end()] {
        let charges = charged(rules, step, wall, 0);
        let outcomes = subject.take(end, &charges);
        assert_eq!(outcomes[0].remaining, CALENDAR_AMOUNT - 4, "{}: {outcomes:?}", step.client);
    }
}

#[test]
fn memory_and_the_reference_agree() {
    for store in SubjectKind::ALL {
        agrees(store);
    }
}

#[test]
fn redis_agrees() {
    let server = RedisServer::start();
    agrees(SubjectKind::Redis(server.port()));
}

#[test]
fn valkey_agrees() {
    let server = RedisServer::of(Flavour::Valkey);
    agrees(SubjectKind::Redis(server.port()));
}

#[test]
fn a_node_of_a_cluster_agrees() {
    let server = RedisServer::alone_in_a_cluster();
    agrees(SubjectKind::Redis(server.port()));
}
