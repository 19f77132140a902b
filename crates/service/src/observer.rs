//! The engine's observer: counts every decision, and writes it to the decision log if one is configured.

use std::sync::Arc;

use tollgate_core::{Charge, Request, Time};
use tollgate_engine::{Decision, Observer, Penalty, Settlement, UncountedReason};
use tollgate_store::StoreError;

use tollgate_telemetry::{DecisionLog, DecisionMetrics};

use crate::penalties::Penalties;
use crate::quota_marks::QuotaMarks;
use crate::steady_refusals::SteadyRefusals;
use crate::trace::DecisionTracer;
use crate::traffic::TrafficMonitor;
use crate::usage_history::UsageTracker;
use crate::violations::{Violations, client_text};

/// Passes decisions on to metrics, decision log and violations.
#[derive(Debug)]
pub struct ServiceObserver {
    metrics: Arc<DecisionMetrics>,
    decisions: Option<DecisionLog>,
    violations: Option<Arc<Violations>>,
    quota_marks: Option<Arc<QuotaMarks>>,
    usage: Option<Arc<UsageTracker>>,
    steady_refusals: Option<Arc<SteadyRefusals>>,
    traffic: Option<Arc<TrafficMonitor>>,
    penalties: Option<Arc<Penalties>>,
    tracer: Option<Arc<DecisionTracer>>,
}

impl ServiceObserver {
    /// An observer for an engine; without a log, decisions are only counted.
    pub fn new(metrics: Arc<DecisionMetrics>, decisions: Option<DecisionLog>) -> ServiceObserver {
        ServiceObserver {
            metrics,
            decisions,
            violations: None,
            quota_marks: None,
            usage: None,
            steady_refusals: None,
            traffic: None,
            penalties: None,
            tracer: None,
        }
    }

    /// Also reports the marks of quotas.
    pub fn with_quota_marks(self, quota_marks: Arc<QuotaMarks>) -> ServiceObserver {
        ServiceObserver { quota_marks: Some(quota_marks), ..self }
    }

    /// Also notes the usage of quotas, for its history.
    pub fn with_usage(self, usage: Arc<UsageTracker>) -> ServiceObserver {
        ServiceObserver { usage: Some(usage), ..self }
    }

    /// Also notices clients that are refused minute after minute.
    pub fn with_steady_refusals(self, steady_refusals: Arc<SteadyRefusals>) -> ServiceObserver {
        ServiceObserver { steady_refusals: Some(steady_refusals), ..self }
    }

    /// Also watches the traffic, if there is a monitor.
    pub fn with_traffic(self, traffic: Option<Arc<TrafficMonitor>>) -> ServiceObserver {
        ServiceObserver { traffic, ..self }
    }

    /// Also records spans.
    pub fn with_tracer(self, tracer: Arc<DecisionTracer>) -> ServiceObserver {
        ServiceObserver { tracer: Some(tracer), ..self }
    }

    /// Also notes penalties.
    pub fn with_penalties(self, penalties: Arc<Penalties>) -> ServiceObserver {
        ServiceObserver { penalties: Some(penalties), ..self }
    }

    /// Also counts violations.
    pub fn with_violations(self, violations: Arc<Violations>) -> ServiceObserver {
        ServiceObserver { violations: Some(violations), ..self }
    }
}

impl Observer for ServiceObserver {
    #[inline]
    fn decided(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        self.metrics.decided(requests, decision);
        if let Some(tracer) = &self.tracer {
            tracer.decided(requests, decision);
        }
        if let Some(log) = &self.decisions {
            log.record(requests, decision, charges);
        }
        if let Some(violations) = &self.violations {
            violations.decided(requests, decision, charges);
        }
        if let Some(steady_refusals) = &self.steady_refusals {
            steady_refusals.decided(requests, decision);
        }
        if let Some(quota_marks) = &self.quota_marks {
            quota_marks.decided(requests, decision, charges);
        }
        if let Some(usage) = &self.usage {
            usage.decided(requests, decision, charges);
        }
        if let Some(traffic) = &self.traffic {
            traffic.decided(requests, decision);
        }
    }

    fn extended(&self, decision: &Decision, charges: &[Charge]) {
        self.metrics.extended(decision);
        if let Some(log) = &self.decisions {
            log.record_extension(decision, charges);
        }
        if let Some(quota_marks) = &self.quota_marks {
            quota_marks.decided(&[], decision, charges);
        }
        if let Some(usage) = &self.usage {
            usage.decided(&[], decision, charges);
        }
    }

    fn settled(&self, settlement: &Settlement) {
        if let Some(log) = &self.decisions {
            log.record_settlement(settlement);
        }
        if let Some(quota_marks) = &self.quota_marks {
            quota_marks.settled(settlement);
        }
        if let Some(usage) = &self.usage {
            usage.settled(settlement);
        }
    }

    fn client_of(&self, request: &Request<'_>) -> String {
        client_text(request)
    }

    fn penalised(&self, penalty: &Penalty) {
        if let Some(penalties) = &self.penalties {
            penalties.begun(penalty);
        }
    }

    fn denials_uncounted(&self, count: u64, reason: UncountedReason) {
        if let Some(penalties) = &self.penalties {
            penalties.uncounted(count, reason);
        }
    }

    fn store_failed(&self, error: &StoreError, charges: &[Charge], wall: Time) {
        self.metrics.store_failed();
        if let Some(log) = self.decisions.as_ref().filter(|_| !error.kind.charged_nothing()) {
            log.record_unanswered(charges, wall);
        }
        if let Some(usage) = &self.usage {
            usage.unanswered(error, charges);
        }
    }
}
