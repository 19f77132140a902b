//! The engine: applies rules to requests and charges the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::timeout;
use tollgate_core::{Charge, Clock, Enforcement, ManualClock, Request, Span, Time};
use tollgate_ruleset::{Charges, RequestError, RuleSet};
use tollgate_store::{Memory, MemoryConfig, MonotonicClock, Outcomes, Store, StoreError, StoreErrorKind, Taken};

use crate::conclude::conclude;
use crate::decision::{DecidedBy, Decision, Verdict};
use crate::denial_queue::DenialQueue;
use crate::generation::Generations;
use crate::sleep::{RealTime, Sleep};
use crate::switch::AtomicSwitch;
use crate::{Observer, Pinned, caller_deadline, random};

/// Settings of an engine besides its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// How long the store may take to decide. Default 25 ms.
    pub within: Span,
    /// How long a decision may take, whatever the store does: after that the failure policy of each rule decides.
    /// Default 50 ms. Measured by Tokio's timer, which is not used if the store answers synchronously.
    pub deadline: Span,
    /// How many nodes share the limits, where the store does not know: each enforces one share while the store is
    /// unavailable. Default 1.
    pub nodes: u64,
    /// Memory for the buckets used while the store is unavailable.
    pub fallback: MemoryConfig,
}

impl Default for EngineConfig {
    fn default() -> Self {
        let fallback = MemoryConfig { max_memory: 64 << 20, ..MemoryConfig::default() };
        EngineConfig { within: Span::from_millis(25), deadline: Span::from_millis(50), nodes: 1, fallback }
    }
}

/// The most requests that are decided together.
pub(crate) const REQUESTS_MAX: usize = 1024;

/// Decides requests by one generation of rules and one store; never fails.
pub struct Engine<S> {
    pub(crate) store: S,
    pub(crate) generations: Generations,
    /// Buckets used while the store is unavailable. They are kept across outages, so a flapping store does not grant
    /// fresh shares.
    pub(crate) fallback: Memory,
    pub(crate) config: EngineConfig,
    pub(crate) sleep: Arc<dyn Sleep>,
    pub(crate) observer: Option<Box<dyn Observer>>,
    /// Denials that wait to be counted towards penalties.
    pub(crate) denials: DenialQueue,
    switch: AtomicSwitch,
    /// The wall time, for rules with dates. Decisions use the time of the store.
    clock: Arc<dyn Clock>,
}

/// Requests that need an asynchronous store call, with their charges. The store was not called yet: dropping this
/// charges nothing.
#[derive(Debug)]
pub struct Undecided {
    pinned: Pinned,
    charges: Box<Charges>,
}

/// Why the store is not called for requests.
pub(crate) enum Skipped {
    /// One of them is malformed.
    Unreadable(RequestError),
    /// Limits are switched off.
    Off,
}

