//! What hangs on the engine: every decision is counted and, by option, written down.

use std::sync::Arc;

use tollgate_core::Request;
use tollgate_engine::{Decision, Observer};
use tollgate_store::StoreError;

use super::decisions::DecisionLog;
use super::metrics::Metrics;
use crate::violations::Violations;

/// Feeds the metrics, the decision log and the counts of refusals.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Arc<Metrics>,
    decisions: Option<DecisionLog>,
    violations: Option<Arc<Violations>>,
}

impl Telemetry {
    /// An observer for an engine; without a log, decisions are only counted.
    pub fn new(metrics: Arc<Metrics>, decisions: Option<DecisionLog>) -> Telemetry {
        Telemetry { metrics, decisions, violations: None }
    }

    /// The same, counting who was refused.
    pub fn with_violations(self, violations: Arc<Violations>) -> Telemetry {
        Telemetry { violations: Some(violations), ..self }
    }
}

impl Observer for Telemetry {
    #[inline]
    fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        self.metrics.decided(requests, decision);
        if let Some(log) = &self.decisions {
            log.record(requests, decision);
        }
        if let Some(violations) = &self.violations {
            violations.decided(requests, decision);
        }
    }

    fn store_failed(&self, _: &StoreError) {
        self.metrics.store_failures.add_one();
    }
}
