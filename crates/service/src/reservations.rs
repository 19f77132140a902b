//! Reservations to be settled and slots to be released.
//!
//! The caller holds the state as a signed receipt. The store guarantees that a receipt refunds once; a bounded memory
//! of settled receipts here guarantees that it charges once.

use tollgate_core::Span;
use tollgate_engine::{Decision, Reservation, Settled, random_slot};

use crate::CheckRequest;
use crate::receipt_sealer::{OpenedReceipt, ReceiptKind, SETTLE_WITHIN};
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

impl Service {
    /// Decides at an estimated cost, or while slots are held; an allowed request gets a receipt.
    pub async fn reserve(&self, request: &CheckRequest<'_>, kind: ReceiptKind) -> (Decision, Option<SignedReceipt>) {
        let custom = request.custom();
        let request = request.request(&custom);
        let request = if kind == ReceiptKind::Slot { request.holding(random_slot()) } else { request };
        let start = self.clock.now();
        let (decision, reservation) = self.engine.reserve(&request).await;
        self.record_latency(start);
        let receipt = reservation.map(|reservation| {
            let ttl = reservation.slot_ttl();
            SignedReceipt { text: self.sealer.seal(kind, reservation, self.clock.wall()), ttl }
        });
        (decision, receipt)
    }

    /// Charges or refunds the difference between estimate and real cost.
    pub async fn settle(&self, receipt: &str, cost: u64) -> Result<Settled, ApiError> {
        let OpenedReceipt { reservation, made } = self.sealer.open(ReceiptKind::Reservation, receipt)?;
        if self.clock.wall().since(made) > SETTLE_WITHIN {
            return Err(refusal::EXPIRED_RECEIPT);
        }
        let number = reservation.number().unwrap_or_default();
        if !self.settlements.first(number) {
            return Ok(Settled { refunded: 0, extended: 0, repeated: true });
        }
        self.engine.settle(reservation, cost).await.map_err(|_| {
            self.settlements.forget(number);
            refusal::STORE_UNAVAILABLE
        })
    }

    /// A heartbeat: whether the slots are still held, and how long they last.
    pub async fn renew(&self, receipt: &str) -> Result<(bool, Option<Span>), ApiError> {
        let reservation = self.open_slot(receipt)?;
        let ttl = reservation.slot_ttl();
        let renewed = self.engine.renew(&reservation).await.map_err(|_| refusal::STORE_UNAVAILABLE)?;
        Ok((renewed, ttl))
    }

    /// Releases the slots; false if they were released before.
    pub async fn release(&self, receipt: &str) -> Result<bool, ApiError> {
        let reservation = self.open_slot(receipt)?;
        let cost = reservation.cost();
        let settled = self.engine.settle(reservation, cost).await.map_err(|_| refusal::STORE_UNAVAILABLE)?;
        Ok(settled.refunded > 0)
    }

    fn open_slot(&self, receipt: &str) -> Result<Reservation, ApiError> {
        Ok(self.sealer.open(ReceiptKind::Slot, receipt)?.reservation)
    }
}
