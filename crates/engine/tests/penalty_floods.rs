//! Penalties with a shared store some milliseconds away: a flood of other clients does not hide the denials of one.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;
use tollgate_core::{Ask, Attribute, Charge, Limit, ManualClock, Receipt, Request, Span, Time};
use tollgate_engine::{Decision, Engine, Observer, Penalty, UncountedReason, rules_from_yaml};
use tollgate_store::{Memory, MemoryConfig, Outcomes, Store, StoreError, Taken};

const RULES: &str = "
key_by: user_id
rules:
  - name: guarded
    limit: { requests: 1, window: 1h, algorithm: fixed_window }
    penalty: { after: 20, within: 1m, block: 1h }
";
const ROUND_TRIP: Duration = Duration::from_millis(4);

/// A store that decides at once and counts denials after a round trip.
struct Far {
    memory: Memory,
    calls: Arc<AtomicU64>,
}

impl Store for Far {
    async fn take(&self, charges: &[Charge], _: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let _ = timeout(ROUND_TRIP, pending::<()>()).await;
        outcomes.clear();
        Ok(self.memory.take_now(charges, outcomes))
    }

    fn try_take(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Option<Taken> {
        let counts =
            |charge: &Charge| matches!((&charge.limit, charge.ask), (Limit::SlidingLog(_), _) | (_, Ask::Force(_)));
        if charges.iter().any(counts) {
            return None;
        }
        outcomes.clear();
        Some(self.memory.take_now(charges, outcomes))
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        self.memory.give_back(receipts).await
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        self.memory.forget(buckets).await
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[derive(Clone, Default)]
struct Seen {
    penalised: Arc<Mutex<Vec<String>>>,
    uncounted: Arc<AtomicU64>,
}

impl Observer for Seen {
    fn decided(&self, _: &[Request<'_>], _: &Decision, _: &[Charge]) {}

    fn client_of(&self, request: &Request<'_>) -> String {
        request.get(Attribute::UserId).unwrap_or_default().to_owned()
    }

    fn penalised(&self, penalty: &Penalty) {
        self.penalised.lock().push(penalty.client.clone());
    }

    fn denials_uncounted(&self, count: u64, _: UncountedReason) {
        self.uncounted.fetch_add(count, Ordering::Relaxed);
    }
}

struct Node {
    engine: Arc<Engine<Far>>,
    clock: ManualClock,
    calls: Arc<AtomicU64>,
    seen: Seen,
}

impl Node {
    /// A node whose denials are counted by a task.
    fn start() -> Node {
        let (clock, calls, seen) = (ManualClock::at(Time::from_secs(1_800_000_000)), Arc::default(), Seen::default());
        let memory = Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone()));
        let store = Far { memory, calls: Arc::clone(&calls) };
        let engine = Engine::with_clock(store, rules_from_yaml(RULES).unwrap(), Arc::new(clock.clone()));
        let engine = Arc::new(engine.with_observer(seen.clone()));
        let counting = engine.clone();
        tokio::spawn(async move { counting.run_penalties().await });
        Node { engine, clock, calls, seen }
    }

    fn ask(&self, user: &str) {
        let request = Request::new().with(Attribute::UserId, user);
        assert!(self.engine.try_decide(&[request]).is_ok(), "decided at once");
    }

    async fn wait(&self, millis: u64) {
        self.clock.advance(Span::from_millis(millis));
        let _ = timeout(Duration::from_millis(millis), pending::<()>()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn sixty_denials_of_a_client_count_among_fifteen_hundred_a_second() {
    let node = Node::start();
    let mut user = 0;
    for milli in 0..6_000 {
        for _ in 0..1 + milli % 2 {
            user += 1;
            let user = format!("flood-{user}");
            node.ask(&user);
            node.ask(&user);
        }
        if milli % 100 == 0 {
            node.ask("hammering");
        }
        node.wait(1).await;
    }
    assert_eq!(*node.seen.penalised.lock(), ["hammering"]);
    assert_eq!(node.seen.uncounted.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_denials_of_a_client_are_one_call() {
    let node = Node::start();
    (0..1_001).for_each(|_| node.ask("hammering"));
    node.wait(100).await;
    assert_eq!(*node.seen.penalised.lock(), ["hammering"]);
    assert_eq!(node.calls.load(Ordering::Relaxed), 3, "the denials, the number of the penalty, and its block");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_counted_is_reported() {
    let node = Node::start();
    for user in 0..6_000 {
        let user = format!("flood-{user}");
        node.ask(&user);
        node.ask(&user);
    }
    assert_eq!(node.seen.uncounted.load(Ordering::Relaxed), 6_000 - 4_096);
}
