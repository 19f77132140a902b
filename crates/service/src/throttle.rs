//! Limits that come with the request, as `CL.THROTTLE` has them: one charge, no rule.

use tollgate_core::{Charge, Time};
use tollgate_engine::SingleDecision;
use tollgate_store::StoreError;

use crate::join::join;
use crate::service::Service;

/// A charge of a pipeline, with its decision unless the store has to be waited for.
pub type PipelinedCharge<'a> = (&'a Charge, Option<SingleDecision>);

impl Service {
    /// Decides one charge at once; `None` if the store has to be waited for. Latency counts from `start`; the returned
    /// time of the decision is the start of the next one.
    #[inline]
    pub fn try_throttle(&self, start: Time, charge: &Charge) -> Option<(SingleDecision, Time)> {
        let decision = self.engine.try_take_one(charge)?;
        Some((decision, self.record_latency_until(start, decision.now)))
    }

    /// Decides the undecided charges of a pipeline, which wait for the store together. Returns all decisions in order.
    pub async fn throttle_all<'a>(
        &self,
        start: Time,
        charges: impl ExactSizeIterator<Item = PipelinedCharge<'a>>,
    ) -> Vec<SingleDecision> {
        let width = self.batch_width(charges.len());
        let decide = |(charge, decided): PipelinedCharge<'a>| async move {
            match decided {
                Some(decision) => decision,
                None => self.throttle(start, charge).await,
            }
        };
        Box::pin(join(charges.map(decide), width.checks())).await
    }

    async fn throttle(&self, start: Time, charge: &Charge) -> SingleDecision {
        let decision = self.engine.take_one(charge).await;
        self.record_latency(start);
        decision
    }

    /// Resets the bucket of a charge.
    pub async fn forget(&self, charge: &Charge) -> Result<(), StoreError> {
        self.engine.forget_one(charge).await
    }
}
