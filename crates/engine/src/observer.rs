//! A hook for every decision: metrics, logs and audits use it, so that the engine knows none of them.

use tollgate_core::{Charge, Request, Time};
use tollgate_store::StoreError;

use crate::{Decision, Penalty, Settlement, UncountedReason};

/// Observes decisions. Called on the path of the request: implementations must be fast and never block.
pub trait Observer: Send + Sync {
    /// A decision was made. `charges` are what the store was asked; [`Ruling::charge`](crate::Ruling::charge) is an
    /// index into them.
    fn decided(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]);

    /// The next step of a reservation was granted or denied.
    fn extended(&self, _decision: &Decision, _charges: &[Charge]) {}

    /// A reservation was settled, or usage was reported that did not happen after all.
    fn settled(&self, _settlement: &Settlement) {}

    /// How penalties name the client of a request.
    fn client_of(&self, _request: &Request<'_>) -> String {
        String::new()
    }

    /// A penalty has begun. Called after the decision that brought it, maybe by another task.
    fn penalised(&self, _penalty: &Penalty) {}

    /// So many denials do not count towards penalties.
    fn denials_uncounted(&self, _count: u64, _reason: UncountedReason) {}

    /// The store did not answer; the decision that follows, if any, is made by policy. Unless the
    /// [kind](StoreError::kind) of the error excludes it, the store may have recorded the charges. `wall` is the time of
    /// this node.
    fn store_failed(&self, _error: &StoreError, _charges: &[Charge], _wall: Time) {}
}
