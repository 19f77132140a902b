//! What settling changed in each bucket: for logs that are summed up, and for the history of usage.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Limit, Outcome, Receipt, Time};
use tollgate_ruleset::Rule;
use tollgate_store::{StoreError, Taken};

use crate::{Generation, Pinned};

/// The changes that settling one reservation made.
#[derive(Debug)]
pub struct Settlement {
    /// The number of the reservation; `None` for one that never left the process.
    pub number: Option<u64>,
    /// The time of the store; of this node, if the store was not asked for a turn.
    pub now: Time,
    /// The wall time of this node.
    pub wall: Time,
    /// Made in this node's fallback buckets, which no other node shares.
    pub local: bool,
    /// Buckets whose usage changed.
    pub corrections: SmallVec<[Correction; 4]>,
    pub(crate) generation: Pinned,
}

/// The change in one bucket, or in one period of it.
#[derive(Clone, Copy, Debug)]
pub struct Correction {
    /// A read of the bucket.
    pub read: Charge,
    /// The [stamp](Outcome::stamp) of the charge: the end of the period of a quota.
    pub stamp: Time,
    /// What changed.
    pub change: UnitChange,
    /// Usage and limit after an additional charge, if the store answered. A refund answers nothing about its bucket.
    pub after: Option<UsageAfter>,
    /// False if the store may have made the change, and did not answer.
    pub is_certain: bool,
}

/// The usage of a bucket after a correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageAfter {
    /// Units in use.
    pub used: u64,
    /// Its capacity.
    pub limit: u64,
}

/// Units that a bucket did not take: a token bucket goes into debt up to a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnchargedUnits {
    /// The name of the rule.
    pub rule: String,
    /// Units of the rule.
    pub units: u64,
}

/// Units that a correction gave back or charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitChange {
    /// The estimate was too high.
    Refunded(u64),
    /// The estimate was too low.
    Charged(u64),
}

impl Settlement {
    pub(crate) fn new(generation: Pinned, number: Option<u64>, now: Time, local: bool) -> Settlement {
        Settlement { number, now, wall: Time::ZERO, local, corrections: SmallVec::new(), generation }
    }

    /// The rule of a correction, if it still exists.
    pub fn rule(&self, correction: &Correction) -> Option<&Rule> {
        let Generation { rules, .. } = &*self.generation;
        rules.rule(rules.rule_of_owner(correction.read.owner)?)
    }

    /// Notes refunds, unless it is certain that nothing was given back.
    pub(crate) fn refunded(&mut self, back: &[Receipt], given: Result<&usize, &StoreError>) {
        let Some(is_certain) = certainty(given.err()) else { return };
        let units = back.iter().filter(|receipt| receipt.slot.is_none() && receipt.units > 0);
        self.corrections.extend(units.map(|receipt| Correction {
            read: receipt.charge(Ask::Peek(0)),
            stamp: receipt.stamp,
            change: UnitChange::Refunded(receipt.units),
            after: None,
            is_certain,
        }));
    }

    /// Notes additional charges, unless it is certain that nothing was charged.
    pub(crate) fn charged(&mut self, extra: &[Charge], outcomes: &[Outcome], taken: Result<&Taken, &StoreError>) {
        let Some(is_certain) = certainty(taken.err()) else { return };
        let charged = |(index, charge): (usize, &Charge)| {
            let outcome = outcomes.get(index).filter(|_| is_certain);
            Correction {
                read: Charge { ask: Ask::Peek(0), ..*charge },
                stamp: outcome.map_or_else(|| proposed_end(charge), |outcome| outcome.stamp),
                change: UnitChange::Charged(outcome.map_or(charge.ask.cost(), |outcome| outcome.granted)),
                after: outcome.map(|outcome| UsageAfter { used: outcome.used, limit: outcome.limit }),
                is_certain,
            }
        };
        self.corrections.extend(extra.iter().enumerate().map(charged));
    }

    /// What of forced charges their buckets did not take.
    pub(crate) fn uncharged(&self, extra: &[Charge], outcomes: &[Outcome]) -> Vec<UnchargedUnits> {
        let Generation { rules, .. } = &*self.generation;
        let capped = extra.iter().zip(outcomes).filter_map(|(charge, outcome)| {
            let units = charge.ask.cost().checked_sub(outcome.granted).filter(|units| *units > 0)?;
            let rule = rules.rule(rules.rule_of_owner(charge.owner)?)?.name.clone();
            charge.is_enforced().then_some(UnchargedUnits { rule, units })
        });
        capped.collect()
    }
}

/// The end of the period that a charge on a quota proposed.
fn proposed_end(charge: &Charge) -> Time {
    if let Limit::Quota(quota) = &charge.limit { quota.end() } else { Time::ZERO }
}

/// Whether a change was certainly made; `None` if it certainly was not.
fn certainty(error: Option<&StoreError>) -> Option<bool> {
    match error {
        None => Some(true),
        Some(error) if error.kind.charged_nothing() => None,
        Some(_) => Some(false),
    }
}
