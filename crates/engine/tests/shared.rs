//! A slow store that other nodes share: deadlines, shares, and receipts that any node may settle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::time::{Duration, Instant};
use tollgate_core::{Attribute, Charge, Receipt, Request, Sharing, Span};
use tollgate_engine::{DecidedBy, Engine, EngineConfig, Reservation, Settled};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::{Fleet, FleetConfig, Memory, MonotonicClock, Outcomes, Store, StoreError, StoreErrorKind, Taken};

/// The state of the network.
#[derive(Clone, Copy)]
enum Network {
    Up,
    /// Calls fail before they reach the store.
    Down,
    /// Calls reach the store, and no reply arrives.
    Silent,
    /// Calls reach the store, and the connection is reset.
    Reset,
}

/// Buckets behind a network.
#[derive(Default)]
struct Distant {
    memory: Memory,
    network: AtomicU8,
    /// Charges with exact sharing.
    exact: AtomicUsize,
}

#[derive(Clone, Default)]
struct Node(Arc<Distant>);

impl Node {
    fn set_network(&self, network: Network) {
        self.0.network.store(network as u8, Ordering::Relaxed);
    }

    async fn cross(&self) -> Result<bool, StoreError> {
        tokio::task::yield_now().await;
        match self.0.network.load(Ordering::Relaxed) {
            network if network == Network::Up as u8 => Ok(true),
            network if network == Network::Down as u8 => {
                Err(StoreError { kind: StoreErrorKind::Unavailable, detail: "connection refused".to_owned() })
            }
            _ => Ok(false),
        }
    }

    async fn lose<T>(&self) -> Result<T, StoreError> {
        if self.0.network.load(Ordering::Relaxed) == Network::Silent as u8 {
            std::future::pending::<()>().await;
        }
        Err(StoreError { kind: StoreErrorKind::Indeterminate, detail: "connection reset".to_owned() })
    }
}

impl Store for Node {
    async fn take(&self, charges: &[Charge], _: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        let answers = self.cross().await?;
        let exact = charges.iter().filter(|charge| charge.sharing == Sharing::Exact).count();
        self.0.exact.fetch_add(exact, Ordering::Relaxed);
        let taken = self.0.memory.take_now(charges, outcomes);
        if answers { Ok(taken) } else { self.lose().await }
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        let answers = self.cross().await?;
        let given = self.0.memory.give_back_now(receipts);
        if answers { Ok(given) } else { self.lose().await }
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        self.cross().await?;
        self.0.memory.forget_now(buckets);
        Ok(())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn nodes(&self) -> Option<u64> {
        Some(4)
    }
}

const RULE: &str = "rules: [{ key_by: user_id, limit: { requests: 100, window: 1h, algorithm: fixed_window } }]";

fn engine(rules: &str, store: &Node) -> Engine<Node> {
    let file = tollgate_rules::read("rules.yaml", rules).unwrap_or_else(|report| panic!("{report}"));
    let rules = RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile");
    Engine::new(store.clone(), rules)
}

fn user() -> Request<'static> {
    Request::new().with(Attribute::UserId, "1")
}

/// The bytes of a receipt that a caller carries from one node to another.
fn carried(reservation: Option<Reservation>) -> Vec<u8> {
    let mut bytes = Vec::new();
    reservation.expect("it was admitted").pack(&mut bytes);
    bytes
}

fn opened(bytes: &[u8]) -> Reservation {
    Reservation::unpack(bytes).expect("it was packed")
}

#[test]
fn a_decision_in_memory_is_ready_at_the_first_poll() {
    let engine = Engine::in_memory(tollgate_engine::rules_from_yaml(RULE).expect("the rules compile"));
    let (request, mut context) = (user(), Context::from_waker(Waker::noop()));
    let mut deciding = std::pin::pin!(engine.decide(&request));
    assert!(matches!(deciding.as_mut().poll(&mut context), Poll::Ready(decision) if decision.is_allowed()));
}

