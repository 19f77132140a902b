//! Extending a reservation: a stream that goes on takes the next step before it uses it.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Enforcement, Outcome, Receipt, Source, Wait};
use tollgate_store::{Outcomes, Store, StoreError};

use crate::reservation::Reservation;
use crate::{Engine, Pinned};

/// The answer to an extension.
#[must_use]
#[derive(Debug)]
pub enum Extension {
    /// The amounts were charged: this reservation replaces the one that was extended.
    Granted(Box<Reservation>),
    /// A limit has no room, or a slot has expired. Nothing was charged, and the reservation is as it was.
    Denied(ExtensionDenial),
    /// The reservation was settled or extended before. Nothing was charged.
    Replaced,
}

/// Why an extension was denied.
#[derive(Clone, Debug)]
pub struct ExtensionDenial {
    /// The rule with the longest wait, if it still exists.
    pub rule: Option<String>,
    /// The outcome of its bucket.
    pub outcome: Outcome,
    /// A slot has expired: waiting does not help.
    pub slot_lost: bool,
}

impl<S: Store> Engine<S> {
    /// Charges further amounts of the reserved meters and renews the slots, all or nothing, in one call of the store.
    /// Meters that were not reserved are ignored.
    ///
    /// After an error the extension may or may not have been charged; the reservation that was passed is void in the
    /// first case, so that a retry never charges twice.
    pub async fn extend(&self, reservation: Reservation, more: &[(&str, u64)]) -> Result<Extension, StoreError> {
        let enforcement = self.enforcement();
        let mut reservation = reservation;
        if enforcement == Enforcement::Off {
            reservation.costs = reservation.costs.added(more);
            return Ok(Extension::Granted(Box::new(reservation)));
        }
        let amounts = reservation.costs.zeroed().added(more);
        let mut charged: SmallVec<[usize; 4]> = SmallVec::new();
        let mut charges: SmallVec<[Charge; 4]> = SmallVec::new();
        for (index, entry) in reservation.entries.iter().enumerate() {
            let ask = match entry.slot() {
                Some(slot) => Ask::Renew(slot),
                None => Ask::Consume(entry.units(&amounts)),
            };
            if ask.writes() {
                charged.push(index);
                charges.extend(entry.charge(ask));
            }
        }
        if enforcement == Enforcement::Shadow {
            charges.iter_mut().for_each(|charge| charge.enforcement = Enforcement::Shadow);
        }
        let turns = reservation.extend_turn(Ask::Consume(1)).into_iter().chain(reservation.settle_turn(Ask::Peek(1)));
        charges.extend(turns);
        let mut outcomes = Outcomes::new();
        if !self.take_extension(&reservation, &charges, &mut outcomes).await? {
            let turns = outcomes.get(charged.len()..).unwrap_or_default();
            if turns.iter().any(|turn| !turn.allowed && turn.source == Source::Bucket) {
                return Ok(Extension::Replaced);
            }
            if let Some(denial) = denial(&self.generations.pin(), &charges, &outcomes, charged.len()) {
                return Ok(Extension::Denied(denial));
            }
            // The store has no room to remember turns: charging twice is better than never.
            charges.truncate(charged.len());
            if !self.take_extension(&reservation, &charges, &mut outcomes).await? {
                let denial = denial(&self.generations.pin(), &charges, &outcomes, charged.len());
                return Ok(denial.map_or(Extension::Replaced, Extension::Denied));
            }
        }
        let mut joined: SmallVec<[Receipt; 1]> = SmallVec::new();
        for ((index, charge), outcome) in charged.iter().zip(&charges).zip(&outcomes) {
            let Some(entry) = reservation.entries.get_mut(*index) else { continue };
            if outcome.allowed && entry.slot().is_none() {
                let spent = entry.extend(Receipt::of(charge, outcome));
                joined.extend(spent.map(|receipt| Receipt { units: 0, ..receipt }));
            }
        }
        if !joined.is_empty() {
            // Uses up its number and refunds nothing. If the store does not answer, the turn protects it for a while.
            let _ = self.give_back_to(reservation.local, &joined).await;
        }
        reservation.costs = reservation.costs.added(more);
        reservation.step += 1;
        Ok(Extension::Granted(Box::new(reservation)))
    }

    async fn take_extension(
        &self,
        reservation: &Reservation,
        charges: &[Charge],
        outcomes: &mut Outcomes,
    ) -> Result<bool, StoreError> {
        match charges.is_empty() {
            true => Ok(true),
            false => Ok(self.take_from(reservation.local, charges, outcomes).await?.allowed),
        }
    }
}

/// The denial with the longest wait among the first `own` charges: those of limits.
fn denial(generation: &Pinned, charges: &[Charge], outcomes: &[Outcome], own: usize) -> Option<ExtensionDenial> {
    let all = charges.iter().zip(outcomes).take(own);
    let denied = all.filter(|(charge, outcome)| charge.is_enforced() && !outcome.allowed);
    let longest = denied.max_by_key(|(charge, outcome)| match charge.ask {
        Ask::Renew(_) => Wait::Never,
        _ => outcome.wait,
    });
    let (charge, outcome) = longest?;
    let rule = generation.rules.rules().iter().find(|rule| rule.owner().id == charge.owner.id);
    Some(ExtensionDenial {
        rule: rule.map(|rule| rule.name.clone()),
        outcome: *outcome,
        slot_lost: matches!(charge.ask, Ask::Renew(_)),
    })
}
