//! The engine's observer: counts every decision, and writes it to the decision log if one is configured.

use std::sync::Arc;

use tollgate_core::Request;
use tollgate_engine::{Decision, Observer};
use tollgate_store::StoreError;

use tollgate_telemetry::{DecisionLog, DecisionMetrics};

use crate::quota_marks::QuotaMarks;
use crate::violations::Violations;

/// Passes decisions on to metrics, decision log and violations.
#[derive(Debug)]
pub struct ServiceObserver {
    metrics: Arc<DecisionMetrics>,
    decisions: Option<DecisionLog>,
    violations: Option<Arc<Violations>>,
    quota_marks: Option<Arc<QuotaMarks>>,
}

impl ServiceObserver {
    /// An observer for an engine; without a log, decisions are only counted.
    pub fn new(metrics: Arc<DecisionMetrics>, decisions: Option<DecisionLog>) -> ServiceObserver {
        ServiceObserver { metrics, decisions, violations: None, quota_marks: None }
    }

    /// Also reports the marks of quotas.
    pub fn with_quota_marks(self, quota_marks: Arc<QuotaMarks>) -> ServiceObserver {
        ServiceObserver { quota_marks: Some(quota_marks), ..self }
    }

    /// Also counts violations.
    pub fn with_violations(self, violations: Arc<Violations>) -> ServiceObserver {
        ServiceObserver { violations: Some(violations), ..self }
    }
}

impl Observer for ServiceObserver {
    #[inline]
    fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        self.metrics.decided(requests, decision);
        if let Some(log) = &self.decisions {
            log.record(requests, decision);
        }
        if let Some(violations) = &self.violations {
            violations.decided(requests, decision);
        }
        if let Some(quota_marks) = &self.quota_marks {
            quota_marks.decided(requests, decision);
        }
    }

    fn extended(&self, decision: &Decision) {
        self.metrics.extended(decision);
        if let Some(log) = &self.decisions {
            log.record_extension(decision);
        }
        if let Some(quota_marks) = &self.quota_marks {
            quota_marks.decided(&[], decision);
        }
    }

    fn store_failed(&self, _: &StoreError) {
        self.metrics.store_failed();
    }
}
