//! One request over charges of several kinds, all or nothing.
//!
//! What this node can decide is taken for the time being; then the shared store is asked once, for the charges that are
//! its own and for what leases lack. If anybody refuses, what was taken is put back. No lock is held while the store is
//! asked, and no two locks at a time, so requests cannot wait for each other; what they can do is see units gone that
//! come back a moment later, as they would in one store if the other request had passed. A request that is dropped
//! half-way puts everything back as well; what the store granted it meanwhile is lost, never spent twice.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Enforcement, Outcome, Receipt, Source, Span, Time};

use super::Fleet;
use super::lease::{Grant, LeaseDecision, Spend, StoreAnswer};
use super::mirror::Observation;
use super::refills::Refill;
use super::route::{ChargeRoute, local_share, peeking, stays_charged};
use crate::{Outcomes, Store, StoreError, Taken};

/// A request on its way.
pub(super) struct PendingDecision<'a, S: Store> {
    fleet: &'a Fleet<S>,
    charges: &'a [Charge],
    parts: SmallVec<[PendingCharge; 4]>,
    now: Time,
    nodes: u64,
    may_ask: bool,
    /// The store did not answer.
    failed: bool,
}

/// How far one charge has come.
#[derive(Clone, Copy, Debug)]
struct PendingCharge {
    state: ChargeState,
    /// What is told, as far as it is known, and the store's time of it.
    outcome: Option<Outcome>,
    time: Time,
}

#[derive(Clone, Copy, Debug)]
enum ChargeState {
    /// The shared store decides it.
    Shared,
    /// This node's share decides it; `taken` if it was charged for the time being.
    Local { taken: bool },
    /// What this node knows decides it.
    Async { taken: bool },
    /// Decided for good, nothing to undo.
    Done,
    /// Paid by a lease, which may want more units.
    Spent { spend: Spend, refill: Option<u64> },
    /// Partly paid by a lease; the rest is the store's.
    Short { spend: Spend, missing: u64, batch: Option<u64> },
}

/// What the store is asked, and for which part.
type Asks = SmallVec<[(usize, Charge); 4]>;