impl From<RequestError> for Skipped {
    fn from(error: RequestError) -> Skipped {
        Skipped::Unreadable(error)
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

    /// An in-memory engine on a manual clock, for tests: only waiting and the test move the time.
    pub fn on_clock(rules: RuleSet, clock: ManualClock) -> Engine<Memory> {
        let clock = Arc::new(clock);
        let memory = Memory::with_clock(MemoryConfig::default(), clock.clone());
        Engine { sleep: clock.clone(), ..Engine::with_clock(memory, rules, clock) }
    }

    /// [`decide`](Engine::decide), synchronously.
    #[inline]
    pub fn decide_now(&self, request: &Request<'_>) -> Decision {
        self.decide_all_now(std::slice::from_ref(request))
    }

    /// [`decide_all`](Engine::decide_all), synchronously.
    #[inline]
    pub fn decide_all_now(&self, requests: &[Request<'_>]) -> Decision {
        match self.try_decide(requests) {
            Ok(decision) => decision,
            Err(_) => unreachable!("the in-memory store is synchronous"),
        }
    }
}

impl<S: Store> Engine<S> {
    /// An engine over a store.
    pub fn new(store: S, rules: RuleSet) -> Engine<S> {
        Engine::with_clock(store, rules, Arc::new(MonotonicClock::new()))
    }

    /// An engine on a given clock, which should be the store's, so that both use the same time.
    pub fn with_clock(store: S, rules: RuleSet, clock: Arc<dyn Clock>) -> Engine<S> {
        let config = EngineConfig::default();
        Engine {
            store,
            generations: Generations::new(rules),
            fallback: Memory::with_clock(config.fallback, clock.clone()),
            config,
            sleep: Arc::new(RealTime),
            observer: None,
            denials: DenialQueue::default(),
            switch: AtomicSwitch::default(),
            clock,
        }
    }

    /// The same engine with another configuration. Fallback buckets are discarded.
    pub fn with_config(self, config: EngineConfig) -> Engine<S> {
        let fallback = Memory::with_clock(config.fallback, self.clock.clone());
        Engine { config, fallback, ..self }
    }

    /// The same engine without rules: the first rules swapped in are its first generation, or the one with the given
    /// number.
    pub fn awaiting_rules(self) -> Engine<S> {
        Engine { generations: Generations::awaited(), ..self }
    }

    /// The same engine with an observer.
    pub fn with_observer(self, observer: impl Observer + 'static) -> Engine<S> {
        Engine { observer: Some(Box::new(observer)), ..self }
    }

    /// Decides one request.
    pub async fn decide(&self, request: &Request<'_>) -> Decision {
        self.decide_all(std::slice::from_ref(request)).await
    }

    /// Decides several requests together: all pass and are charged, or none.
    /// [`Ruling::request`](crate::Ruling::request) is the index of the request of a ruling.
    pub async fn decide_all(&self, requests: &[Request<'_>]) -> Decision {
        match self.try_decide(requests) {
            Ok(decision) => decision,
            // Boxed: the future of a network call is large, and synchronous decisions should not contain it.
            Err(undecided) => Box::pin(self.decide_later(requests, undecided)).await,
        }
    }

    /// [`decide_all`](Engine::decide_all), if the store answers synchronously; otherwise what to pass to
    /// [`decide_later`](Engine::decide_later).
    #[inline]
    pub fn try_decide(&self, requests: &[Request<'_>]) -> Result<Decision, Undecided> {
        let mut charges = Charges::default();
        let decided = self.decide_unobserved(requests, &mut charges);
        if let Ok(decision) = &decided {
            self.observe(requests, decision, &charges.charges);
        }
        decided
    }

    /// [`try_decide`](Engine::try_decide), unless the requests can only be decided one by one, because they ask
    /// different things of one bucket: `None` then, nothing is charged, and the observer is not called.
    pub fn try_decide_together(&self, requests: &[Request<'_>]) -> Option<Result<Decision, Undecided>> {
        let mut charges = Charges::default();
        let decided = self.decide_unobserved(requests, &mut charges);
        if let Ok(decision) = &decided {
            if matches!(&decision.verdict, Verdict::Invalid(error) if error.is_mixed()) {
                return None;
            }
            self.observe(requests, decision, &charges.charges);
        }
        Some(decided)
    }

    #[inline]
    fn decide_unobserved(&self, requests: &[Request<'_>], charges: &mut Charges) -> Result<Decision, Undecided> {
        let pinned = self.generations.pin();
        if let Err(skipped) = self.charges(&pinned, requests, charges) {
            return Ok(self.decide_skipped(pinned, skipped));
        }
        let mut outcomes = Outcomes::new();
        let taken = self.take_now(charges, &mut outcomes);
        match taken.and_then(|taken| self.try_other_shards(&pinned, requests, charges, &mut outcomes, taken)) {
            Some(taken) => Ok(conclude(pinned, charges, taken, &outcomes)),
            None => Err(Undecided::new(pinned, std::mem::take(charges))),
        }
    }

    /// Decides what needs an asynchronous store call, within the deadline. The future is large: box it once, where it
    /// is created.
    pub async fn decide_later(&self, requests: &[Request<'_>], undecided: Undecided) -> Decision {
        let Undecided { pinned, mut charges } = undecided;
        let decision = self.await_store(requests, pinned, &mut charges).await;
        self.observe(requests, &decision, &charges.charges);
        decision
    }

    async fn await_store(&self, requests: &[Request<'_>], pinned: Pinned, charges: &mut Charges) -> Decision {
        let mut outcomes = Outcomes::new();
        match self.ask_in_time(&charges.charges, &mut outcomes).await {
            Ok(taken) => {
                let taken = self.ask_other_shards(&pinned, requests, charges, &mut outcomes, taken).await;
                conclude(pinned, charges, taken, &outcomes)
            }
            Err(error) => {
                self.merge_shards(&pinned, requests, charges);
                self.fall_back(pinned, charges, &error).decision
            }
        }
    }

    /// Replaces the rules. Requests under way finish under the old ones; buckets keep their usage where window and
    /// algorithm are unchanged. Returns the number of the new generation.
    pub fn swap_rules(&self, rules: RuleSet) -> u64 {
        self.swap_rules_as(rules, 0)
    }

    /// Replaces the rules under a number that other nodes use too: `at_least`, or the next number if that was used
    /// already. Numbers only grow.
    pub fn swap_rules_as(&self, rules: RuleSet, at_least: u64) -> u64 {
        self.generations.swap(rules, at_least)
    }

    /// Turns the kill switch, from the next decision on. Needs neither store nor rules.
    ///
    /// [`Shadow`](Enforcement::Shadow) treats every rule as a shadow rule: it decides and is counted, and never denies.
    /// Exemptions stay as the rules have them, so that what is counted is what would have been enforced.
    /// [`Off`](Enforcement::Off) evaluates no rule, charges nothing and does not call the store: every valid request is
    /// allowed.
    pub fn set_enforcement(&self, enforcement: Enforcement) {
        self.switch.set(enforcement);
    }

    /// The position of the kill switch.
    #[inline]
    pub fn enforcement(&self) -> Enforcement {
        self.switch.get()
    }

    /// The current rules.
    pub fn rules(&self) -> Pinned {
        self.generations.pin()
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Computes the charges of the requests, unless the store need not be called.
    pub(crate) fn charges(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        charges: &mut Charges,
    ) -> Result<(), Skipped> {
        self.charges_with_shard(pinned, requests, random::fast(), charges)
    }

    /// Computes the charges of the requests; `shard` selects the shard of rules with shards.
    pub(crate) fn charges_with_shard(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        shard: u64,
        charges: &mut Charges,
    ) -> Result<(), Skipped> {
        if requests.len() > REQUESTS_MAX {
            return Err(RequestError::too_many(REQUESTS_MAX).into());
        }
        if self.enforcement() == Enforcement::Off {
            requests.iter().try_for_each(|request| pinned.rules.readable(request))?;
            return Err(Skipped::Off);
        }
        Ok(self.collect(pinned, requests, shard, charges)?)
    }

    #[inline]
    pub(crate) fn collect(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        shard: u64,
        charges: &mut Charges,
    ) -> Result<(), RequestError> {
        let wall = if pinned.rules.is_dated() { self.clock.wall() } else { Time::ZERO };
        charges.random = shard;
        charges.identities = self.store.is_shared();
        charges.shadowed = self.enforcement() == Enforcement::Shadow;
        pinned.rules.charges_of_all(requests, wall, charges)
    }

    /// Takes the charges, if the store answers synchronously.
    #[inline]
    pub(crate) fn take_now(&self, charges: &Charges, outcomes: &mut Outcomes) -> Option<Taken> {
        match charges.charges.is_empty() {
            true => Some(self.allow_now()),
            false => self.store.try_take(&charges.charges, outcomes),
        }
    }

    pub(crate) async fn take(&self, charges: &Charges, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        match self.take_now(charges, outcomes) {
            Some(taken) => Ok(taken),
            None => Box::pin(self.ask_in_time(&charges.charges, outcomes)).await,
        }
    }

    /// Calls the store: synchronously if it can answer so, otherwise within the deadline.
    pub(crate) async fn ask(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        match self.store.try_take(charges, outcomes) {
            Some(taken) => Ok(taken),
            // Boxed: the future of a network call is large, and synchronous decisions should not contain it.
            None => Box::pin(self.ask_in_time(charges, outcomes)).await,
        }
    }

    async fn ask_in_time(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        let EngineConfig { within, deadline, .. } = self.config;
        let (within, deadline) = (caller_deadline::cap(within.min(deadline)), caller_deadline::cap(deadline));
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

    /// The decision about requests for which the store is not called.
    #[cold]
    pub(crate) fn decide_skipped(&self, generation: Pinned, skipped: Skipped) -> Decision {
        let (verdict, decided_by) = match skipped {
            Skipped::Unreadable(error) => (Verdict::Invalid(Box::new(error)), DecidedBy::Store),
            Skipped::Off => (Verdict::Allow, DecidedBy::Off),
        };
        let Taken { now, wall, .. } = self.allow_now();
        let nonce = random::fast();
        Decision { verdict, decided_by, now, wall, rulings: SmallVec::new(), deciding: None, generation, nonce }
    }

    /// The wall time of this node.
    pub(crate) fn wall(&self) -> Time {
        self.clock.wall()
    }

    /// Allows requests without charges, at the time of this node.
    pub(crate) fn allow_now(&self) -> Taken {
        let now = self.clock.now();
        Taken { allowed: true, now, wall: self.clock.wall_at(now) }
    }

    #[inline]
    pub(crate) fn observe(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        if let Some(observer) = &self.observer {
            observer.decided(requests, decision, charges);
        }
        if !decision.is_allowed() && decision.generation.has_penalties() {
            self.count_denials(requests, decision, charges);
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Engine { store, config, .. } = self;
        f.debug_struct("Engine").field("store", store).field("config", config).finish_non_exhaustive()
    }
}
