//! Decisions: at once where the store answers at once, otherwise in two steps, so that a transport pays for a future
//! only when there is something to wait for.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tollgate_core::{Request, Span, Time};
use tollgate_engine::{Decision, Undecided};
use tollgate_store::Store;

use crate::CheckRequest;
use crate::join::join;
use crate::service::Service;

/// A check that waits for the store. Nothing was charged yet.
#[derive(Debug)]
pub struct PendingCheck {
    undecided: Undecided,
    /// What the attempt to decide at once took. Until the check goes on, its latency does not count: a wait for a
    /// permit or a task is no part of the decision.
    spent: Span,
}

impl Service {
    /// Decides at once, all or nothing; `Err` if the store has to be waited for.
    pub fn try_decide(&self, requests: &[Request<'_>]) -> Result<Decision, PendingCheck> {
        let start = self.clock.now();
        match self.engine.try_decide(requests) {
            Ok(decision) => {
                self.record_latency(start);
                Ok(decision)
            }
            Err(undecided) => Err(self.pending(undecided, start)),
        }
    }

    /// The same for pipelined requests: latency counts from `start`, and the time of the decision is the next one's
    /// start.
    pub fn try_decide_from(&self, start: Time, requests: &[Request<'_>]) -> Result<(Decision, Time), PendingCheck> {
        match self.engine.try_decide(requests) {
            Ok(decision) => {
                let now = self.record_latency_until(start, decision.now);
                Ok((decision, now))
            }
            Err(undecided) => Err(self.pending(undecided, start)),
        }
    }

    /// Finishes what [`Service::try_decide`] began for the same requests.
    pub async fn decide_pending(&self, requests: &[Request<'_>], pending: PendingCheck) -> Decision {
        let PendingCheck { undecided, spent } = pending;
        let start = self.clock.now();
        let decision = self.engine.decide_later(requests, undecided).await;
        self.metrics.observe_latency(self.clock.now().since(start).plus(spent));
        decision
    }

    #[cold]
    pub(crate) fn pending(&self, undecided: Undecided, start: Time) -> PendingCheck {
        PendingCheck { undecided, spent: self.clock.now().since(start) }
    }

    /// Decides one request, waiting for the store up to the engine's deadline.
    pub async fn decide(&self, request: &CheckRequest<'_>) -> Decision {
        let lists = request.lists();
        let start = self.clock.now();
        let decision = self.engine.decide(&request.request(&lists)).await;
        self.record_latency(start);
        decision
    }

    /// Decides each request by itself and reports the decisions in order. Requests that wait for a shared store wait
    /// together.
    pub async fn decide_each(&self, requests: &[CheckRequest<'_>], mut report: impl FnMut(&Decision)) {
        let decided = match self.engine.store().is_shared() {
            true => 0,
            false => self.decide_each_now(requests, &mut report),
        };
        if let Some(rest) = requests.get(decided..).filter(|rest| !rest.is_empty()) {
            self.decide_concurrently(rest).await.iter().for_each(report);
        }
    }

    /// Decides one after the other until one has to wait; returns how many were decided.
    fn decide_each_now(&self, requests: &[CheckRequest<'_>], report: &mut impl FnMut(&Decision)) -> usize {
        let mut start = self.clock.now();
        for (index, request) in requests.iter().enumerate() {
            let lists = request.lists();
            match self.try_decide_from(start, &[request.request(&lists)]) {
                Ok((decision, now)) => {
                    report(&decision);
                    start = now;
                }
                Err(_) => return index,
            }
        }
        requests.len()
    }

    async fn decide_concurrently(&self, requests: &[CheckRequest<'_>]) -> Vec<Decision> {
        let width = self.batch_width(requests.len());
        Box::pin(join(requests.iter().map(|request| self.decide(request)), width.checks())).await
    }

    /// Gives back what requests were charged, as far as the buckets still owe it.
    pub async fn refund(&self, start: Time, within: Duration, requests: &[Request<'_>]) -> Option<Decision> {
        let decision = timeout(within, self.engine.refund(requests)).await;
        self.record_latency(start);
        decision.ok()?.ok()
    }

    /// Permission for up to `wanted` checks of one batch to wait for the store at the same time.
    pub(crate) fn batch_width(&self, wanted: usize) -> BatchWidth<'_> {
        BatchWidth::take(&self.in_batches, wanted)
    }

    /// Permission for one check of a stream to wait for the store; waits for it.
    pub async fn batch_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.in_batches.acquire().await.ok()
    }
}

/// How many checks of a batch run at once.
#[derive(Debug)]
pub(crate) struct BatchWidth<'a> {
    checks: usize,
    _permit: Option<SemaphorePermit<'a>>,
}

impl BatchWidth<'_> {
    fn take(permits: &Semaphore, wanted: usize) -> BatchWidth<'_> {
        let wanted = wanted.min(permits.available_permits());
        let permit = u32::try_from(wanted).ok().and_then(|wanted| permits.try_acquire_many(wanted).ok());
        BatchWidth { checks: if permit.is_some() { wanted.max(1) } else { 1 }, _permit: permit }
    }

    /// How many run at once; at least one.
    pub(crate) fn checks(&self) -> usize {
        self.checks
    }
}

#[cfg(test)]
mod tests {
    use tollgate_engine::Engine;

    use super::*;
    use crate::store::ConfiguredStore;

    /// Size of the future that a call would return.
    fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    /// The future is copied to the heap for every check that waits for a shared store.
    #[test]
    fn the_future_of_a_waiting_check_is_small() {
        let later = size(|(engine, undecided): (&'static Engine<ConfiguredStore>, Undecided)| {
            engine.decide_later(&[], undecided)
        });
        assert!(later <= 2560, "{later} bytes");
    }

    /// A decision in memory carries nothing of what a network call needs.
    #[test]
    fn the_future_of_a_decision_in_memory_is_smaller() {
        let decide = size(|engine: &'static Engine<ConfiguredStore>| engine.decide_all(&[]));
        assert!(decide <= 640, "{decide} bytes");
    }
}
