//! Where rules meet buckets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::timeout;
use tollgate_core::{Charge, Clock, ManualClock, Outcome, Purpose, Request, Span, Time};
use tollgate_rules::ruleset::{Charges, RequestError, RuleSet};
use tollgate_store::{Memory, MemoryConfig, MonotonicClock, Outcomes, Store, StoreError, StoreErrorKind, Taken};

use crate::decision::{Decision, Mode, Ruling, Verdict, deciding};
use crate::generation::Generations;
use crate::switch::{Lever, Switch};
use crate::wait::{RealTime, Sleep};
use crate::{Limiter, Observer, Pinned, lot, patience};

/// How an engine behaves beyond its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// How long the store may take to decide. Default 25 ms.
    pub within: Span,
    /// How long a decision may take, whatever the store does: what has not been answered by then is decided by policy.
    /// Default 50 ms. Told by Tokio's timer, which a store that answers at once never needs.
    pub deadline: Span,
    /// How many nodes share the limits, where the store does not know: each takes one part while the store is away.
    /// Default 1.
    pub nodes: u64,
    /// Memory for the buckets used while the store is away.
    pub fallback: MemoryConfig,
}

impl Default for EngineConfig {
    fn default() -> Self {
        let fallback = MemoryConfig { max_memory: 64 << 20, ..MemoryConfig::default() };
        EngineConfig { within: Span::from_millis(25), deadline: Span::from_millis(50), nodes: 1, fallback }
    }
}

/// Most requests that are decided together.
const REQUESTS_MAX: usize = 1024;

/// Decides requests: one generation of rules, one store, never an error.
pub struct Engine<S> {
    pub(crate) store: S,
    pub(crate) generations: Generations,
    /// Buckets for while the store is away. They live on across its comings and goings, so a flapping store does not
    /// hand out fresh shares.
    pub(crate) fallback: Memory,
    pub(crate) config: EngineConfig,
    pub(crate) sleep: Arc<dyn Sleep>,
    pub(crate) observer: Option<Box<dyn Observer>>,
    lever: Lever,
    /// Tells the wall time, for rules with dates. Decisions use the store's.
    clock: Arc<dyn Clock>,
}

/// Requests whose store has to be waited for: what they ask is known, nobody was asked yet. Dropped, it charges nothing.
#[derive(Debug)]
pub struct Undecided {
    pinned: Pinned,
    charges: Box<Charges>,
}

/// Why nobody is asked about requests.
pub(crate) enum Unasked {
    /// One of them cannot be read.
    Unreadable(RequestError),
    /// Limits are switched off.
    Off,
}

impl From<RequestError> for Unasked {
    fn from(error: RequestError) -> Unasked {
        Unasked::Unreadable(error)
    }
}

impl Undecided {
    #[cold]
    fn new(pinned: Pinned, charges: Charges) -> Undecided {
        Undecided { pinned, charges: Box::new(charges) }
    }
}

impl Engine<Memory> {
    /// An engine that keeps its buckets in this process.
    pub fn in_memory(rules: RuleSet) -> Engine<Memory> {
        Engine::new(Memory::default(), rules)
    }

    /// An in-memory engine on a manual clock, for tests: time stands still, and waiting moves it on.
    pub fn on_clock(rules: RuleSet, clock: ManualClock) -> Engine<Memory> {
        let clock = Arc::new(clock);
        let memory = Memory::with_clock(MemoryConfig::default(), clock.clone());
        Engine { sleep: clock.clone(), ..Engine::with_clock(memory, rules, clock) }
    }

    /// [`decide`](Engine::decide), at once.
    #[inline]
    pub fn decide_now(&self, request: &Request<'_>) -> Decision {
        self.decide_all_now(std::slice::from_ref(request))
    }

    /// [`decide_all`](Engine::decide_all), at once.
    #[inline]
    pub fn decide_all_now(&self, requests: &[Request<'_>]) -> Decision {
        match self.try_decide(requests) {
            Ok(decision) => decision,
            Err(_) => unreachable!("memory never waits"),
        }
    }
}

impl<S: Store> Engine<S> {
    /// An engine over a store.
    pub fn new(store: S, rules: RuleSet) -> Engine<S> {
        Engine::with_clock(store, rules, Arc::new(MonotonicClock::new()))
    }

