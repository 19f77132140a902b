//! Requests that are not over with their decision: reserved to be settled, or holding slots to be released.
//!
//! Nothing is kept for them here: what a caller holds is a signed receipt. That a receipt refunds once is the store's
//! promise; that it charges once is kept here, in a bounded memory of what was settled.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;
use tollgate_core::Span;
use tollgate_engine::{Decision, Reservation, Settled, random_slot};

use super::Shared;
use super::check::lap;
use super::read::Asked;
use super::refuse::{self, Refused};
use super::seal::{Kind, Opened, SETTLE_WITHIN};

/// What a caller brings back.
pub(crate) struct Receipt {
    /// Signed.
    pub(crate) text: String,
    /// How long its slots last without a heartbeat; `None` if it holds none.
    pub(crate) ttl: Option<Span>,
}

/// Decides at an estimated cost, or while slots are held; an allowed request gets its receipt.
pub(crate) async fn hold(shared: &Shared, asked: &Asked<'_>, kind: Kind) -> (Decision, Option<Receipt>) {
    let custom = asked.custom();
    let request = asked.request(&custom);
    let request = if kind == Kind::Slot { request.holding(random_slot()) } else { request };
    let start = shared.clock.now();
    let (decision, reservation) = shared.engine.reserve(&request).await;
    lap(shared, start);
    let receipt = reservation.map(|reservation| {
        let ttl = reservation.slot_ttl();
        Receipt { text: shared.sealer.seal(kind, reservation, shared.clock.wall()), ttl }
    });
    (decision, receipt)
}

/// Charges or refunds the difference between estimate and real cost; releases slots.
pub(crate) async fn settle(shared: &Shared, receipt: &str, cost: u64) -> Result<Settled, Refused> {
    let Opened { reservation, made } = shared.sealer.open(Kind::Reservation, receipt).map_err(refuse::of_receipt)?;
    if shared.clock.wall().since(made) > SETTLE_WITHIN {
        return Err(refuse::EXPIRED_RECEIPT);
    }
    let number = reservation.number().unwrap_or_default();
    if !shared.settlements.first(number) {
        return Ok(Settled { refunded: 0, extended: 0, repeated: true });
    }
    shared.engine.settle(reservation, cost).await.map_err(|_| {
        shared.settlements.forget(number);
        refuse::STORE_AWAY
    })
}

/// A heartbeat: whether the slots are still held, and how long they last.
pub(crate) async fn renew(shared: &Shared, receipt: &str) -> Result<(bool, Option<Span>), Refused> {
    let reservation = slot(shared, receipt)?;
    let ttl = reservation.slot_ttl();
    let renewed = shared.engine.renew(&reservation).await.map_err(|_| refuse::STORE_AWAY)?;
    Ok((renewed, ttl))
}

/// The slots come back; a second time changes nothing, and is told so.
pub(crate) async fn release(shared: &Shared, receipt: &str) -> Result<bool, Refused> {
    let reservation = slot(shared, receipt)?;
    let cost = reservation.cost();
    let settled = shared.engine.settle(reservation, cost).await.map_err(|_| refuse::STORE_AWAY)?;
    Ok(settled.refunded > 0)
}

fn slot(shared: &Shared, receipt: &str) -> Result<Reservation, Refused> {
    shared.sealer.open(Kind::Slot, receipt).map(|opened| opened.reservation).map_err(refuse::of_receipt)
}

/// Reservations that were settled, so that doing it twice changes nothing.
#[derive(Debug, Default)]
pub struct Settlements(Mutex<(HashSet<u64>, VecDeque<u64>)>);

impl Settlements {
    /// How many are remembered, in a few megabytes. Whoever settles more of them within a day, and then one of the first
    /// again, may be charged twice for it; refunded twice is nobody, that is the store's to remember.
    const MOST: usize = 1 << 18;

    /// True the first time.
    fn first(&self, number: u64) -> bool {
        let (known, order) = &mut *self.0.lock();
        if !known.insert(number) {
            return false;
        }
        order.push_back(number);
        if order.len() > Settlements::MOST
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        true
    }

    /// It did not happen after all.
    fn forget(&self, number: u64) {
        self.0.lock().0.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settlements_are_remembered_and_bounded() {
        let settlements = Settlements::default();
        assert!((0..Settlements::MOST as u64).all(|number| settlements.first(number)));
        assert!(!settlements.first(0));
        assert!(settlements.first(u64::MAX), "a new one");
        assert!(settlements.first(0), "the oldest was forgotten for it");
        assert_eq!(settlements.0.lock().0.len(), Settlements::MOST);
    }
}
