//! `/v1/reserve`, `/v1/settle` and `/v1/slots/…`: requests that are not over with their decision.
//!
//! Nothing is kept for them here: what a caller holds is a signed receipt. That a receipt refunds once is the store's
//! promise; that it charges once is kept here, in a bounded memory of what was settled.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;
use tollgate_core::Span;
use tollgate_engine::{Decision, Reservation, random_slot};

use super::check::lap;
use super::refuse::{self, refuse, refuse_body, say};
use super::seal::{Kind, Opened, SETTLE_WITHIN};
use super::{Api, Plan, Shared, read};
use crate::Reply;
use crate::answer;

/// Decides at an estimated cost, and hands out the receipt.
pub(super) async fn reserve(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    let asked = match read::asked(body) {
        Ok(asked) => asked,
        Err(fault) => return refuse_body(&fault, reply),
    };
    let custom = asked.custom();
    let start = shared.clock.now();
    let (decision, reservation) = shared.engine.reserve(&asked.request(&custom)).await;
    lap(shared, start);
    answer_with(shared, plan, &decision, reservation, Kind::Reservation, reply);
}

/// Decides a request that holds slots until it is released.
pub(super) async fn acquire(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    let asked = match read::asked(body) {
        Ok(asked) => asked,
        Err(fault) => return refuse_body(&fault, reply),
    };
    let custom = asked.custom();
    let start = shared.clock.now();
    let (decision, reservation) = shared.engine.reserve(&asked.request(&custom).holding(random_slot())).await;
    lap(shared, start);
    answer_with(shared, plan, &decision, reservation, Kind::Slot, reply);
}

/// The answer, with the receipt as its last member.
fn answer_with(
    shared: &Shared,
    plan: Plan,
    decision: &Decision,
    reservation: Option<Reservation>,
    kind: Kind,
    reply: &mut Reply,
) {
    answer::answer(decision, &Api::asking(plan), &shared.answer, reply);
    if let Some(reservation) = reservation {
        let ttl = reservation.slot_ttl();
        let name = if kind == Kind::Slot { "slot" } else { "reservation" };
        let receipt = shared.sealer.seal(kind, reservation, shared.clock.now());
        reply.body.pop(); // the closing brace: an allowed answer is an object with members
        reply.body.extend_from_slice(format!(",\"{name}\":\"{receipt}\"{}}}", ttl_member(ttl)).as_bytes());
    }
}

fn ttl_member(ttl: Option<Span>) -> String {
    ttl.map_or_else(String::new, |ttl| format!(",\"ttl_ms\":{}", ttl.nanos() / 1_000_000))
}

/// Charges or refunds the difference between estimate and real cost; releases slots.
pub(super) async fn settle(shared: &Shared, body: &[u8], reply: &mut Reply) {
    let (receipt, cost) = match read::receipt(body, "reservation", true) {
        Ok(read) => read,
        Err(fault) => return refuse_body(&fault, reply),
    };
    let Opened { reservation, made } = match shared.sealer.open(Kind::Reservation, &receipt) {
        Ok(opened) => opened,
        Err(rejected) => return refuse(&refuse::of_receipt(rejected), reply),
    };
    if shared.clock.now().since(made) > SETTLE_WITHIN {
        return refuse(&refuse::EXPIRED_RECEIPT, reply);
    }
    let number = reservation.number().unwrap_or_default();
    if !shared.settlements.first(number) {
        return say(200, "{\"settled\":false,\"refunded\":0,\"extended\":0}", reply);
    }
    match shared.engine.settle(reservation, cost).await {
        Ok(settled) => {
            let tollgate_engine::Settled { refunded, extended, repeated } = settled;
            let settled = !repeated;
            say(200, &format!("{{\"settled\":{settled},\"refunded\":{refunded},\"extended\":{extended}}}"), reply);
        }
        Err(_) => {
            shared.settlements.forget(number);
            refuse(&refuse::STORE_AWAY, reply);
        }
    }
}

/// A heartbeat.
pub(super) async fn renew(shared: &Shared, body: &[u8], reply: &mut Reply) {
    let Some(reservation) = slot(shared, body, reply) else { return };
    let ttl = ttl_member(reservation.slot_ttl());
    match shared.engine.renew(&reservation).await {
        Ok(renewed) => say(200, &format!("{{\"renewed\":{renewed}{ttl}}}"), reply),
        Err(_) => refuse(&refuse::STORE_AWAY, reply),
    }
}

/// The slots come back; a second time changes nothing.
pub(super) async fn release(shared: &Shared, body: &[u8], reply: &mut Reply) {
    let Some(reservation) = slot(shared, body, reply) else { return };
    let cost = reservation.cost();
    match shared.engine.settle(reservation, cost).await {
        Ok(settled) => say(200, &format!("{{\"released\":{}}}", settled.refunded > 0), reply),
        Err(_) => refuse(&refuse::STORE_AWAY, reply),
    }
}

fn slot(shared: &Shared, body: &[u8], reply: &mut Reply) -> Option<Reservation> {
    let receipt = match read::receipt(body, "slot", false) {
        Ok((receipt, _)) => receipt,
        Err(fault) => {
            refuse_body(&fault, reply);
            return None;
        }
    };
    match shared.sealer.open(Kind::Slot, &receipt) {
        Ok(opened) => Some(opened.reservation),
        Err(rejected) => {
            refuse(&refuse::of_receipt(rejected), reply);
            None
        }
    }
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