    /// The same on a given clock: the store's own, so that both tell one time.
    pub fn with_clock(store: S, rules: RuleSet, clock: Arc<dyn Clock>) -> Engine<S> {
        let config = EngineConfig::default();
        Engine {
            store,
            generations: Generations::new(rules),
            fallback: Memory::with_clock(config.fallback, clock.clone()),
            config,
            sleep: Arc::new(RealTime),
            observer: None,
            lever: Lever::default(),
            clock,
        }
    }

    /// The same engine with another configuration. Fallback buckets start anew.
    pub fn with_config(self, config: EngineConfig) -> Engine<S> {
        let fallback = Memory::with_clock(config.fallback, self.clock.clone());
        Engine { config, fallback, ..self }
    }

    /// The same engine before its rules: whatever is swapped in first is its first generation, or the one whose number
    /// it is given.
    pub fn awaiting_rules(self) -> Engine<S> {
        Engine { generations: Generations::awaited(), ..self }
    }

    /// The same engine with someone watching.
    pub fn with_observer(self, observer: impl Observer + 'static) -> Engine<S> {
        Engine { observer: Some(Box::new(observer)), ..self }
    }

    /// Decides one request.
    pub async fn decide(&self, request: &Request<'_>) -> Decision {
        self.decide_all(std::slice::from_ref(request)).await
    }

