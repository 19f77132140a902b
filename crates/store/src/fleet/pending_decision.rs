//! One request with charges of several kinds, all or nothing.
//!
//! Charges that this node can decide are taken provisionally; then one call of the shared store decides the others and
//! obtains the units that leases lack. If any charge refuses, the provisional ones are undone. No lock is held during
//! the call, and never two at a time, so requests cannot deadlock; a concurrent request may see units missing that are
//! put back a moment later, as it would if the first request had passed. A request that is dropped half-way undoes its
//! charges too; units that the store granted it in the meantime are lost, never spent twice.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Enforcement, Outcome, Receipt, Source, Span, Time};

use super::Fleet;
use super::lease::{Grant, LeaseDecision, Spend, StoreAnswer};
use super::mirror::Observation;
use super::refills::Refill;
use super::route::{ChargeRoute, local_share, peeking, stays_charged};
use crate::{Outcomes, Store, StoreError, Taken};

/// A request that is being decided.
pub(super) struct PendingDecision<'a, S: Store> {
    fleet: &'a Fleet<S>,
    charges: &'a [Charge],
    parts: SmallVec<[PendingCharge; 4]>,
    now: Time,
    nodes: u64,
    may_ask: bool,
    /// The call of the store failed.
    failed: bool,
}

/// The progress of one charge.
#[derive(Clone, Copy, Debug)]
struct PendingCharge {
    state: ChargeState,
    /// The outcome, once it is known, and the store's time of it.
    outcome: Option<Outcome>,
    time: Time,
}

#[derive(Clone, Copy, Debug)]
enum ChargeState {
    /// The shared store decides it.
    Shared,
    /// This node's static share decides it; `taken` if it was charged provisionally.
    Local { taken: bool },
    /// This node's copy of the bucket decides it; `taken` if it was charged provisionally.
    Async { taken: bool },
    /// Final: nothing to undo.
    Done,
    /// Paid by a lease, which may need a refill of that many units.
    Spent { spend: Spend, refill: Option<u64> },
    /// Partly paid by a lease; the store decides about the `missing` units.
    Short { spend: Spend, missing: u64, batch: Option<u64> },
}

/// The charges for the store, with their indexes.
type Asks = SmallVec<[(usize, Charge); 4]>;

impl<'a, S: Store> PendingDecision<'a, S> {
    /// Spends from leases. Without `may_ask`, charges that need the store are not started.
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

    /// Decides without the store. `None` has charged nothing: the store is needed.
    pub(super) fn finish_locally(mut self, outcomes: &mut Outcomes) -> Option<Taken> {
        let passes = self.consult_deny_cache();
        if !self.asks(passes).is_empty() {
            return None;
        }
        let passes = self.decide_locally(passes);
        Some(self.conclude(passes, None, outcomes))
    }

    /// Decides, calling the store where needed.
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
            // Only refills were asked for: the leases have paid for the request without them.
            Err(_) if passes && asks.iter().all(|(place, _)| self.is_refill(*place)) => {
                self.failed = true;
                self.drop_refills();
                return Ok(self.conclude(true, None, outcomes));
            }
            Err(error) => {
                self.failed = true;
                return Err(error); // dropping the decision undoes its charges
            }
        };
        self.remember(&asks, &answers, passes && taken.allowed, seen);
        passes = self.settle(&asks, &answers, passes && taken.allowed, seen);
        Ok(self.conclude(passes, Some(taken.now), outcomes))
    }

    /// Hands the refills over to their task, if there is nothing else to ask; false if this request must ask itself.
    fn hand_over_refills(&self, asks: &Asks, within: Span) -> bool {
        let refills = asks.iter().map(|(_, charge)| Refill { charge: *charge, within });
        asks.iter().all(|(place, _)| self.is_refill(*place)) && self.fleet.refills.push(refills)
    }

    /// Looks up charges of the store in the deny cache; false if a charge refuses.
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

    /// Decides the charges on this node's own buckets. True if the request still passes.
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

    /// The charges for the store. For a request that is refused already: read-only, and only unknown ones.
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
                    // A refused refill must not refuse the request, which the lease has paid for.
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

    /// Enters the answers of the store. True if the request passes.
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
                    let outcome = settle(spend, used(*missing));
                    let granted = if passes { outcome.granted } else { 0 };
                    part.outcome = Some(Outcome { granted, source, stamp, ..outcome });
                    part.state = ChargeState::Done;
                }
                _ => {}
            }
            part.time = seen.store_time;
        }
        passes
    }

    /// Makes the decision final and returns it.
    fn conclude(&mut self, passes: bool, now: Option<Time>, outcomes: &mut Outcomes) -> Taken {
        if passes {
            self.parts.iter_mut().for_each(|part| part.state = ChargeState::Done);
        } else {
            (0..self.parts.len()).for_each(|place| self.put_back(place));
            self.look_again();
        }
        outcomes.clear();
        outcomes.extend(self.parts.iter().filter_map(|part| part.outcome));
        let deciding = self.parts.iter().find(|part| part.outcome.is_some_and(|outcome| passes || !outcome.allowed));
        let now = now.or_else(|| deciding.map(|part| part.time)).unwrap_or(self.now);
        Taken::new(passes, now)
    }

    /// Recomputes the outcomes of provisional charges after they were undone.
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

    /// Abandons refills that failed, so that other requests may ask; what this request spent stays spent.
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

    /// Undoes one provisional charge; at most once.
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

    /// The charge for the store. A batch may be granted in part, so it is asked for only where any grant suffices, or
    /// where no other charge (`joined` is false) would have to be refunded if the grant is too small.
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

    /// What paid: the lease, if it paid a part.
    fn source(&self, answer: &Outcome) -> Source {
        let leased = self.grants.iter().any(|grant| grant.units > 0);
        if leased && answer.source == Source::Bucket { Source::Lease } else { answer.source }
    }

    /// The stamp of the oldest debit that paid: a refund returns only what that one still owes.
    fn stamp(&self, answer: &Outcome) -> Time {
        let grants = self.grants.iter().filter(|grant| grant.units > 0);
        grants.map(|grant| grant.stamp).fold(answer.stamp, Time::min)
    }
}

/// The outcome without its charge, which was undone.
fn unspent(outcome: Outcome) -> Outcome {
    let remaining = outcome.remaining.saturating_add(outcome.granted).min(outcome.limit);
    Outcome { remaining, used: outcome.used.saturating_sub(outcome.granted), granted: 0, ..outcome }
}
