//! One step of a ramp, and whether the server kept up.

use std::time::Duration;

use super::plan::KneeCriteria;
use crate::report::LoadReport;

/// What a step showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepVerdict {
    /// The server kept up.
    KeptUp,
    /// The 99th percentile is too far above that without load.
    Slow,
    /// It answered less than was offered.
    Behind,
    /// Too many requests failed.
    Failing,
}

/// One step: the load and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RampStep {
    /// Requests offered per second.
    pub offered: f64,
    /// Requests answered with success per second, while the rate was offered.
    pub answered: f64,
    /// Requests in flight on average: the rate times the mean latency (Little's law).
    pub in_flight: f64,
    /// Median latency of what was answered.
    pub p50: Duration,
    /// 99th percentile of what was answered.
    pub p99: Duration,
    /// Share of requests that failed: errors, refusals, timeouts, and those that found no connection.
    pub failed: f64,
    /// Whether the server kept up.
    pub verdict: StepVerdict,
    /// Text of the first error.
    pub first_error: Option<String>,
}

impl RampStep {
    pub(super) fn new(
        offered: f64,
        report: &LoadReport,
        criteria: KneeCriteria,
        baseline: Option<Duration>,
    ) -> RampStep {
        let seconds = report.duration.as_secs_f64().max(f64::MIN_POSITIVE);
        // Replies that arrive after the measured time are counted, but the server was not in time with them.
        let answered = report.rate.min(report.allowed as f64 / seconds);
        let latency = &report.allowed_latency;
        let all = (report.sent + report.unsent).max(1) as f64;
        let failed = (report.errors.total() + report.denied + report.unsent) as f64 / all;
        let (p50, p99) = (latency.quantile(0.5), latency.quantile(0.99));
        let verdict = match () {
            () if failed > criteria.errors_max => StepVerdict::Failing,
            // One request more or less, at the ends of the measured time, is no sign of anything.
            () if answered + 1.0 / seconds < offered * criteria.rate_min => StepVerdict::Behind,
            () if baseline.is_some_and(|baseline| p99 > criteria.slow(baseline)) => StepVerdict::Slow,
            () => StepVerdict::KeptUp,
        };
        let in_flight = answered * latency.mean().as_secs_f64();
        RampStep { offered, answered, in_flight, p50, p99, failed, verdict, first_error: report.errors.first.clone() }
    }

    /// Whether the server kept up.
    pub fn kept_up(&self) -> bool {
        self.verdict == StepVerdict::KeptUp
    }
}
