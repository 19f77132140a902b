//! Threads that reserve, extend, settle and let reservations expire, on one store: each effect once, and exact sums.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

use tollgate_core::{Clock, Span, Time};
use tollgate_engine::Extension;

use crate::rig::{CarriedReceipt, TwoNodes, carried, fleet, opened};

/// No window ends within a run. Every limit is reached.
const RULES: &str = "rules:
  - { name: input, key_by: user_id, meter: input_tokens, limit: { amount: 12000, window: 366d, algorithm: fixed_window } }
  - name: credits
    key_by: user_id
    meter: { input_tokens: 1, output_tokens: 4 }
    limit: { amount: 40000, window: 366d, algorithm: fixed_window }
  - { name: plan, key_by: user_id, meter: output_tokens, quota: { amount: 7000, every: year, overdraft: 5% } }
  - { name: flight, key_by: user_id, limit: { algorithm: concurrency, slots: 24, slot_ttl: 10s } }
grants: [{ client_key: 'user:1', rule: plan, amount: 150, valid_from: 2027-01-15T07:00:00Z }]
";
const MOST: [u64; 4] = [12_000, 40_000, 7_000 + 350 + 150, 24];
const TTL: Span = Span::from_secs(10);

const THREADS: usize = 6;
const CALLS: usize = 500;
/// The clock moves after so many calls, and slots that were not renewed expire.
const CALLS_PER_TICK: usize = 60;
const TICK: Span = Span::from_secs(3);
/// How long after a settlement it is tried again.
const RETRIED: Span = Span::from_secs(30);

/// Tokens in and out.
type Tokens = [u64; 2];

/// What callers know of a reservation.
struct SharedReservation {
    /// The latest version, as far as any caller knows.
    receipt: CarriedReceipt,
    tokens: Tokens,
    /// When it was settled.
    settled: Option<Time>,
}

struct ThreadedRun {
    fleet: TwoNodes,
    reservations: Mutex<Vec<SharedReservation>>,
    calls: AtomicUsize,
    /// Held for reading by every call: a receipt is void for a minute, and the clock must not move on that far while a
    /// thread that is preempted holds an old one.
    clock: RwLock<()>,
    /// Whether settlements may be above the estimate: such are charged also beyond the limits.
    above: bool,
}

/// Random numbers of one thread.
struct ThreadDice(u64);

