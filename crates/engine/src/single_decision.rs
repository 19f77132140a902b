//! Decisions about one charge without a rule: for callers that supply a limit with every call, as clients of redis-cell
//! do.
//!
//! The failure policy is `local`: the store decides within the deadline, this node's share of the limit while the store
//! is unavailable. While limits are off, every charge passes.

use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::{Charge, Enforcement, Outcome, Time};
use tollgate_store::{Outcomes, Store, StoreError, StoreErrorKind};

use crate::{DecidedBy, Engine};

/// The decision about one charge.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub struct SingleDecision {
    /// Whether it may pass; also true if the bucket refused while limits are [shadowed](Enforcement::Shadow).
    pub allowed: bool,
    /// What decided.
    pub decided_by: DecidedBy,
    /// The time of the decision.
    pub now: Time,
    /// The outcome of the bucket.
    pub outcome: Outcome,
}

impl<S: Store> Engine<S> {
    /// [`take_one`](Engine::take_one), if the store answers synchronously. `None` has charged nothing.
    #[inline]
    pub fn try_take_one(&self, charge: &Charge) -> Option<SingleDecision> {
        match self.enforcement() {
            Enforcement::Enforce => self.take_one_now(charge),
            Enforcement::Shadow => self.take_one_now(&shadowed(charge)),
            Enforcement::Off => Some(self.skipped(charge)),
        }
    }

    /// Decides one charge, within the deadline. Never fails: if the store does, this node's share of the limit decides.
    pub async fn take_one(&self, charge: &Charge) -> SingleDecision {
        match self.try_take_one(charge) {
            Some(decision) => decision,
            None => Box::pin(self.take_one_later(charge)).await,
        }
    }

    /// Forgets the bucket of a charge, as if it were unused.
    pub async fn forget_one(&self, charge: &Charge) -> Result<(), StoreError> {
        let bucket = std::slice::from_ref(charge);
        self.fallback.forget_now(bucket);
        timeout(Duration::from(self.config.deadline), self.store.forget(bucket)).await.unwrap_or_else(|_| {
            let detail = "no answer by the deadline".to_owned();
            Err(StoreError { kind: StoreErrorKind::Indeterminate, detail })
        })
    }

    #[inline]
    fn take_one_now(&self, charge: &Charge) -> Option<SingleDecision> {
        let mut outcomes = Outcomes::new();
        let taken = self.store.try_take(std::slice::from_ref(charge), &mut outcomes)?;
        let outcome = *outcomes.first()?;
        Some(SingleDecision {
            allowed: taken.allowed,
            decided_by: DecidedBy::from(outcome.source),
            now: taken.now,
            outcome,
        })
    }

    async fn take_one_later(&self, charge: &Charge) -> SingleDecision {
        let charge = if self.enforcement() == Enforcement::Shadow { shadowed(charge) } else { *charge };
        let mut outcomes = Outcomes::new();
        let answer = self.ask(std::slice::from_ref(&charge), &mut outcomes).await;
        match (answer, outcomes.first()) {
            (Ok(taken), Some(outcome)) => {
                let (decided_by, outcome) = (DecidedBy::from(outcome.source), *outcome);
                SingleDecision { allowed: taken.allowed, decided_by, now: taken.now, outcome }
            }
            (Ok(_), None) => self.skipped(&charge), // a store answers every charge it was asked
            (Err(error), _) => self.take_share(&charge, &error),
        }
    }

    /// Decides by this node's share of the limit.
    #[cold]
    fn take_share(&self, charge: &Charge, error: &StoreError) -> SingleDecision {
        if let Some(observer) = &self.observer {
            observer.store_failed(error, std::slice::from_ref(charge), self.wall());
        }
        let nodes = self.store.nodes().unwrap_or(self.config.nodes);
        let own = Charge { limit: charge.limit.share(nodes), ..*charge };
        let mut outcomes = Outcomes::new();
        let taken = self.fallback.take_now(&[own], &mut outcomes);
        let outcome = outcomes.first().copied().unwrap_or_else(|| own.limit.unused(taken.now));
        SingleDecision { allowed: taken.allowed, decided_by: DecidedBy::Fallback, now: taken.now, outcome }
    }

    /// The decision while limits are off, with the outcome of an unused bucket.
    #[cold]
    fn skipped(&self, charge: &Charge) -> SingleDecision {
        let now = self.fallback.clock().now();
        SingleDecision { allowed: true, decided_by: DecidedBy::Off, now, outcome: charge.limit.unused(now) }
    }
}

fn shadowed(charge: &Charge) -> Charge {
    Charge { enforcement: Enforcement::Shadow, ..*charge }
}
