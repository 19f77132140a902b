//! Charge an estimate now, settle the real cost later; hold slots meanwhile.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Receipt, Request, SlotId};
use tollgate_rules::ruleset::Charges;
use tollgate_store::{Outcomes, Store, StoreError};

use crate::engine::conclude;
use crate::{Decision, Engine, lot};

/// An admitted request that is not over: what it was charged, and the slots it holds. Settled once, by being given up.
/// Dropped without settling it keeps its estimate, and its slots come back when their time to live is over.
#[must_use = "settle or release it, or its estimate stays charged"]
#[derive(Debug)]
pub struct Reservation {
    cost: u64,
    receipts: SmallVec<[Receipt; 4]>,
}

/// What settling changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Charges that gave something back.
    pub refunded: usize,
    /// Charges that were charged more.
    pub extended: usize,
}

impl Reservation {
    /// The cost that was reserved.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The slot it holds, if any rule counts slots.
    pub fn slot(&self) -> Option<SlotId> {
        self.receipts.iter().find_map(|receipt| receipt.slot)
    }
}

impl<S: Store> Engine<S> {
    /// Decides a request and, if it passes, keeps the receipts of what it was charged. The request's cost is an
    /// estimate until [`settle`](Engine::settle)d. While the store is away nothing is reserved, only decided.
    pub async fn reserve(&self, request: &Request<'_>) -> (Decision, Option<Reservation>) {
        let mut charges = Charges::default();
        let pinned = self.generations.pin();
        let requests = std::slice::from_ref(request);
        if self.charges(&pinned, requests, &mut charges).is_err() {
            return (self.decide(request).await, None);
        }
        let mut outcomes = Outcomes::new();
        let (decision, reservation) = match self.take(&charges, &mut outcomes).await {
            Err(error) => (self.fall_back(pinned, &charges, &error), None),
            Ok(taken) => {
                let receipts = charges.charges.iter().zip(&outcomes).filter_map(|(charge, outcome)| {
                    let slot = if let Ask::Hold(id) = charge.ask { Some(id) } else { None };
                    let charged = outcome.granted > 0 || (slot.is_some() && outcome.allowed);
                    charged.then(|| Receipt {
                        bucket: charge.bucket,
                        limit: charge.limit,
                        units: outcome.granted,
                        stamp: outcome.stamp,
                        slot,
                        number: lot::random(),
                    })
                });
                let reservation =
                    taken.allowed.then(|| Reservation { cost: request.cost, receipts: receipts.collect() });
                (conclude(pinned, &charges, taken, &outcomes), reservation)
            }
        };
        self.observe(requests, &decision);
        (decision, reservation)
    }

    /// Settles at the real cost: gives back what was estimated too high, charges what was estimated too low (whether
    /// it fits or not: it was used), and releases the slots.
    pub async fn settle(&self, reservation: Reservation, cost: u64) -> Result<Settled, StoreError> {
        let Reservation { cost: estimate, receipts } = reservation;
        // A rule's units are its own multiple of the cost; the multiple is what the estimate was charged at.
        let real = |units: u64| {
            let units = (u128::from(units) * u128::from(cost)).div_ceil(u128::from(estimate.max(1)));
            u64::try_from(units).unwrap_or(u64::MAX)
        };
        let extra = receipts.iter().filter(|receipt| receipt.slot.is_none() && real(receipt.units) > receipt.units);
        let extra: SmallVec<[Charge; 4]> = extra
            .map(|receipt| {
                let charge = Charge::new(receipt.bucket, receipt.limit, 0);
                Charge { ask: Ask::Force(real(receipt.units) - receipt.units), ..charge }
            })
            .collect();
        let back = receipts.into_iter().filter_map(|receipt| {
            let units = receipt.units.saturating_sub(real(receipt.units));
            (receipt.slot.is_some() || units > 0).then_some(Receipt { units, ..receipt })
        });
        let back: SmallVec<[Receipt; 4]> = back.collect();
        if !extra.is_empty() {
            let _ = self.store.take(&extra, self.config.within, &mut Outcomes::new()).await?;
        }
        let refunded = if back.is_empty() { 0 } else { self.store.give_back(&back).await? };
        Ok(Settled { refunded, extended: extra.len() })
    }

    /// Ends the request at its estimated cost: only the slots come back.
    pub async fn release(&self, reservation: Reservation) -> Result<(), StoreError> {
        let cost = reservation.cost;
        self.settle(reservation, cost).await.map(|_| ())
    }

    /// A heartbeat for the slots of a long request. False if one of them is lost: stop working, or reserve anew.
    pub async fn renew(&self, reservation: &Reservation) -> Result<bool, StoreError> {
        let slots = reservation.receipts.iter().filter_map(|receipt| {
            let charge = Charge::new(receipt.bucket, receipt.limit, 0);
            Some(Charge { ask: Ask::Renew(receipt.slot?), ..charge })
        });
        let slots: SmallVec<[Charge; 4]> = slots.collect();
        match slots.is_empty() {
            true => Ok(true),
            false => Ok(self.store.take(&slots, self.config.within, &mut Outcomes::new()).await?.allowed),
        }
    }
}
