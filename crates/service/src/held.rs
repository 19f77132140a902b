//! Requests that run in this process: the gateway holds their slots and estimates until they end, however they end.
//!
//! The receipts never leave the process, so nothing is signed. One task owns them: it renews the slots, tops the
//! estimates up, and settles when the request ends. Dropping [`HeldRequest`] is an end like any other.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tollgate_core::Request;
use tollgate_engine::{Decision, Reservation, random_slot};

use crate::service::Service;

/// Commands that wait for the store: extensions come one after the other.
const COMMANDS_MAX: usize = 4;

/// Amounts of meters, by name.
pub type HeldAmounts = Vec<(String, u64)>;

/// The slots and estimates of an admitted request. Dropping it releases the slots; the estimates stay as reserved.
#[derive(Debug)]
#[must_use = "dropping it releases the slots at once"]
pub struct HeldRequest(mpsc::Sender<HeldCommand>);

#[derive(Debug)]
enum HeldCommand {
    Extend(HeldAmounts, oneshot::Sender<bool>),
    Settle(HeldAmounts),
    Leave(HeldAmounts),
    Cancel,
}

impl Service {
    /// Decides a request that runs in this process. What it holds is returned if a concurrency rule applies, or if it
    /// waits for its turn in a queue.
    pub async fn hold(self: &Arc<Self>, request: &Request<'_>) -> (Decision, Option<HeldRequest>) {
        let start = self.clock.now();
        let (decision, reservation) = self.engine.hold(&request.holding(random_slot())).await;
        self.record_latency(start);
        let reservation = reservation.filter(|held| held.slot().is_some() || !decision.delay().is_zero());
        (decision, reservation.map(|reservation| HeldRequest::start(self.clone(), reservation)))
    }

    /// The same for a request whose amounts are estimates: they can be extended while it runs, and are settled when it
    /// ends.
    pub async fn hold_estimates(self: &Arc<Self>, request: &Request<'_>) -> (Decision, Option<HeldRequest>) {
        let start = self.clock.now();
        let (decision, reservation) = self.engine.reserve(&request.holding(random_slot())).await;
        self.record_latency(start);
        (decision, reservation.map(|reservation| HeldRequest::start(self.clone(), reservation)))
    }

    /// True if some rule limits concurrency or delays: then requests that run in this process may have something to hold.
    pub fn has_holds(&self) -> bool {
        let generation = self.engine.rules();
        generation.rules.has_slots() || generation.rules.has_queues()
    }
}

impl HeldRequest {
    fn start(service: Arc<Service>, reservation: Reservation) -> HeldRequest {
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        tokio::spawn(hold(service, reservation, commands));
        HeldRequest(sender)
    }

    /// Charges further amounts, all or nothing; false if a limit refuses them. The store's deadline bounds the wait.
    pub fn extend(&self, more: HeldAmounts) -> impl Future<Output = bool> + Send + use<> {
        let commands = self.0.clone();
        async move {
            let (sender, granted) = oneshot::channel();
            commands.send(HeldCommand::Extend(more, sender)).await.is_ok() && granted.await.unwrap_or(false)
        }
    }

    /// Ends the request at these amounts; meters without one keep their estimate.
    pub fn settle(self, actual: HeldAmounts) {
        // Full only while extensions wait, and the sender of those has ended with the request.
        let _ = self.0.try_send(HeldCommand::Settle(actual));
    }

    /// Ends the request before its turn in a queue: its place is given back, and the rest is settled at these amounts.
    pub fn leave(self, actual: HeldAmounts) {
        let _ = self.0.try_send(HeldCommand::Leave(actual)); // nothing was extended yet
    }

    /// Ends the request as if it had never been: its slots are released, and everything that it was charged is given back.
    pub fn cancel(self) {
        let _ = self.0.try_send(HeldCommand::Cancel); // likewise
    }
}

/// Owns the receipts of a request until it ends.
async fn hold(service: Arc<Service>, mut reservation: Reservation, mut commands: mpsc::Receiver<HeldCommand>) {
    // A slot outlives two lost heartbeats.
    let beat = reservation.slot_ttl().map(|ttl| Duration::from_nanos(ttl.nanos()) / 3);
    let mut next = Instant::now() + beat.unwrap_or_default();
    loop {
        let command = tokio::select! {
            command = commands.recv() => command,
            () = sleep_until(next), if beat.is_some() => {
                let _ = service.engine.renew(&reservation).await; // tried again at the next beat
                next = Instant::now() + beat.unwrap_or_default();
                continue;
            }
        };
        match command {
            Some(HeldCommand::Extend(more, reply)) => {
                let granted = service.engine.extend_held(&mut reservation, &named(&more)).await.unwrap_or(false);
                let _ = reply.send(granted); // the request may have ended meanwhile
            }
            Some(HeldCommand::Settle(actual)) => return settle(&service, reservation, &actual).await,
            Some(HeldCommand::Leave(actual)) => return leave(&service, reservation, &actual).await,
            Some(HeldCommand::Cancel) => {
                let nothing: HeldAmounts = reservation.amounts().map(|(meter, _)| (meter.to_owned(), 0)).collect();
                return settle(&service, reservation, &nothing).await;
            }
            None => return settle(&service, reservation, &[]).await,
        }
    }
}

/// Without an answer of the store, slots expire by themselves, and estimates stay charged.
async fn settle(service: &Service, reservation: Reservation, actual: &[(String, u64)]) {
    let _ = service.engine.settle_costs(reservation, &named(actual)).await;
}

/// Without an answer of the store, the place stays taken until its turn has passed.
async fn leave(service: &Service, reservation: Reservation, actual: &[(String, u64)]) {
    let _ = service.engine.leave_queues(reservation, &named(actual)).await;
}

fn named(amounts: &[(String, u64)]) -> Vec<(&str, u64)> {
    amounts.iter().map(|(meter, amount)| (meter.as_str(), *amount)).collect()
}
