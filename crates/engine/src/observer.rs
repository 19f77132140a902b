//! A hook for every decision: metrics, logs and audits use it, so that the engine knows none of them.

use tollgate_core::Request;
use tollgate_store::StoreError;

use crate::Decision;

/// Observes decisions. Called on the path of the request: implementations must be fast and never block.
pub trait Observer: Send + Sync {
    /// A decision was made.
    fn decided(&self, requests: &[Request<'_>], decision: &Decision);

    /// The next step of a reservation was granted or denied.
    fn extended(&self, _decision: &Decision) {}

    /// The store did not answer; the decision that follows is made by policy.
    fn store_failed(&self, _error: &StoreError) {}
}