impl ThreadDice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn named([input, output]: Tokens) -> [(&'static str, u64); 2] {
    [("input_tokens", input), ("output_tokens", output)]
}

impl ThreadedRun {
    fn new(above: bool) -> ThreadedRun {
        let (reservations, calls, clock) = Default::default();
        ThreadedRun { fleet: fleet(RULES), reservations, calls, clock, above }
    }

    fn thread(&self, number: usize) {
        let mut dice = ThreadDice(0x9e37_79b9 + number as u64);
        let runtime = runtime();
        for _ in 0..CALLS {
            let running = self.clock.read().unwrap();
            runtime.block_on(self.call(&mut dice));
            drop(running);
            if self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(CALLS_PER_TICK) {
                let _alone = self.clock.write().unwrap();
                self.fleet.clock.advance(TICK);
            }
        }
    }

    async fn call(&self, dice: &mut ThreadDice) {
        match dice.below(10) {
            0..4 => self.reserve([dice.below(120), dice.below(60)]).await,
            4..7 => self.extend(dice).await,
            7..9 => self.settle(dice).await,
            _ => self.stays_within_its_limits().await,
        }
    }

    async fn reserve(&self, tokens: Tokens) {
        let (_, receipt) = self.fleet.reserve_at(0, &named(tokens)).await;
        if let Some(receipt) = receipt {
            let settled = None;
            self.reservations.lock().unwrap().push(SharedReservation { receipt, tokens, settled });
        }
    }

    /// One of the latest reservations, which other threads pick as well. Those that are known to be settled are asked for
    /// again for a while: stores remember them for a minute.
    fn pick(&self, dice: &mut ThreadDice) -> Option<(usize, CarriedReceipt, Tokens)> {
        let all = self.reservations.lock().unwrap();
        let back = dice.below(12) as usize;
        let index = all.len().checked_sub(1 + back)?;
        let recent = |settled: Time| self.fleet.clock.now().since(settled) < RETRIED;
        if !all[index].settled.is_none_or(recent) {
            return None;
        }
        Some((index, all[index].receipt.clone(), all[index].tokens))
    }

    async fn extend(&self, dice: &mut ThreadDice) {
        let Some((index, receipt, _)) = self.pick(dice) else { return };
        let engine = if index.is_multiple_of(2) { &self.fleet.here } else { &self.fleet.there };
        let more = [dice.below(40), dice.below(20)];
        if let Extension::Granted(_, next) = engine.extend(opened(&receipt), &named(more)).await.unwrap() {
            let one = &mut self.reservations.lock().unwrap()[index];
            one.receipt = carried(*next);
            one.tokens.iter_mut().zip(more).for_each(|(all, more)| *all += more);
            assert!(one.settled.is_none(), "settled before it was extended");
        }
    }

    async fn settle(&self, dice: &mut ThreadDice) {
        let Some((index, receipt, tokens)) = self.pick(dice) else { return };
        let engine = if dice.below(2) == 0 { &self.fleet.here } else { &self.fleet.there };
        let more = if self.above { 50 } else { 0 };
        let actual = tokens.map(|estimate| dice.below(estimate + 1 + more));
        let settled = engine.settle_costs(opened(&receipt), &named(actual)).await.unwrap();
        if !settled.repeated {
            let one = &mut self.reservations.lock().unwrap()[index];
            assert!(one.settled.replace(self.fleet.clock.now()).is_none(), "settled twice");
            one.tokens = actual;
        }
    }

    async fn stays_within_its_limits(&self) {
        let usage = self.fleet.usage().await;
        let within = usage.iter().zip(MOST).all(|(used, most)| *used <= most);
        assert!(within || self.above, "{usage:?} of {MOST:?}");
    }

    /// What was used by all reservations, in the order of the rules.
    fn sums(&self) -> [u64; 3] {
        let all = self.reservations.lock().unwrap();
        let [input, output] = [0, 1].map(|meter| all.iter().map(|one| one.tokens[meter]).sum::<u64>());
        [input, input + 4 * output, output]
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

async fn ends_with_exact_sums(run: &ThreadedRun) {
    let usage = run.fleet.usage().await;
    assert_eq!(usage[..3], run.sums(), "what was reserved, extended and settled");
    run.fleet.clock.advance(TTL);
    assert_eq!(run.fleet.usage().await[3], 0, "every slot comes back");
    let all = run.reservations.lock().unwrap().len();
    assert!(all > 100, "{all} reservations were granted");
    for index in 0..all {
        let (receipt, settled) = {
            let one = &run.reservations.lock().unwrap()[index];
            (one.receipt.clone(), one.settled.is_some())
        };
        if !settled {
            let late = run.fleet.there.settle_costs(opened(&receipt), &named([0, 0])).await.unwrap();
            assert!(!late.repeated, "an expired slot does not settle a reservation");
            run.reservations.lock().unwrap()[index].tokens = [0, 0];
        }
    }
    assert_eq!(run.fleet.usage().await, [&run.sums()[..], &[0]].concat(), "late settlements are exact");
}

fn holds(above: bool) {
    let run = ThreadedRun::new(above);
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let run = &run;
            scope.spawn(move || run.thread(number));
        }
    });
    runtime().block_on(ends_with_exact_sums(&run));
}

#[test]
fn threads_that_settle_at_less_never_pass_a_limit() {
    holds(false);
}

#[test]
fn threads_that_settle_at_more_are_charged_exactly_that() {
    holds(true);
}
