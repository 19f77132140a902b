//! Extending a reservation: a stream that goes on takes the next step before it uses it.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Enforcement, Outcome, Receipt, Source, Wait};
use tollgate_ruleset::{AppliedRule, Charges};
use tollgate_store::{Outcomes, Store, StoreError, Taken};

use crate::conclude::conclude;
use crate::engine::Skipped;
use crate::reservation::Reservation;
use crate::settlement::TurnMemory;
use crate::{Decision, Engine, Pinned};

/// The answer to an extension.
#[must_use]
#[derive(Debug)]
pub enum Extension {
    /// The amounts were charged: this reservation replaces the one that was extended.
    Granted(Box<Decision>, Box<Reservation>),
    /// A limit has no room, or a slot has expired. Nothing was charged, and the reservation is as it was.
    Denied {
        /// The decision about the step.
        decision: Box<Decision>,
        /// A slot has expired: waiting does not help.
        slot_lost: bool,
    },
    /// The reservation was settled or extended before. Nothing was charged.
    Replaced,
}

/// What became of a reservation that is extended in place. Unless granted, it is as it was.
enum Stepped {
    Granted(Box<Decision>),
    Denied { decision: Box<Decision>, slot_lost: bool },
    Replaced,
}

/// The charges of the next step, and the entry of the reservation that each belongs to.
struct Step {
    charges: Charges,
    entries: SmallVec<[usize; 4]>,
}

impl<S: Store> Engine<S> {
    /// Charges further amounts of the reserved meters and renews the slots, all or nothing, in one call of the store.
    /// Meters that were not reserved are ignored.
    ///
    /// If the store cannot be asked, the failure policies of the rules decide; what they grant is charged when the
    /// reservation is settled. After an error the extension may or may not have been charged; the reservation that was
    /// passed is void in the first case, so that a retry never charges twice.
    pub async fn extend(&self, mut reservation: Reservation, more: &[(&str, u64)]) -> Result<Extension, StoreError> {
        Ok(match self.extend_in_place(&mut reservation, more).await? {
            Stepped::Granted(decision) => Extension::Granted(decision, Box::new(reservation)),
            Stepped::Denied { decision, slot_lost } => Extension::Denied { decision, slot_lost },
            Stepped::Replaced => Extension::Replaced,
        })
    }

    /// The same for a reservation that stays in this process; true if the amounts were granted. After a refusal or an
    /// error it is as it was; units that an error leaves in doubt come back with their window.
    pub async fn extend_held(&self, reservation: &mut Reservation, more: &[(&str, u64)]) -> Result<bool, StoreError> {
        Ok(matches!(self.extend_in_place(reservation, more).await?, Stepped::Granted(_)))
    }

    async fn extend_in_place(
        &self,
        reservation: &mut Reservation,
        more: &[(&str, u64)],
    ) -> Result<Stepped, StoreError> {
        let pinned = self.generations.pin();
        let enforcement = self.enforcement();
        if enforcement == Enforcement::Off {
            let decision = self.decide_skipped(pinned, Skipped::Off);
            reservation.costs = reservation.costs.added(more);
            return Ok(Stepped::Granted(Box::new(decision)));
        }
        let step = Step::new(reservation, &pinned, more, enforcement);
        let asked = step.charges.charges.clone();
        let stepped = self.take_step(reservation, pinned, step, more).await;
        if let Some(observer) = &self.observer {
            match &stepped {
                Ok(Stepped::Granted(decision) | Stepped::Denied { decision, .. }) => {
                    observer.extended(decision, &asked);
                }
                Ok(Stepped::Replaced) => {}
                Err(error) => observer.store_failed(error, &asked, self.wall()),
            }
        }
        stepped
    }