#[tokio::test(start_paused = true)]
async fn p15_a_store_that_never_answers_is_waited_for_until_the_deadline() {
    let store = Node::default();
    let engine = engine(RULE, &store);
    store.set_network(Network::Silent);
    let start = Instant::now();
    let decision = engine.decide(&user()).await;
    assert_eq!((decision.decided_by, decision.is_allowed()), (DecidedBy::Fallback, true));
    assert!(start.elapsed() <= Duration::from_millis(51), "{:?}", start.elapsed());
    let hasty = engine.with_config(EngineConfig { deadline: Span::from_millis(7), ..EngineConfig::default() });
    let start = Instant::now();
    assert_eq!(hasty.reserve(&user()).await.0.decided_by, DecidedBy::Fallback);
    assert!(start.elapsed() <= Duration::from_millis(8), "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_store_reports_the_number_of_nodes() {
    let store = Node::default();
    let engine = engine(RULE, &store);
    assert_eq!(engine.decide(&user()).await.decided_by, DecidedBy::Store);
    store.set_network(Network::Down);
    let mut admitted = 0;
    for _ in 0..100 {
        admitted += u32::from(engine.decide(&user()).await.is_allowed());
    }
    assert_eq!(admitted, 25);
}

#[tokio::test]
async fn a_receipt_is_settled_at_any_node_and_once() {
    let store = Node::default();
    let (here, there) = (engine(RULE, &store), engine(RULE, &store));
    let repeated = Ok(Settled { repeated: true, ..Settled::default() });
    let low = carried(here.reserve(&user().cost(10)).await.1);
    assert_eq!(there.settle(opened(&low), 4).await, Ok(Settled { refunded: 1, ..Settled::default() }));
    assert_eq!(here.settle(opened(&low), 4).await, repeated);
    assert_eq!(here.decide(&user().cost(0)).await.remaining(), Some(96));
    let high = carried(here.reserve(&user().cost(10)).await.1);
    let above = [("requests".into(), 20)].into_iter().collect();
    assert_eq!(there.settle(opened(&high), 30).await, Ok(Settled { extended: 1, above, ..Settled::default() }));
    assert_eq!(here.settle(opened(&high), 30).await, repeated);
    assert_eq!(here.settle(opened(&high), 0).await, repeated, "settled high, then low");
    assert_eq!(here.decide(&user().cost(0)).await.remaining(), Some(66));
}

#[tokio::test]
async fn a_failed_settlement_can_be_retried() {
    let store = Node::default();
    let engine = engine(RULE, &store);
    for (cost, remaining) in [(30, 70), (0, 70)] {
        let receipt = carried(engine.reserve(&user().cost(10)).await.1);
        store.set_network(Network::Down);
        assert!(engine.settle(opened(&receipt), cost).await.is_err());
        assert!(engine.renew(&opened(&receipt)).await.is_ok(), "it holds no slot");
        store.set_network(Network::Up);
        assert!(engine.settle(opened(&receipt), cost).await.is_ok());
        assert_eq!(engine.decide(&user().cost(0)).await.remaining(), Some(remaining));
    }
}

#[tokio::test]
async fn what_may_have_been_charged_is_not_charged_again() {
    let store = Node::default();
    let engine = engine(RULE, &store);
    let receipt = carried(engine.reserve(&user().cost(10)).await.1);
    store.set_network(Network::Reset);
    assert!(engine.settle(opened(&receipt), 30).await.is_err());
    store.set_network(Network::Up);
    let again = engine.settle(opened(&receipt), 30).await;
    assert_eq!(again, Ok(Settled { repeated: true, ..Settled::default() }));
    assert_eq!(
        engine.decide(&user().cost(0)).await.remaining(),
        Some(90),
        "the turn was taken, and nothing else was charged"
    );
}

#[tokio::test]
async fn what_may_be_settled_elsewhere_is_not_reserved_from_a_lease() {
    for consistency in ["leased", "async"] {
        let rule =
            format!("rules: [{{ key_by: user_id, consistency: {consistency}, limit: {{ requests: 9, window: 1h }} }}]");
        let store = Node::default();
        let engine = engine(&rule, &store);
        assert!(engine.decide(&user()).await.is_allowed());
        assert_eq!(store.0.exact.load(Ordering::Relaxed), 0);
        let (decision, reservation) = engine.reserve(&user()).await;
        assert!(decision.is_allowed() && !reservation.expect("it was admitted").is_local());
        assert_eq!(store.0.exact.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn a_reservation_made_without_the_store_is_local() {
    let store = Node::default();
    let engine = engine(RULE, &store);
    store.set_network(Network::Down);
    assert!(engine.reserve(&user()).await.1.expect("it was admitted").is_local());
}

/// `shards` over two nodes: what a node remembers of one shard does not deny requests while another shard has room.
#[tokio::test]
async fn two_nodes_use_the_room_of_all_shards() {
    let rules = "rules: [{ key_by: global, shards: 8, limit: { requests: 24, window: 1h, algorithm: fixed_window } }]";
    let file = tollgate_rules::read("rules.yaml", rules).unwrap_or_else(|report| panic!("{report}"));
    for run in 0..40 {
        let shared = Node::default();
        let node = || {
            let fleet = Fleet::new(shared.clone(), FleetConfig::default(), Arc::new(MonotonicClock::new()));
            let rules = RuleSet::compile(std::slice::from_ref(&file), &CompileOptions::reproducible()).expect("rules");
            let patient =
                EngineConfig { within: Span::SECOND, deadline: Span::from_secs(20), ..EngineConfig::default() };
            Engine::new(fleet, rules).with_config(patient)
        };
        let (a, b, request) = (node(), node(), Request::new());
        let (mut admitted, mut refused) = (0, 0);
        while refused == 0 {
            let (of_a, of_b) = match run % 2 {
                0 => tokio::join!(a.decide(&request), b.decide(&request)),
                _ => (a.decide(&request).await, b.decide(&request).await),
            };
            for decision in [of_a, of_b] {
                admitted += u64::from(decision.is_allowed());
                refused += u64::from(!decision.is_allowed());
            }
        }
        assert_eq!(admitted, 24, "run {run}: denied while a shard had room");
        for _ in 0..50 {
            assert!(!a.decide(&request).await.is_allowed() && !b.decide(&request).await.is_allowed());
        }
    }
}