    /// Decides several requests together: all pass and all are charged, or none. [`Ruling::request`] tells whose each
    /// ruling is.
    pub async fn decide_all(&self, requests: &[Request<'_>]) -> Decision {
        match self.try_decide(requests) {
            Ok(decision) => decision,
            // Boxed: what waits for a network is large, and those who do not wait should not carry it around.
            Err(undecided) => Box::pin(self.decide_later(requests, undecided)).await,
        }
    }

    /// [`decide_all`](Engine::decide_all), if nobody has to be waited for; otherwise what is left to be decided
    /// [later](Engine::decide_later).
    #[inline]
    pub fn try_decide(&self, requests: &[Request<'_>]) -> Result<Decision, Undecided> {
        let mut charges = Charges::default();
        let pinned = self.generations.pin();
        let decision = match self.charges(&pinned, requests, &mut charges) {
            Err(unasked) => self.answer(pinned, unasked),
            Ok(()) => {
                let mut outcomes = Outcomes::new();
                match self.take_now(&charges, &mut outcomes) {
                    Some(taken) => match self.try_other_parts(&pinned, requests, &mut charges, &mut outcomes, taken) {
                        Some(taken) => conclude(pinned, &charges, taken, &outcomes),
                        None => return Err(Undecided::new(pinned, charges)),
                    },
                    None => return Err(Undecided::new(pinned, charges)),
                }
            }
        };
        self.observe(requests, &decision);
        Ok(decision)
    }

    /// Decides what could not be decided at once, within the deadline. Large while it waits: box it once, where it
    /// begins.
    pub async fn decide_later(&self, requests: &[Request<'_>], undecided: Undecided) -> Decision {
        let decision = self.await_store(requests, undecided).await;
        self.observe(requests, &decision);
        decision
    }

    async fn await_store(&self, requests: &[Request<'_>], undecided: Undecided) -> Decision {
        let Undecided { pinned, mut charges } = undecided;
        let mut outcomes = Outcomes::new();
        match self.ask_in_time(&charges.charges, &mut outcomes).await {
            Ok(taken) => {
                let taken = self.ask_other_parts(&pinned, requests, &mut charges, &mut outcomes, taken).await;
                conclude(pinned, &charges, taken, &outcomes)
            }
            Err(error) => {
                self.undivide(&pinned, requests, &mut charges);
                self.fall_back(pinned, &charges, &error).decision
            }
        }
    }

    /// What [`decide`](Engine::decide) would say, for somebody who only looks: nothing is charged, nobody is told.
    pub async fn look(&self, request: &Request<'_>) -> Decision {
        self.look_at_all(std::slice::from_ref(request)).await
    }

    /// The same for what [`decide_all`](Engine::decide_all) would say.
    pub async fn look_at_all(&self, requests: &[Request<'_>]) -> Decision {
        let mut looks: SmallVec<[Request<'_>; 4]> = SmallVec::from_slice(requests);
        looks.iter_mut().filter(|look| look.purpose != Purpose::Mention).for_each(|look| *look = look.peek());
        let mut charges = Charges::default();
        let pinned = self.generations.pin();
        let mut outcomes = Outcomes::new();
        match self.charges(&pinned, &looks, &mut charges) {
            Err(unasked) => self.answer(pinned, unasked),
            Ok(()) => match self.take(&charges, &mut outcomes).await {
                Ok(taken) => {
                    let taken = self.ask_other_parts(&pinned, &looks, &mut charges, &mut outcomes, taken).await;
                    conclude(pinned, &charges, taken, &outcomes)
                }
                Err(error) => {
                    self.undivide(&pinned, &looks, &mut charges);
                    self.fall_back(pinned, &charges, &error).decision
                }
            },
        }
    }

    /// Swaps new rules in. Requests under way finish under the old ones; buckets keep their usage where window and
    /// algorithm stay the same. Answers the new generation's number.
    pub fn swap_rules(&self, rules: RuleSet) -> u64 {
        self.swap_rules_as(rules, 0)
    }

    /// The same under a number that others know too: `at_least`, or the next one if that has passed already. Numbers
    /// only ever grow.
    pub fn swap_rules_as(&self, rules: RuleSet, at_least: u64) -> u64 {
        self.generations.swap(rules, at_least)
    }

    /// Turns the [kill switch](Switch): from the next decision on. Needs neither store nor rules.
    pub fn set_switch(&self, switch: Switch) {
        self.lever.set(switch);
    }

    /// How the kill switch stands.
    #[inline]
    pub fn switch(&self) -> Switch {
        self.lever.get()
    }

    /// The present rules.
    pub fn rules(&self) -> Pinned {
        self.generations.pin()
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Something to wait on: acquires units for `request`, as often as they are to be had.
    pub fn limiter<'a>(&'a self, request: Request<'a>) -> Limiter<'a, S> {
        Limiter::new(self, request)
    }

    /// Forgets all usage of the buckets that `request` would be charged to, all sub-buckets of rules with shards
    /// included. For operators.
    pub async fn forget(&self, request: &Request<'_>) -> Result<(), StoreError> {
        let pinned = self.generations.pin();
        let shards = pinned.rules.rules().iter().map(|rule| rule.parts()).max().unwrap_or(1);
        let mut buckets: Vec<Charge> = Vec::new();
        for lot in 0..shards {
            let mut charges = Charges::default();
            charges.random = lot;
            charges.identities = self.store.is_shared();
            if pinned.rules.charges(request, self.clock.wall(), &mut charges).is_err() {
                return Ok(());
            }
            buckets.extend(&charges.charges);
        }
        buckets.sort_unstable_by_key(|charge| charge.bucket);
        buckets.dedup_by_key(|charge| charge.bucket);
        self.store.forget(&buckets).await
    }

    /// Adds up what is to be asked of the store, unless nothing is.
    pub(crate) fn charges(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        charges: &mut Charges,
    ) -> Result<(), Unasked> {
        self.charges_by_lot(pinned, requests, lot::spread(), charges)
    }

    /// The same where `lot` chooses among the parts of rules with shards.
    pub(crate) fn charges_by_lot(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        lot: u64,
        charges: &mut Charges,
    ) -> Result<(), Unasked> {
        let switch = self.switch();
        if requests.len() > REQUESTS_MAX {
            return Err(RequestError::too_many(REQUESTS_MAX).into());
        }
        if switch == Switch::Off {
            requests.iter().try_for_each(|request| pinned.rules.readable(request))?;
            return Err(Unasked::Off);
        }
        let wall = if pinned.rules.is_dated() { self.clock.wall() } else { Time::ZERO };
        charges.random = lot;
        charges.identities = self.store.is_shared();
        charges.shadowed = switch == Switch::Shadow;
        Ok(pinned.rules.charges_of_all(requests, wall, charges)?)
    }

    /// What the store says at once, if it can.
    #[inline]
    fn take_now(&self, charges: &Charges, outcomes: &mut Outcomes) -> Option<Taken> {
        match charges.charges.is_empty() {
            true => Some(self.at_once()),
            false => self.store.try_take(&charges.charges, outcomes),
        }
    }

    pub(crate) async fn take(&self, charges: &Charges, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        match self.take_now(charges, outcomes) {
            Some(taken) => Ok(taken),
            None => Box::pin(self.ask_in_time(&charges.charges, outcomes)).await,
        }
    }

    /// Asks the store: at once where it needs nobody for its answer, within the deadline where it does.
    pub(crate) async fn ask(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        match self.store.try_take(charges, outcomes) {
            Some(taken) => Ok(taken),
            // Boxed: what waits for a network is large, and those who do not wait should not carry it around.
            None => Box::pin(self.ask_in_time(charges, outcomes)).await,
        }
    }

    async fn ask_in_time(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        let EngineConfig { within, deadline, .. } = self.config;
        let (within, deadline) = (patience::at_most(within.min(deadline)), patience::at_most(deadline));
        if within.is_zero() {
            let detail = "the caller does not wait any longer".to_owned();
            return Err(StoreError { kind: StoreErrorKind::Unavailable, detail });
        }
        let asked = self.store.take(charges, within, outcomes);
        timeout(Duration::from(deadline), asked).await.unwrap_or_else(|_| {
            let detail = "no answer by the deadline of the decision".to_owned();
            Err(StoreError { kind: StoreErrorKind::Indeterminate, detail })
        })
    }

    /// The decision about requests for which nobody is asked.
    #[cold]
    pub(crate) fn answer(&self, generation: Pinned, unasked: Unasked) -> Decision {
        let (verdict, mode) = match unasked {
            Unasked::Unreadable(error) => (Verdict::Invalid(Box::new(error)), Mode::Store),
            Unasked::Off => (Verdict::Allow, Mode::Off),
        };
        let Taken { now, wall, .. } = self.at_once();
        Decision { verdict, mode, now, wall, rulings: SmallVec::new(), deciding: None, generation }
    }

    /// What nobody has to be asked about passes, at the time of this node.
    pub(crate) fn at_once(&self) -> Taken {
        let now = self.clock.now();
        Taken { allowed: true, now, wall: self.clock.wall_at(now) }
    }

    #[inline]
    pub(crate) fn observe(&self, requests: &[Request<'_>], decision: &Decision) {
        if let Some(observer) = &self.observer {
            observer.decided(requests, decision);
        }
    }
}

/// The decision from what the store said.
#[inline]
pub(crate) fn conclude(generation: Pinned, charges: &Charges, taken: Taken, outcomes: &[Outcome]) -> Decision {
    let mut mode = Mode::Store;
    let mut rulings: SmallVec<[Ruling; 4]> = SmallVec::new();
    for applied in &charges.applied {
        let place = applied.charge.map(usize::from);
        let outcome = place.and_then(|place| outcomes.get(place).copied());
        let limit = place.and_then(|place| charges.charges.get(place)).map(|charge| &charge.limit);
        let (requests, window) = limit.map_or((0, Span::ZERO), |limit| (limit.requests(), limit.window()));
        let own = outcome.map_or(Mode::Store, |outcome| Mode::from(outcome.source));
        let enforced = generation.rules.rule(applied.rule).is_some_and(|rule| charges.enforces(rule));
        mode = mode.max(own);
        rulings.push(Ruling {
            rule: applied.rule,
            request: applied.request,
            enforced,
            mode: own,
            outcome,
            requests,
            window,
            bucket: applied.charge,
        });
    }
    Decision {
        verdict: if taken.allowed { Verdict::Allow } else { Verdict::Deny },
        mode,
        now: taken.now,
        wall: taken.wall,
        deciding: deciding(&rulings, taken.allowed),
        rulings,
        generation,
    }
}

impl<S: fmt::Debug> fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Engine { store, config, .. } = self;
        f.debug_struct("Engine").field("store", store).field("config", config).finish_non_exhaustive()
    }
}
