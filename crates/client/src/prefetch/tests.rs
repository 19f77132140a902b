//! Promise P5 for units that clients take in advance: many processes over one engine, on a clock that the test moves, also
//! back.

use proptest::prelude::*;
use tollgate_core::{ManualClock, Request, Span, Time};
use tollgate_engine::{Engine, Reservation, rules_from_yaml};
use tollgate_store::Memory;

use super::PrefetchConfig;
use super::lease_table::{LeaseRefill, LeaseStep, LeaseTable, Returned};
use crate::{Outage, OutageKind, RemoteDecision};

const START: Time = Time::from_secs(1_800_000_000);
const BURST: u64 = 60;
const RATE: u64 = 20;
const LIFE: Span = Span::SECOND;

/// Processes that share one limit.
struct Processes {
    engine: Engine<Memory>,
    clock: ManualClock,
    tables: Vec<LeaseTable>,
    /// The reservations of the server, by receipt.
    held: Vec<Option<Reservation>>,
    runtime: tokio::runtime::Runtime,
    /// When units were spent.
    admitted: Vec<(Time, u64)>,
    calls: u64,
}

impl Processes {
    fn new(count: usize, units: u64) -> Processes {
        let rules =
            format!("rules: [{{ key_by: user_id, limit: {{ requests: {RATE}, window: 1s, burst: {BURST} }} }}]");
        let clock = ManualClock::at(START);
        let config = PrefetchConfig { units, life: LIFE, ..PrefetchConfig::default() };
        Processes {
            engine: Engine::on_clock(rules_from_yaml(&rules).unwrap(), clock.clone()),
            clock,
            tables: (0..count).map(|_| LeaseTable::new(config)).collect(),
            held: Vec::new(),
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            admitted: Vec::new(),
            calls: 0,
        }
    }

    fn now(&self) -> Time {
        tollgate_core::Clock::now(&self.clock)
    }

    /// One request of a process, as `Prefetch::check` makes it.
    fn ask(&mut self, process: usize, cost: u64, answered: bool) {
        let request = Request::new().with(tollgate_core::Attribute::UserId, "42");
        for _ in 0..20 {
            let now = self.now();
            let (step, returned) = self.tables[process].take("key", cost, now);
            self.settle(returned);
            match step {
                LeaseStep::Decided(decision) => {
                    if decision.allowed {
                        self.admitted.push((now, cost));
                    }
                    return;
                }
                LeaseStep::AskOnce => {
                    self.calls += 1;
                    let decision = remote(&self.engine.decide_now(&request.cost(cost)));
                    if decision.allowed {
                        self.admitted.push((now, cost));
                    }
                    self.tables[process].asked("key", &decision, now);
                    return;
                }
                LeaseStep::Refill(units) => {
                    self.calls += 1;
                    let (decision, reservation) = self.runtime.block_on(self.engine.reserve(&request.cost(units)));
                    let receipt = reservation.map(|reservation| {
                        self.held.push(Some(reservation));
                        (self.held.len() - 1).to_string()
                    });
                    let refill = match answered {
                        true => {
                            LeaseRefill::Answered { receipt, holds_slot: false, decision: Box::new(remote(&decision)) }
                        }
                        false => LeaseRefill::Failed(Outage::new(OutageKind::Timeout, "lost")),
                    };
                    let returned = self.tables[process].refilled("key", units, refill, now);
                    self.settle(returned);
                }
                LeaseStep::Failed(_) => return,
                LeaseStep::Wait(_) => panic!("no refill is under way"),
            }
        }
        panic!("a request goes round in circles");
    }

    fn settle(&mut self, returned: impl IntoIterator<Item = Returned>) {
        for Returned { receipt, spent } in returned {
            let reservation = self.held[receipt.parse::<usize>().unwrap()].take().expect("settled once");
            self.calls += 1;
            self.runtime.block_on(self.engine.settle(reservation, spent)).unwrap();
        }
    }

    fn advance(&mut self, span: Span) {
        self.clock.advance(span);
        let now = self.now();
        for process in 0..self.tables.len() {
            let returned = self.tables[process].expire(now);
            self.settle(returned);
        }
    }

    /// The most that was admitted beyond B + r·t, over all spans between two admissions.
    fn excess(&self) -> i128 {
        let mut most = i128::MIN;
        for (first, (start, _)) in self.admitted.iter().enumerate() {
            let mut sum = 0;
            for (end, units) in &self.admitted[first..] {
                sum += i128::from(*units);
                let refilled = u128::from(end.since(*start).nanos()) * u128::from(RATE) / 1_000_000_000;
                most = most.max(sum - i128::from(BURST) - refilled as i128);
            }
        }
        most
    }
}

