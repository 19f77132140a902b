//! A store that counts its calls, and engines over it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tollgate_core::{Attribute, Charge, Enforcement, ManualClock, Receipt, Request, Span, Time};
use tollgate_engine::{Decision, Engine, Extension, Reservation, random_slot};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::{Memory, MemoryConfig, Outcomes, Store, StoreError, StoreErrorKind, Taken};

/// Requests, tokens in and out, credits and slots of one user.
pub const RULES: &str = "rules:
  - { name: requests, key_by: user_id, limit: { requests: 10, window: 1h, algorithm: fixed_window } }
  - { name: input, key_by: user_id, meter: input_tokens, limit: { amount: 1000, window: 1h, algorithm: fixed_window } }
  - { name: output, key_by: user_id, meter: output_tokens, limit: { amount: 500, window: 1h, algorithm: fixed_window } }
  - name: credits
    key_by: user_id
    meter: { input_tokens: 1, output_tokens: 4 }
    limit: { amount: 3000, window: 1h, algorithm: fixed_window }
  - { name: flight, key_by: user_id, limit: { algorithm: concurrency, slots: 2, slot_ttl: 60s } }
";

/// Buckets that several engines share. Calls are counted, and fail while it is away.
#[derive(Clone)]
pub struct SharedStore(Arc<CountedMemory>);

struct CountedMemory {
    memory: Memory,
    takes: AtomicUsize,
    refunds: AtomicUsize,
    away: AtomicBool,
}

impl SharedStore {
    fn new(clock: &ManualClock) -> SharedStore {
        let memory = Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone()));
        let (takes, refunds, away) = Default::default();
        SharedStore(Arc::new(CountedMemory { memory, takes, refunds, away }))
    }

    pub fn set_away(&self, away: bool) {
        self.0.away.store(away, Ordering::Relaxed);
    }

    /// Calls of `take` and of `give_back` since the last time.
    pub fn calls(&self) -> (usize, usize) {
        (self.0.takes.swap(0, Ordering::Relaxed), self.0.refunds.swap(0, Ordering::Relaxed))
    }

    fn answers(&self) -> Result<(), StoreError> {
        match self.0.away.load(Ordering::Relaxed) {
            true => Err(StoreError { kind: StoreErrorKind::Unavailable, detail: "connection refused".to_owned() }),
            false => Ok(()),
        }
    }
}

impl Store for SharedStore {
    async fn take(&self, charges: &[Charge], _: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        self.answers()?;
        self.0.takes.fetch_add(1, Ordering::Relaxed);
        Ok(self.0.memory.take_now(charges, outcomes))
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        self.answers()?;
        self.0.refunds.fetch_add(1, Ordering::Relaxed);
        Ok(self.0.memory.give_back_now(receipts))
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        self.0.memory.forget_now(buckets);
        Ok(())
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// Two nodes over one store.
pub struct TwoNodes {
    pub clock: ManualClock,
    pub store: SharedStore,
    pub here: Engine<SharedStore>,
    pub there: Engine<SharedStore>,
}

fn rules(yaml: &str) -> RuleSet {
    let file = tollgate_rules::read("rules.yaml", yaml).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile")
}

pub fn fleet(yaml: &str) -> TwoNodes {
    let clock = ManualClock::at(Time::from_secs(1_800_000_000));
    let store = SharedStore::new(&clock);
    let node = || Engine::with_clock(store.clone(), rules(yaml), Arc::new(clock.clone()));
    TwoNodes { here: node(), there: node(), clock, store }
}

pub fn user<'a>(costs: &'a [(&'a str, u64)]) -> Request<'a> {
    Request::new().with(Attribute::UserId, "1").with_costs(costs)
}

/// Estimates of a request that streams tokens.
pub const STREAM: [(&str, u64); 2] = [("input_tokens", 100), ("output_tokens", 50)];

/// The bytes of a receipt, as a caller keeps them.
pub type CarriedReceipt = Vec<u8>;

pub fn carried(reservation: Reservation) -> CarriedReceipt {
    let mut bytes = Vec::new();
    reservation.pack(&mut bytes);
    bytes
}

pub fn opened(receipt: &[u8]) -> Reservation {
    Reservation::unpack(receipt).expect("it was packed")
}

impl TwoNodes {
    /// Reserves with a slot.
    pub async fn reserve(&self, costs: &[(&str, u64)]) -> (Decision, Option<CarriedReceipt>) {
        self.reserve_at(1, costs).await
    }

    /// The same with any number of requests.
    pub async fn reserve_at(&self, cost: u64, costs: &[(&str, u64)]) -> (Decision, Option<CarriedReceipt>) {
        let (decision, reservation) = self.here.reserve(&user(costs).cost(cost).holding(random_slot())).await;
        (decision, reservation.map(carried))
    }

    /// A reservation that passes.
    pub async fn reserved(&self, costs: &[(&str, u64)]) -> CarriedReceipt {
        self.reserve(costs).await.1.expect("there is room")
    }

    /// Usage by rule.
    pub async fn used(&self) -> Vec<(String, u64)> {
        let enforcement = self.here.enforcement();
        self.here.set_enforcement(Enforcement::Enforce);
        let rules = self.here.rules();
        let meters = rules.rules.rules().iter().flat_map(|rule| rule.spec.meter.weights()).map(|(meter, _)| meter);
        let costs: BTreeMap<&str, u64> = meters.filter(|meter| *meter != "requests").map(|meter| (meter, 0)).collect();
        let costs: Vec<(&str, u64)> = costs.into_iter().collect();
        let decision = self.here.look(&user(&costs).cost(0).holding(random_slot())).await;
        self.here.set_enforcement(enforcement);
        let name = |ruling| decision.rule(ruling).expect("the rule exists").name.clone();
        let used = decision.rulings().iter().filter_map(|ruling| Some((name(ruling), ruling.outcome?.used)));
        used.collect()
    }

    /// Usage in the order of the rules.
    pub async fn usage(&self) -> Vec<u64> {
        self.used().await.into_iter().map(|(_, used)| used).collect()
    }
}

/// The receipt of an extension that was granted.
pub fn granted(extension: Extension) -> CarriedReceipt {
    match extension {
        Extension::Granted(_, reservation) => carried(*reservation),
        other => panic!("not granted: {other:?}"),
    }
}

/// The decision about an extension that was denied, and whether a slot was lost.
pub fn denied(extension: Extension) -> (Box<Decision>, bool) {
    match extension {
        Extension::Denied { decision, slot_lost } => (decision, slot_lost),
        other => panic!("not denied: {other:?}"),
    }
}
