//! Runs a table on a manual clock.

use std::collections::HashMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tollgate_core::{ManualClock, SlotId};
use tollgate_engine::{Decision, Engine, Reservation, Verdict};
use tollgate_rules::position::SourcePosition;
use tollgate_store::Memory;

use super::expect::{ExpectedVerdict, Mismatch};
use super::step::{RequestStep, StepAction, TestStep, offset};
use super::table::TestTable;
use tollgate_terminal::{DecisionView, Palette, ruling_text};

/// The result of a table.
#[derive(Debug)]
pub struct TableResult {
    /// Steps that were run.
    pub steps: usize,
    /// Requests that they made.
    pub requests: u64,
    /// Steps that did not meet their expectations.
    pub failures: Vec<StepFailure>,
}

/// A step that did not meet its expectations.
#[derive(Debug)]
pub struct StepFailure {
    /// Where it begins in the file.
    pub at: SourcePosition,
    /// Its last line.
    pub end_line: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Time since the start.
    pub offset: String,
    /// Each expectation that was not met.
    pub mismatches: Vec<Mismatch>,
    /// The decision, in one line.
    pub decision: Option<String>,
    /// What each rule decided, in one line each.
    pub rulings: Vec<String>,
}

/// Runs the table with empty buckets. A failed step does not end it.
pub fn run(table: TestTable) -> TableResult {
    let TestTable { rules, namespace, start, steps } = table;
    let clock = ManualClock::at(start);
    let engine = Engine::on_clock(rules, clock.clone());
    let mut player = Player { engine, clock, namespace, held: HashMap::new(), requests: 0 };
    let failures = steps.iter().filter_map(|step| {
        let StepFinding { mismatches, decision } = player.play(step)?;
        Some(StepFailure {
            at: step.at,
            end_line: step.end_line,
            name: step.name.clone(),
            offset: offset(start, step.time),
            mismatches,
            decision: decision.as_ref().map(decision_line),
            rulings: decision.iter().flat_map(ruling_lines).collect(),
        })
    });
    let failures: Vec<StepFailure> = failures.collect();
    TableResult { steps: steps.len(), requests: player.requests, failures }
}

fn decision_line(decision: &Decision) -> String {
    match &decision.verdict {
        Verdict::Invalid(error) => format!("invalid: {error}"),
        _ => DecisionView::from(decision).headline(Palette { colour: false }),
    }
}

fn ruling_lines(decision: &Decision) -> Vec<String> {
    decision.rulings().iter().map(|ruling| ruling_text(decision, ruling)).collect()
}

struct Player {
    engine: Engine<Memory>,
    clock: ManualClock,
    namespace: String,
    /// Reservations of allowed requests, by the name of their slot.
    held: HashMap<String, Vec<Reservation>>,
    requests: u64,
}

/// The differences of a step, and the decision that shows them.
struct StepFinding {
    mismatches: Vec<Mismatch>,
    decision: Option<Decision>,
}

impl StepFinding {
    fn of(expected: impl Into<String>, got: impl Into<String>) -> StepFinding {
        let mismatch = Mismatch { expected: expected.into(), got: got.into() };
        StepFinding { mismatches: vec![mismatch], decision: None }
    }
}

impl Player {
    fn play(&mut self, step: &TestStep) -> Option<StepFinding> {
        self.clock.set(step.time);
        match &step.action {
            StepAction::Request(ask) => self.play_requests(ask),
            StepAction::Release(slot) => self.release(slot),
            StepAction::Renew { slot, held } => self.renew(slot, *held),
        }
    }

    fn play_requests(&mut self, ask: &RequestStep) -> Option<StepFinding> {
        let (mut allowed, mut odd, mut last) = (0, None, None);
        for number in 1..=ask.times {
            if number > 1 {
                self.clock.advance(ask.every);
            }
            let decision = self.decide(ask);
            let got = ExpectedVerdict::of(&decision);
            allowed += u64::from(got == ExpectedVerdict::Allow);
            if odd.is_none() && ask.expect.verdict().is_some_and(|wanted| wanted != got) {
                odd = Some((number, decision));
            } else {
                last = Some(decision);
            }
        }
        if let Some((number, decision)) = odd {
            let wanted = ask.expect.verdict().map_or("", ExpectedVerdict::word);
            let got = ExpectedVerdict::of(&decision).word();
            let (expected, got) = match ask.times {
                1 => (wanted.to_owned(), got.to_owned()),
                times => (format!("{wanted} all {times}"), format!("{got} number {number}, {allowed} allowed in all")),
            };
            return Some(StepFinding { decision: Some(decision), ..StepFinding::of(expected, got) });
        }
        let decision = last?;
        let mut mismatches = ask.expect.mismatches(&decision);
        if let Some(wanted) = ask.expect.allowed.filter(|wanted| *wanted != allowed) {
            let shown = |number: u64| format!("{number} of {} allowed", ask.times);
            mismatches.insert(0, Mismatch { expected: shown(wanted), got: shown(allowed) });
        }
        (!mismatches.is_empty()).then_some(StepFinding { mismatches, decision: Some(decision) })
    }

    fn decide(&mut self, ask: &RequestStep) -> Decision {
        self.requests += 1;
        let lists = ask.request.lists();
        let holds = ask.slot.is_some() || ask.request.in_flight;
        let id = holds.then_some(SlotId(u128::from(self.requests)));
        let request = ask.request.to_request(&self.namespace, &lists, id);
        let Some(slot) = &ask.slot else { return self.engine.decide_now(&request) };
        let (decision, reservation) = ready(self.engine.reserve(&request));
        self.held.entry(slot.clone()).or_default().extend(reservation);
        decision
    }

    fn release(&mut self, slot: &str) -> Option<StepFinding> {
        let held = self.held.remove(slot).unwrap_or_default();
        if held.is_empty() {
            return Some(StepFinding::of(format!("slots held as {slot}"), "none"));
        }
        for reservation in held {
            if let Err(error) = ready(self.engine.release(reservation)) {
                return Some(StepFinding::of(format!("{slot} released"), error.to_string()));
            }
        }
        None
    }

    fn renew(&mut self, slot: &str, wanted: bool) -> Option<StepFinding> {
        let held = self.held.get(slot).map(Vec::as_slice).unwrap_or_default();
        let alive = held.iter().filter(|reservation| matches!(ready(self.engine.renew(reservation)), Ok(true))).count();
        let got = !held.is_empty() && alive == held.len();
        let word = |held: bool| if held { "still held" } else { "lost" };
        (got != wanted).then(|| StepFinding::of(word(wanted), format!("{alive} of {} still held", held.len())))
    }
}

/// The output of a future of the in-memory store, which never waits.
fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}
