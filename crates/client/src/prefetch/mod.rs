//! Decisions from units taken in advance: one call for a hundred decisions on a hot key.
//!
//! A key is everything that a request says but for its cost. The first request of a key reserves `units` of them; the
//! following ones are served from these, in this process, until they are used up or `life` is over; what is left is settled
//! back. Units are charged before they are spent, so the limit holds over all processes as promise P5 says: at most
//! min(processes × units, rate × life) more than the limit in any span of time, and nothing beyond it in the long run. A process
//! that dies loses what it holds, which is never more than its units.
//!
//! [`LeaseTable`] decides and knows neither network nor clock; this file asks the server and settles.

mod lease_table;

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tollgate_core::{DetachedRequest, Purpose, Request, Span};

use self::lease_table::{LeaseRefill, LeaseStep, LeaseTable, Returned};
use crate::failure::{CallError, Outage, OutageKind, RequestRejected};
use crate::transport::{ServerAnswer, ServerCall};
use crate::{Client, RemoteDecision, RemoteReservation};

/// Refills that one request waits for, at most: then the server is asked for it alone.
const ROUNDS_MAX: usize = 8;

/// Sizes of a [`Prefetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchConfig {
    /// Most units of one key that are taken at once. It begins with a tenth, and never takes more than a quarter of the
    /// limit. Default 100.
    pub units: u64,
    /// How long units are held before what is left is settled back. Default 1 s.
    pub life: Span,
    /// Most keys; others are checked one by one. Default 10,000.
    pub keys_max: usize,
    /// How long a refusal is repeated without asking again, at most: never beyond its own wait. Default 100 ms.
    pub deny_for: Span,
}

impl Default for PrefetchConfig {
    fn default() -> PrefetchConfig {
        PrefetchConfig { units: 100, life: Span::SECOND, keys_max: 10_000, deny_for: Span::from_millis(100) }
    }
}

/// Decisions from units taken in advance. Clones share them. Dropping the last one settles what is left, in the background;
/// [`close`](Prefetch::close) waits for it.
#[derive(Clone)]
pub struct Prefetch(Arc<PrefetchShared>);

struct PrefetchShared {
    client: Client,
    table: Mutex<LeaseTable>,
    runtime: Handle,
}

impl Prefetch {
    /// Takes units through this client. Must be called within a Tokio runtime, where what is left is settled.
    pub fn new(client: Client, config: PrefetchConfig) -> Prefetch {
        let runtime = Handle::current();
        let shared = Arc::new(PrefetchShared { client, table: Mutex::new(LeaseTable::new(config)), runtime });
        shared.runtime.spawn(sweep(Arc::downgrade(&shared), config.life));
        Prefetch(shared)
    }

    /// May this request pass? As [`Client::check`], with the mode `lease` where units at hand decided. Requests that
    /// only look, or that name other meters than requests, are asked of the server as they are.
    pub async fn check(&self, request: &Request<'_>) -> Result<RemoteDecision, RequestRejected> {
        if request.purpose != Purpose::Consume || !request.costs.is_empty() || request.cost == 0 {
            return self.0.client.check(request).await;
        }
        let key = format!("{:?}", request.cost(0));
        let deadline = tokio::time::Instant::now() + Duration::from(self.0.client.timeout());
        for _ in 0..ROUNDS_MAX {
            let (step, returned) = self.0.table.lock().take(&key, request.cost, self.now());
            self.give_back(returned);
            match step {
                LeaseStep::Decided(decision) => return Ok(*decision),
                LeaseStep::Failed(outage) => return Ok(self.0.client.decide_without(&outage, request)),
                LeaseStep::AskOnce => {
                    let decision = self.0.client.check(request).await?;
                    self.0.table.lock().asked(&key, &decision, self.now());
                    return Ok(decision);
                }
                LeaseStep::Refill(units) => self.refill(&key, request, units),
                LeaseStep::Wait(mut refilled) => {
                    if tokio::time::timeout_at(deadline, refilled.changed()).await.is_err() {
                        let outage = Outage::new(OutageKind::Timeout, "no units in time");
                        return Ok(self.0.client.decide_without(&outage, request));
                    }
                }
            }
        }
        self.0.client.check(request).await
    }

    /// Units at hand, over all keys.
    pub fn units_held(&self) -> u64 {
        self.0.table.lock().units_held()
    }

    /// Settles everything back and waits for the answers. Later checks take units again.
    pub async fn close(&self) {
        let returned = self.0.table.lock().drain();
        settle_all(&self.0.client, returned).await;
    }

    fn now(&self) -> tollgate_core::Time {
        self.0.client.0.clock.now()
    }

    /// Takes units in a task of its own: a caller that hangs up meanwhile must not lose them.
    fn refill(&self, key: &str, request: &Request<'_>, units: u64) {
        let (shared, key) = (self.0.clone(), key.to_owned());
        let owned = DetachedRequest::of(request);
        self.0.runtime.spawn(async move {
            let lists = owned.lists();
            let request = owned.request(&lists).cost(units);
            let answer = shared.client.ask(&ServerCall::Reserve { request: &request, by_status: false }).await;
            let refill = match answer {
                Ok(ServerAnswer::Decision(answer)) => LeaseRefill::Answered {
                    receipt: answer.receipt,
                    holds_slot: answer.ttl.is_some(),
                    decision: Box::new(answer.decision),
                },
                Ok(_) => LeaseRefill::Failed(Outage::new(OutageKind::Unreadable, "no decision")),
                // The caller finds out what is wrong with its request by asking itself.
                Err(CallError::Rejected(_)) => LeaseRefill::Rejected,
                Err(CallError::Outage(outage)) => LeaseRefill::Failed(outage),
            };
            let now = shared.client.0.clock.now();
            let returned = shared.table.lock().refilled(&key, units, refill, now);
            settle_all(&shared.client, returned.into_iter().collect()).await;
        });
    }

    fn give_back(&self, returned: Option<Returned>) {
        if let Some(returned) = returned {
            let client = self.0.client.clone();
            self.0.runtime.spawn(async move { settle_all(&client, vec![returned]).await });
        }
    }
}

/// Settles what has expired, twice in a life, for as long as the prefetch exists.
async fn sweep(shared: Weak<PrefetchShared>, life: Span) {
    let every = (Duration::from(life) / 2).max(Duration::from_millis(1));
    loop {
        tokio::time::sleep(every).await;
        let Some(shared) = shared.upgrade() else { return };
        let returned = shared.table.lock().expire(shared.client.0.clock.now());
        settle_all(&shared.client, returned).await;
    }
}

/// Settles back what was not spent. What the server does not answer stays charged: units are lost then, never spent twice.
async fn settle_all(client: &Client, returned: Vec<Returned>) {
    for Returned { receipt, spent } in returned {
        let reservation = RemoteReservation::from_receipt(receipt);
        let settled = client.settle(&reservation, &[(Request::REQUESTS, spent)]).await;
        if let Err(CallError::Outage(Outage { kind: OutageKind::CircuitOpen, .. })) = settled {
            return;
        }
    }
}

impl Drop for PrefetchShared {
    fn drop(&mut self) {
        let (client, returned) = (self.client.clone(), self.table.lock().drain());
        if !returned.is_empty() {
            self.runtime.spawn(async move { settle_all(&client, returned).await });
        }
    }
}

impl std::fmt::Debug for Prefetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prefetch").field("client", &self.0.client).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