    async fn take_step(
        &self,
        reservation: &mut Reservation,
        pinned: Pinned,
        step: Step,
        more: &[(&str, u64)],
    ) -> Result<Stepped, StoreError> {
        let Step { charges, entries } = step;
        let own = charges.charges.len();
        let mut all = charges.charges.clone();
        all.extend(reservation.extend_turn(Ask::Consume(1)));
        all.extend(reservation.settle_turn(Ask::Peek(1), TurnMemory::Retries));
        let mut outcomes = Outcomes::new();
        let mut taken = match self.take_charges(reservation, &all, &mut outcomes).await {
            Ok(taken) => taken,
            Err(error) if error.kind.charged_nothing() => {
                return Ok(self.extend_by_policy(reservation, pinned, charges, more, &error));
            }
            Err(error) => return Err(error),
        };
        if !taken.allowed {
            let turns = outcomes.get(own..).unwrap_or_default();
            if turns.iter().any(|turn| !turn.allowed && turn.source == Source::Bucket) {
                return Ok(Stepped::Replaced);
            }
            if !is_denied(&charges, &outcomes) {
                // The store has no room to remember turns: charging twice is better than never.
                taken = self.take_charges(reservation, &charges.charges, &mut outcomes).await?;
            }
        }
        outcomes.truncate(own);
        if !taken.allowed {
            let lost = |(charge, outcome): (&Charge, &Outcome)| is_slot(charge) && !outcome.allowed;
            let slot_lost = charges.charges.iter().zip(&outcomes).any(lost);
            for (_, outcome) in charges.charges.iter().zip(&mut outcomes).filter(|(charge, _)| is_slot(charge)) {
                outcome.wait = if outcome.allowed { outcome.wait } else { Wait::Never };
            }
            let decision = Box::new(conclude(pinned, &charges, taken, &outcomes));
            return Ok(Stepped::Denied { decision, slot_lost });
        }
        let mut joined: SmallVec<[Receipt; 1]> = SmallVec::new();
        for ((entry, charge), outcome) in entries.iter().zip(&charges.charges).zip(&outcomes) {
            let Some(entry) = reservation.entries.get_mut(*entry) else { continue };
            if outcome.allowed && entry.slot().is_none() {
                let spent = entry.extend(Receipt::of(charge, outcome));
                joined.extend(spent.map(|receipt| Receipt { units: 0, ..receipt }));
            }
        }
        if !joined.is_empty() {
            // Uses up its number and refunds nothing. If the store does not answer, the turn protects it for a while.
            let _ = self.give_back_to(reservation.local, &joined).await;
        }
        let decision = conclude(pinned, &charges, taken, &outcomes);
        reservation.add(more);
        Ok(Stepped::Granted(Box::new(decision)))
    }

    async fn take_charges(
        &self,
        reservation: &Reservation,
        charges: &[Charge],
        outcomes: &mut Outcomes,
    ) -> Result<Taken, StoreError> {
        outcomes.clear();
        match charges.is_empty() {
            true => Ok(self.allow_now()),
            false => self.take_from(reservation.local, charges, outcomes).await,
        }
    }

    /// The store was not asked: each rule's failure policy decides. The turn is remembered by this node alone.
    fn extend_by_policy(
        &self,
        reservation: &mut Reservation,
        pinned: Pinned,
        mut charges: Charges,
        more: &[(&str, u64)],
        error: &StoreError,
    ) -> Stepped {
        // The slots are held in the store, where they last for their time to live.
        charges.charges.iter_mut().filter(|charge| is_slot(charge)).for_each(|charge| charge.ask = Ask::Peek(0));
        let decision = Box::new(self.fall_back(pinned, &charges, error).decision);
        if !decision.is_allowed() {
            return Stepped::Denied { decision, slot_lost: false };
        }
        let turn: SmallVec<[Charge; 1]> = reservation.extend_turn(Ask::Consume(1)).into_iter().collect();
        if !self.fallback.take_now(&turn, &mut Outcomes::new()).allowed {
            return Stepped::Replaced;
        }
        reservation.add(more);
        Stepped::Granted(decision)
    }
}

impl Step {
    fn new(reservation: &Reservation, pinned: &Pinned, more: &[(&str, u64)], enforcement: Enforcement) -> Step {
        let amounts = reservation.costs.zeroed().added(more);
        let mut step = Step { charges: Charges::default(), entries: SmallVec::new() };
        step.charges.shadowed = enforcement == Enforcement::Shadow;
        for (index, entry) in reservation.entries.iter().enumerate() {
            let ask = match entry.slot() {
                Some(slot) => Ask::Renew(slot),
                None => Ask::Consume(entry.units(&amounts)),
            };
            let Some(mut charge) = entry.charge(ask).filter(|charge| charge.ask.writes()) else { continue };
            if step.charges.shadowed {
                charge.enforcement = Enforcement::Shadow;
            }
            // A rule that was deleted since is charged all the same, and has no ruling.
            if let Some(rule) = pinned.rules.rule_of_owner(charge.owner) {
                let charge = u16::try_from(step.charges.charges.len()).ok();
                step.charges.applied.push(AppliedRule { rule, request: 0, charge, factor: 1, penalty: None });
            }
            step.entries.push(index);
            step.charges.charges.push(charge);
        }
        step
    }
}

impl Reservation {
    /// Becomes the next version of the reservation.
    fn add(&mut self, more: &[(&str, u64)]) {
        self.costs = self.costs.added(more);
        self.step += 1;
    }
}

fn is_slot(charge: &Charge) -> bool {
    matches!(charge.ask, Ask::Renew(_))
}

/// Whether a limit refused, and not only a turn.
fn is_denied(charges: &Charges, outcomes: &[Outcome]) -> bool {
    charges.charges.iter().zip(outcomes).any(|(charge, outcome)| charge.is_enforced() && !outcome.allowed)
}