impl<'a, S: Store> PendingDecision<'a, S> {
    /// Takes from leases what they have. Without `may_ask` nothing that needs the store is begun.
    pub(super) fn begin(
        fleet: &'a Fleet<S>,
        charges: &'a [Charge],
        now: Time,
        may_ask: bool,
    ) -> PendingDecision<'a, S> {
        let nodes = fleet.nodes_or_configured();
        let mut decision =
            PendingDecision { fleet, charges, parts: SmallVec::new(), now, nodes, may_ask, failed: false };
        let terms = fleet.leases.terms(nodes, may_ask);
        for charge in charges {
            let state = match ChargeRoute::of(charge) {
                ChargeRoute::Local => ChargeState::Local { taken: false },
                ChargeRoute::Async if fleet.async_buckets.has(charge, nodes) => ChargeState::Async { taken: false },
                ChargeRoute::Shared | ChargeRoute::Async => ChargeState::Shared,
                ChargeRoute::Leased(bound) => {
                    let part = PendingCharge::of(charge, fleet.leases.begin(charge, bound, now, &terms));
                    decision.parts.push(part);
                    continue;
                }
            };
            decision.parts.push(PendingCharge { state, outcome: None, time: now });
        }
        decision
    }

    /// Decides, if the store need not be asked. `None` has charged nothing.
    pub(super) fn finish_locally(mut self, outcomes: &mut Outcomes) -> Option<Taken> {
        let passes = self.consult_deny_cache();
        if !self.asks(passes).is_empty() {
            return None;
        }
        let passes = self.decide_locally(passes);
        Some(self.conclude(passes, None, outcomes))
    }

    /// Decides, asking the store where that is needed.
    pub(super) async fn finish(mut self, within: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        let passes = self.consult_deny_cache();
        let mut passes = self.decide_locally(passes);
        if !passes {
            self.put_back_leases();
        }
        let asks = self.asks(passes);
        if asks.is_empty() || (passes && self.hand_over_refills(&asks, within)) {
            return Ok(self.conclude(passes, None, outcomes));
        }
        let charges: SmallVec<[Charge; 4]> = asks.iter().map(|(_, charge)| *charge).collect();
        let mut answers = Outcomes::new();
        let (taken, seen) = match self.fleet.ask(&charges, within, &mut answers).await {
            Ok(answer) => answer,
            // Only refills were asked for: what the leases hold is good without them.
            Err(_) if passes && asks.iter().all(|(place, _)| self.is_refill(*place)) => {
                self.failed = true;
                self.drop_refills();
                return Ok(self.conclude(true, None, outcomes));
            }
            Err(error) => {
                self.failed = true;
                return Err(error); // dropping the decision puts everything back
            }
        };
        self.remember(&asks, &answers, passes && taken.allowed, seen);
        passes = self.settle(&asks, &answers, passes && taken.allowed, seen);
        Ok(self.conclude(passes, Some(taken.now), outcomes))
    }

    /// Leaves the refills to the task that runs them, where nothing else is asked; false if they are still to be asked.
    fn hand_over_refills(&self, asks: &Asks, within: Span) -> bool {
        let refills = asks.iter().map(|(_, charge)| Refill { charge: *charge, within });
        asks.iter().all(|(place, _)| self.is_refill(*place)) && self.fleet.refills.push(refills)
    }

    /// Looks up what is remembered of the charges that only the store could decide; false if somebody refuses.
    fn consult_deny_cache(&mut self) -> bool {
        let mut known: SmallVec<[(usize, Outcome, Time); 4]> = SmallVec::new();
        let mut all_known = true;
        for (place, (charge, part)) in self.charges.iter().zip(&self.parts).enumerate() {
            if part.outcome.is_none() && matches!(part.state, ChargeState::Shared | ChargeState::Short { .. }) {
                match self.fleet.deny.look(&part.asked(charge, true), self.now, self.may_ask) {
                    Some((outcome, time)) => known.push((place, outcome, time)),
                    None => all_known = false,
                }
            }
        }
        let refused_here = !self.none_refuses();
        let refused = known.iter().any(|(place, outcome, _)| !outcome.allowed && self.is_enforced(*place));
        if all_known && (refused || refused_here) {
            for (place, outcome, time) in known {
                self.put_back(place);
                if let Some(part) = self.parts.get_mut(place) {
                    *part = PendingCharge { state: ChargeState::Done, outcome: Some(outcome), time };
                }
            }
            self.fleet.note_remembered(refused);
        }
        !(refused_here || (all_known && refused))
    }

    /// Asks this node's own buckets; answers whether everybody lets the request pass.
    fn decide_locally(&mut self, passes: bool) -> bool {
        let passes = self.decide_async(passes);
        let local = |part: &PendingCharge| matches!(part.state, ChargeState::Local { .. });
        if !self.parts.iter().any(local) {
            return passes;
        }
        let own = self.charges.iter().zip(&self.parts).filter(|(_, part)| local(part));
        let charges: SmallVec<[Charge; 4]> =
            own.map(|(charge, _)| local_share(&if passes { *charge } else { peeking(charge) }, self.nodes)).collect();
        let mut outcomes = Outcomes::new();
        let taken = self.fleet.take_local(&charges, &mut outcomes);
        for (part, outcome) in self.parts.iter_mut().filter(|part| local(part)).zip(outcomes) {
            part.state = ChargeState::Local { taken: passes && taken.allowed };
            part.outcome = Some(Outcome { source: Source::Local, ..outcome });
            part.time = taken.now;
        }
        passes && taken.allowed
    }

    fn decide_async(&mut self, passes: bool) -> bool {
        let now = self.fleet.store_time(self.now);
        let mut all = passes;
        for (charge, part) in self.charges.iter().zip(&mut self.parts) {
            if let ChargeState::Async { taken } = &mut part.state {
                part.outcome = self.fleet.async_buckets.take(charge, now, all);
                part.time = now;
                let allowed = part.outcome.is_none_or(|outcome| outcome.allowed) || !charge.is_enforced();
                *taken = all && part.outcome.is_some_and(|outcome| outcome.granted > 0);
                all &= allowed;
            }
        }
        all
    }

    /// What the store has to be asked. Of a request that is refused already only what is not known, and only to look.
    fn asks(&self, passes: bool) -> Asks {
        let mut asks = Asks::new();
        let needed =
            self.parts.iter().filter(|part| matches!(part.state, ChargeState::Shared | ChargeState::Short { .. }));
        let alone = needed.count() == 1;
        for (place, (charge, part)) in self.charges.iter().zip(&self.parts).enumerate() {
            let ask = match part.state {
                ChargeState::Shared if passes => *charge,
                ChargeState::Short { .. } if passes => part.asked(charge, !alone),
                ChargeState::Shared | ChargeState::Short { .. } => peeking(&part.asked(charge, true)),
                ChargeState::Spent { refill: Some(units), .. } if passes => {
                    // Its refusal must not refuse the request, which the lease has paid already.
                    Charge { ask: Ask::UpTo(units), enforcement: Enforcement::Shadow, ..*charge }
                }
                _ => continue,
            };
            asks.push((place, ask));
        }
        asks
    }

    fn remember(&self, asks: &Asks, answers: &[Outcome], passes: bool, seen: Observation) {
        let own = asks.iter().zip(answers).filter(|((place, _), _)| !self.is_refill(*place));
        let (charges, answers): (SmallVec<[Charge; 4]>, Outcomes) = own
            .map(|((_, charge), answer)| match charge.ask {
                Ask::UpTo(_) => (Charge { ask: Ask::Consume(1), ..*charge }, *answer),
                _ => (*charge, *answer),
            })
            .unzip();
        match passes {
            true => self.fleet.deny.refresh(&charges, &answers, seen),
            false => self.fleet.deny.remember(&charges, &answers, seen),
        }
    }

    /// Enters the store's answers; answers whether the request passes.
    fn settle(&mut self, asks: &Asks, answers: &[Outcome], passes: bool, seen: Observation) -> bool {
        let enough = |part: &PendingCharge, answer: &Outcome| match part.state {
            ChargeState::Short { missing, .. } if answer.granted > 0 => answer.granted >= missing,
            _ => true,
        };
        let all_enough = asks.iter().zip(answers).all(|((place, _), answer)| {
            !self.is_enforced(*place) || self.parts.get(*place).is_none_or(|part| enough(part, answer))
        });
        let (passes, nodes) = (passes && all_enough, self.nodes);
        for ((place, asked), answer) in asks.iter().zip(answers) {
            let (Some(charge), Some(part)) = (self.charges.get(*place), self.parts.get_mut(*place)) else { continue };
            let admitted = answer.allowed && enough(part, answer);
            let used = |missing| if passes && admitted && charge.ask.writes() { missing } else { 0 };
            let settle = |spend: &Spend, used: u64| {
                let answer = StoreAnswer { outcome: answer, seen, asked: asked.ask.cost(), used, nodes };
                self.fleet.leases.settle(charge, spend, &answer, admitted)
            };
            match &mut part.state {
                ChargeState::Shared => part.outcome = Some(*answer),
                ChargeState::Spent { spend, refill } => {
                    settle(spend, 0);
                    (spend.leads, *refill) = (false, None);
                }
                ChargeState::Short { spend, missing, .. } => {
                    let (source, stamp) = (spend.source(answer), spend.stamp(answer));
                    if !(passes && admitted) {
                        self.fleet.leases.put_back(&Spend { leads: false, ..*spend }, self.now, false);
                        spend.grants = Default::default();
                    }
                    let told = settle(spend, used(*missing));
                    let granted = if passes { told.granted } else { 0 };
                    part.outcome = Some(Outcome { granted, source, stamp, ..told });
                    part.state = ChargeState::Done;
                }
                _ => {}
            }
            part.time = seen.store_time;
        }
        passes
    }

    /// Makes the decision final and tells it.
    fn conclude(&mut self, passes: bool, now: Option<Time>, outcomes: &mut Outcomes) -> Taken {
        if passes {
            self.parts.iter_mut().for_each(|part| part.state = ChargeState::Done);
        } else {
            (0..self.parts.len()).for_each(|place| self.put_back(place));
            self.look_again();
        }
        outcomes.clear();
        outcomes.extend(self.parts.iter().filter_map(|part| part.outcome));
        let told = self.parts.iter().find(|part| part.outcome.is_some_and(|outcome| passes || !outcome.allowed));
        let now = now.or_else(|| told.map(|part| part.time)).unwrap_or(self.now);
        Taken::new(passes, now)
    }

    /// The outcomes of what was charged for the time being, as they are after it was put back.
    fn look_again(&mut self) {
        for (charge, part) in self.charges.iter().zip(&mut self.parts) {
            if part.outcome.is_none_or(|outcome| outcome.granted == 0) || stays_charged(charge) {
                continue;
            }
            let looks = peeking(charge);
            let seen = match part.state {
                ChargeState::Local { .. } => {
                    let mut outcomes = Outcomes::new();
                    let _ = self.fleet.local.take_now(&[local_share(&looks, self.nodes)], &mut outcomes);
                    outcomes.pop().map(|outcome| Outcome { source: Source::Local, ..outcome })
                }
                ChargeState::Async { .. } => {
                    self.fleet.async_buckets.take(&looks, self.fleet.store_time(self.now), false)
                }
                _ => self.fleet.leases.look(charge, self.now).map(|(outcome, _)| outcome),
            };
            part.outcome = seen.or_else(|| part.outcome.map(unspent));
        }
    }

    fn none_refuses(&self) -> bool {
        let refuses = |(place, part): (usize, &PendingCharge)| {
            part.outcome.is_some_and(|outcome| !outcome.allowed) && self.is_enforced(place)
        };
        !self.parts.iter().enumerate().any(refuses)
    }

    fn is_enforced(&self, place: usize) -> bool {
        self.charges.get(place).is_some_and(Charge::is_enforced)
    }

    fn is_refill(&self, place: usize) -> bool {
        self.parts.get(place).is_some_and(|part| matches!(part.state, ChargeState::Spent { .. }))
    }

    fn put_back_leases(&mut self) {
        for place in 0..self.parts.len() {
            let leased =
                |part: &PendingCharge| matches!(part.state, ChargeState::Spent { .. } | ChargeState::Short { .. });
            if self.parts.get(place).is_some_and(leased) {
                self.put_back(place);
            }
        }
    }

    /// Lets others ask for the refills that this request could not get; what it spent stays spent.
    fn drop_refills(&mut self) {
        for part in &mut self.parts {
            if let ChargeState::Spent { spend, refill } = &mut part.state {
                if refill.take().is_some() {
                    let nothing = Spend { grants: Default::default(), ..*spend };
                    self.fleet.leases.put_back(&nothing, self.now, true);
                }
                spend.leads = false;
            }
        }
    }

    /// Undoes what was taken for one charge; once.
    fn put_back(&mut self, place: usize) {
        let (Some(charge), Some(part)) = (self.charges.get(place), self.parts.get_mut(place)) else { return };
        match &mut part.state {
            ChargeState::Spent { spend, refill } => {
                self.fleet.leases.put_back(spend, self.now, self.failed);
                (*refill, *spend) = (None, spend.empty());
            }
            ChargeState::Short { spend, .. } => {
                self.fleet.leases.put_back(spend, self.now, self.failed);
                *spend = spend.empty();
            }
            ChargeState::Local { taken: taken @ true } if !stays_charged(charge) => {
                *taken = false;
                let receipt = part.outcome.map(|outcome| Receipt::of(&local_share(charge, self.nodes), &outcome));
                self.fleet.local.give_back_now(receipt.as_slice());
            }
            ChargeState::Async { taken: taken @ true } if !stays_charged(charge) => {
                *taken = false;
                if let Some(outcome) = &part.outcome {
                    self.fleet.async_buckets.undo(charge, outcome, self.fleet.store_time(self.now));
                }
            }
            _ => {}
        }
    }
}

