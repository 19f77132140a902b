//! Reservations to be extended and settled, and slots to be renewed and released: all are receipts.
//!
//! The caller holds the state as a signed receipt. The store guarantees that a receipt refunds once and charges once.

use tollgate_core::{Purpose, Span};
use tollgate_engine::{Decision, Extension, Reservation, SETTLE_WITHIN, Settled, random_slot};

use crate::CheckRequest;
use crate::receipt_sealer::OpenedReceipt;
use crate::refusal::{self, ApiError};
use crate::service::Service;

/// A receipt as the caller keeps it.
#[derive(Clone, Debug)]
pub struct SignedReceipt {
    /// The signed text.
    pub text: String,
    /// How long its slots last without a heartbeat; `None` if it holds none.
    pub ttl: Option<Span>,
}

/// The answer to the next step of a reservation.
#[derive(Debug)]
pub struct Extended {
    /// The decision about the step.
    pub decision: Box<Decision>,
    /// The receipt that replaces the one that was sent; `None` if the step was denied.
    pub receipt: Option<SignedReceipt>,
    /// It was denied because a slot has expired: waiting does not help.
    pub slot_lost: bool,
}

impl Service {
    /// Decides at estimated amounts, and takes a slot of every concurrency rule that applies; an allowed request gets a
    /// receipt.
    pub async fn reserve(&self, request: &CheckRequest<'_>) -> (Decision, Option<SignedReceipt>) {
        let lists = request.lists();
        let request = request.request(&lists).holding(random_slot());
        let start = self.clock.now();
        let (decision, reservation) = self.engine.reserve(&request).await;
        self.record_latency(start);
        // A look holds nothing, so there is nothing to settle.
        let reservation = reservation.filter(|_| request.purpose != Purpose::Peek);
        (decision, reservation.map(|reservation| self.sign(reservation)))
    }

    /// Charges further amounts of a reservation that goes on, all or nothing, and renews its slots.
    pub async fn extend(&self, receipt: &str, more: &[(&str, u64)]) -> Result<Extended, ApiError> {
        let reservation = self.open_reservation(receipt, more)?;
        let start = self.clock.now();
        let extension = self.engine.extend(reservation, more).await;
        self.record_latency(start);
        match extension.map_err(|_| refusal::STORE_UNAVAILABLE)? {
            Extension::Granted(decision, reservation) => {
                Ok(Extended { decision, receipt: Some(self.sign(*reservation)), slot_lost: false })
            }
            Extension::Denied { decision, slot_lost } => Ok(Extended { decision, receipt: None, slot_lost }),
            Extension::Replaced => Err(refusal::REPLACED_RECEIPT),
        }
    }

    /// Charges or refunds the difference between the estimates and the real amounts, and releases the slots. Meters
    /// without an amount keep their estimate.
    pub async fn settle(&self, receipt: &str, actual: &[(&str, u64)]) -> Result<Settled, ApiError> {
        let reservation = self.open_reservation(receipt, actual)?;
        self.engine.settle_costs(reservation, actual).await.map_err(|_| refusal::STORE_UNAVAILABLE)
    }

    /// A heartbeat: whether the slots are still held, and how long they last.
    pub async fn renew(&self, receipt: &str) -> Result<(bool, Option<Span>), ApiError> {
        let reservation = self.sealer.open(receipt)?.reservation;
        let ttl = reservation.slot_ttl();
        let renewed = self.engine.renew(&reservation).await.map_err(|_| refusal::STORE_UNAVAILABLE)?;
        Ok((renewed, ttl))
    }

    /// Settles at the estimates, which releases the slots; false if there was none to release any more.
    pub async fn release(&self, receipt: &str) -> Result<bool, ApiError> {
        let reservation = self.sealer.open(receipt)?.reservation;
        let settled = self.engine.settle_costs(reservation, &[]).await;
        Ok(settled.map_err(|_| refusal::STORE_UNAVAILABLE)?.refunded > 0)
    }

    /// Opens a receipt that is not too old and was reserved for all of these meters.
    fn open_reservation(&self, receipt: &str, costs: &[(&str, u64)]) -> Result<Reservation, ApiError> {
        let OpenedReceipt { reservation, made } = self.sealer.open(receipt)?;
        if self.clock.wall().since(made) > SETTLE_WITHIN {
            return Err(refusal::EXPIRED_RECEIPT);
        }
        match costs.iter().all(|(meter, _)| reservation.amount(meter).is_some()) {
            true => Ok(reservation),
            false => Err(refusal::METER_NOT_RESERVED),
        }
    }

    fn sign(&self, reservation: Reservation) -> SignedReceipt {
        let ttl = reservation.slot_ttl();
        SignedReceipt { text: self.sealer.seal(reservation, self.clock.wall()), ttl }
    }
}
