//! Limits that come with the request, as `CL.THROTTLE` has them: one charge, no rule.

use tollgate_core::{Charge, Time};
use tollgate_engine::SingleDecision;
use tollgate_store::{Store, StoreError};

use crate::service::Service;

impl Service {
    /// Decides one charge at once; `None` if the store has to be waited for.
    pub fn try_throttle(&self, charge: &Charge) -> Option<SingleDecision> {
        self.engine.try_take_one(charge)
    }

    /// Decides one charge, however long the store takes.
    pub async fn throttle(&self, charge: &Charge) -> SingleDecision {
        self.engine.take_one(charge).await
    }

    /// Resets the bucket of a charge.
    pub async fn forget(&self, charge: &Charge) -> Result<(), StoreError> {
        self.engine.forget_one(charge).await
    }

    /// When a charge was decided, on this node's clock. A store in memory tells this clock's time; a shared one its
    /// own.
    pub fn throttled_at(&self, decision: &SingleDecision) -> Time {
        if self.engine.store().is_shared() { self.clock.now() } else { decision.now }
    }

    /// Records the latency of a throttle.
    pub fn observe_throttle(&self, start: Time, end: Time) {
        self.metrics.observe_latency(end.since(start));
    }
}