fn remote(decision: &tollgate_engine::Decision) -> RemoteDecision {
    RemoteDecision {
        allowed: decision.is_allowed(),
        limit: decision.limit(),
        remaining: decision.remaining(),
        retry_after: decision.retry_after().span().filter(|_| !decision.is_allowed()),
        never: decision.retry_after() == tollgate_core::Wait::Never,
        ..RemoteDecision::default()
    }
}

#[derive(Clone, Debug)]
enum Act {
    Ask { process: usize, cost: u64, answered: bool },
    Advance(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let ask = (0usize..4, prop_oneof![4 => Just(1u64), 1 => 1u64..9], prop::bool::weighted(0.95))
        .prop_map(|(process, cost, answered)| Act::Ask { process, cost, answered });
    let advance =
        prop_oneof![Just(1_000_000u64), 1_000_000u64..400_000_000, Just(2_000_000_000u64)].prop_map(Act::Advance);
    prop::collection::vec(prop_oneof![6 => ask, 1 => advance], 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// P5: at most min(N·q, r·τ) beyond the limit, in any span.
    #[test]
    fn units_in_advance_keep_the_bound(acts in acts(), units in 1u64..40) {
        let mut processes = Processes::new(4, units);
        for act in acts {
            match act {
                Act::Ask { process, cost, answered } => processes.ask(process, cost, answered),
                Act::Advance(nanos) => processes.advance(Span::from_nanos(nanos)),
            }
        }
        let per_life = RATE * LIFE.nanos() / 1_000_000_000;
        let bound = i128::from((4 * units).min(per_life)) + 1; // spans between admissions round the refill down
        prop_assert!(processes.excess() <= bound, "{} > {bound}", processes.excess());
    }

    /// A clock that steps back spends no units twice: in all never more than was charged.
    #[test]
    fn a_clock_that_steps_spends_nothing_twice(acts in acts(), steps in prop::collection::vec(0u64..5_000, 1..6)) {
        let mut processes = Processes::new(2, 20);
        let mut steps = steps.into_iter().cycle();
        for (index, act) in acts.into_iter().enumerate() {
            match act {
                Act::Ask { process, cost, answered } => processes.ask(process % 2, cost, answered),
                Act::Advance(nanos) => processes.advance(Span::from_nanos(nanos)),
            }
            if index % 50 == 49 {
                let back = Span::from_millis(steps.next().unwrap_or(0));
                processes.clock.set(processes.now().before(back));
            }
        }
        let held: u64 = processes.tables.iter().map(LeaseTable::units_held).sum();
        prop_assert!(held <= 2 * 20);
    }
}

#[test]
fn a_hot_key_costs_a_call_per_hundred_decisions() {
    let rules = rules_from_yaml("rules: [{ key_by: user_id, limit: { requests: 100000, window: 1s } }]").unwrap();
    let mut processes = Processes::new(1, 100);
    processes.engine = Engine::on_clock(rules, processes.clock.clone());
    for _ in 0..10_000 {
        processes.ask(0, 1, true);
    }
    assert_eq!(processes.admitted.len(), 10_000);
    let per_call = 10_000 / processes.calls;
    assert!(per_call >= 50, "{per_call} decisions per call, refills and settlements counted");
}

#[test]
fn what_is_left_is_settled_back() {
    let mut processes = Processes::new(1, 40);
    for _ in 0..3 {
        processes.ask(0, 1, true);
    }
    assert!(processes.tables[0].units_held() > 0);
    processes.advance(Span::from_secs(5));
    assert_eq!(processes.tables[0].units_held(), 0);
    let request = Request::new().with(tollgate_core::Attribute::UserId, "42");
    assert_eq!(processes.engine.decide_now(&request.peek()).remaining(), Some(BURST));
}

#[test]
fn a_refusal_is_repeated_for_a_moment_and_no_longer_than_it_says() {
    let mut processes = Processes::new(1, 40);
    for _ in 0..200 {
        processes.ask(0, 1, true);
    }
    assert_eq!(processes.admitted.len() as u64, BURST, "all of the limit, and nothing more");
    assert!(processes.calls < 40, "{} calls for 200 requests", processes.calls);
    processes.advance(Span::from_millis(50)); // one unit
    processes.ask(0, 1, true);
    assert_eq!(processes.admitted.len() as u64, BURST + 1);
}

#[test]
fn more_keys_than_there_is_room_for_are_asked_one_by_one() {
    let config = PrefetchConfig { keys_max: 2, ..PrefetchConfig::default() };
    let mut table = LeaseTable::new(config);
    for key in ["a", "b"] {
        assert!(matches!(table.take(key, 1, START).0, LeaseStep::Refill(10)));
        assert!(matches!(table.take(key, 1, START).0, LeaseStep::Wait(_)));
    }
    assert!(matches!(table.take("c", 1, START).0, LeaseStep::AskOnce));
}
