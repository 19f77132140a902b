//! A hook that sees every decision: metrics, logs and audits hang here, not in the engine.

use tollgate_core::Request;
use tollgate_store::StoreError;

use crate::Decision;

/// Sees what the engine does, on the path of the request: be quick, never block.
pub trait Observer: Send + Sync {
    /// A decision was made.
    fn decided(&self, requests: &[Request<'_>], decision: &Decision);

    /// The store did not answer; the decision that follows is made by policy.
    fn store_failed(&self, _error: &StoreError) {}
}
