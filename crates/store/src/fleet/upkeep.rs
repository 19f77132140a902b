//! Background work of a node: returns lease units, reports async charges, drops old entries.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

use tollgate_core::{Charge, Receipt};

use super::Fleet;
use crate::{Outcomes, Store};

/// Receipts given back in one call.
const RECEIPTS_MAX: usize = 256;

/// Calls under way at a time.
const CALLS_MAX: usize = 64;

impl<S: Store> Fleet<S> {
    /// One round of background work, to be called about every 50 ms by one task. Failures of the store need no
    /// handling: what can be retried is sent in the next round.
    pub async fn upkeep(&self) {
        let now = self.clock.now();
        self.return_lease_units(false).await;
        if self.async_buckets.is_due(now, self.config.interval()) {
            self.report_async_charges().await;
            self.async_buckets.sweep(self.store_time(now));
        }
        self.deny.sweep(now);
        if self.by_local.load(Ordering::Relaxed) > 0 {
            self.local.sweep();
        }
    }

    /// Returns all lease units and reports all async charges, before the node stops. From then on no lease is obtained;
    /// decisions continue.
    pub async fn close(&self) {
        self.refills.clear();
        self.return_lease_units(true).await;
        self.report_async_charges().await;
        self.refills.idle().await; // each of them returns what it got
    }

    pub(super) async fn return_lease_units(&self, closing: bool) {
        let receipts = self.leases.collect(self.clock.now(), closing);
        for batch in receipts.chunks(RECEIPTS_MAX) {
            self.inner_calls.fetch_add(1, Ordering::Relaxed);
            if self.inner.give_back(batch).await.is_ok() {
                let units = batch.iter().map(|receipt: &Receipt| receipt.units).sum::<u64>();
                self.returned.fetch_add(units, Ordering::Relaxed);
                self.invalidate(batch.iter());
            }
        }
    }

    /// Reports charges of async buckets to the store, bucket by bucket, and learns the charges of other nodes.
    async fn report_async_charges(&self) {
        let charges = self.async_buckets.start_reports(self.clock.now());
        for batch in charges.chunks(CALLS_MAX) {
            all(batch.iter().map(|charge| self.report_one(charge)).collect()).await;
        }
    }

    async fn report_one(&self, charge: &Charge) {
        let mut outcomes = Outcomes::new();
        let result = self.ask(std::slice::from_ref(charge), self.config.within, &mut outcomes).await;
        let result = match (&result, outcomes.first()) {
            (Ok((taken, _)), Some(outcome)) => Ok((outcome, taken.now)),
            (Err(error), _) => Err(error),
            (Ok(_), None) => return,
        };
        self.async_buckets.complete_report(charge, result, self.clock.now(), self.nodes_or_configured());
    }
}

/// Waits for all futures concurrently. They are few, and all are polled whenever one wakes.
async fn all<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|context| {
        waiting.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