impl<S: Store> Drop for PendingDecision<'_, S> {
    fn drop(&mut self) {
        (0..self.parts.len()).for_each(|place| self.put_back(place));
    }
}

impl PendingCharge {
    fn of(charge: &Charge, decided: LeaseDecision) -> PendingCharge {
        let bucket = charge.bucket;
        let unknown = |state| PendingCharge { state, outcome: None, time: Time::ZERO };
        match decided {
            LeaseDecision::Cold => unknown(ChargeState::Shared),
            LeaseDecision::Refused { outcome, now } => {
                PendingCharge { state: ChargeState::Done, outcome: Some(outcome), time: now }
            }
            LeaseDecision::Spent { outcome, now, grants, refill } => {
                let spend = Spend { bucket, grants, leads: refill.is_some() };
                PendingCharge { state: ChargeState::Spent { spend, refill }, outcome: Some(outcome), time: now }
            }
            LeaseDecision::Short { grants, missing, batch } => {
                let spend = Spend { bucket, grants, leads: batch.is_some() };
                unknown(ChargeState::Short { spend, missing, batch })
            }
        }
    }

    /// What the store is asked for this part. A batch is content with fewer units than it names, so it is asked for
    /// only where any grant suffices, or where (`joined` is false) no other charge would have to be refunded if the
    /// grant was too small.
    fn asked(&self, charge: &Charge, joined: bool) -> Charge {
        let ask = match self.state {
            ChargeState::Short { missing, .. } if !charge.ask.writes() => Ask::Peek(missing),
            ChargeState::Short { missing, batch: Some(batch), .. } if batch > missing && (missing == 1 || !joined) => {
                Ask::UpTo(batch)
            }
            ChargeState::Short { missing, .. } => Ask::Consume(missing),
            _ => charge.ask,
        };
        Charge { ask, ..*charge }
    }
}

impl Spend {
    fn empty(self) -> Spend {
        Spend { grants: [Grant::default(); 2], leads: false, ..self }
    }

    /// Who paid: the lease, if it paid a part.
    fn source(&self, answer: &Outcome) -> Source {
        let leased = self.grants.iter().any(|grant| grant.units > 0);
        if leased && answer.source == Source::Bucket { Source::Lease } else { answer.source }
    }

    /// The oldest debit that paid: a refund gives back only what that one still owes.
    fn stamp(&self, answer: &Outcome) -> Time {
        let grants = self.grants.iter().filter(|grant| grant.units > 0);
        grants.map(|grant| grant.stamp).fold(answer.stamp, Time::min)
    }
}

/// An outcome without the charge that was put back.
fn unspent(outcome: Outcome) -> Outcome {
    let remaining = outcome.remaining.saturating_add(outcome.granted).min(outcome.limit);
    Outcome { remaining, used: outcome.used.saturating_sub(outcome.granted), granted: 0, ..outcome }
}
