//! The plan of a ramp, and when a server counts as keeping up.

use std::time::Duration;

use crate::error::LoadError;
use crate::plan::CONNECTIONS_MAX;
use crate::report::Second;

/// The plan of a ramp.
#[derive(Clone, Debug, PartialEq)]
pub struct RampPlan {
    /// Rate of the first step, per second.
    pub first: f64,
    /// How much higher the next rate is, until a step fails.
    pub factor: f64,
    /// Highest rate, per second.
    pub rate_max: f64,
    /// Measured time of a step.
    pub step: Duration,
    /// Time at the start of a step that is not measured.
    pub warm_up: Duration,
    /// Most connections, and so most requests in flight.
    pub connections: usize,
    /// Longest time for a reply.
    pub timeout: Duration,
    /// Most requests in all.
    pub requests_max: u64,
    /// Longest time in all.
    pub time_max: Duration,
    /// When the server counts as keeping up.
    pub criteria: KneeCriteria,
}

impl Default for RampPlan {
    fn default() -> RampPlan {
        RampPlan {
            first: 20.0,
            factor: 1.5,
            rate_max: 10_000.0,
            step: Duration::from_secs(3),
            warm_up: Duration::from_secs(1),
            connections: 500,
            timeout: Duration::from_secs(2),
            requests_max: 500_000,
            time_max: Duration::from_secs(300),
            criteria: KneeCriteria::default(),
        }
    }
}

impl RampPlan {
    /// Rejects what bounds nothing, or never ends.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let refuse = |text: String| Err(LoadError::invalid(text));
        match self {
            _ if !(self.first >= 1.0 && self.first <= self.rate_max && self.rate_max <= 1e6) => refuse(format!(
                "from {} to {} requests per second: the first is at least 1, the last at most 1000000",
                self.first, self.rate_max
            )),
            _ if !(self.factor > 1.0 && self.factor <= 4.0) => {
                refuse(format!("a factor of {}: it is above 1 and at most 4", self.factor))
            }
            _ if self.step < Duration::from_millis(500) => refuse("a step is at least 500ms long".to_owned()),
            _ if self.connections == 0 || self.connections > CONNECTIONS_MAX => {
                refuse(format!("{} connections: from 1 to {CONNECTIONS_MAX} can be kept", self.connections))
            }
            _ => Ok(()),
        }
    }
}

/// When a server counts as keeping up with a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KneeCriteria {
    /// How many times slower than without load the 99th percentile may be.
    pub slowdown: f64,
    /// How much slower it may be in any case: without this, the pauses of a busy machine are the knee of a fast server.
    pub grace: Duration,
    /// Which share of requests may fail.
    pub errors_max: f64,
    /// Which share of the offered rate is answered while it is offered.
    pub rate_min: f64,
}

impl Default for KneeCriteria {
    fn default() -> KneeCriteria {
        KneeCriteria { slowdown: 3.0, grace: Duration::from_millis(20), errors_max: 0.01, rate_min: 0.95 }
    }
}

/// Beyond so many times what is slow, a step ends early.
const HOPELESS: f64 = 5.0;

impl KneeCriteria {
    /// The longest 99th percentile of a server that keeps up.
    pub fn slow(&self, baseline: Duration) -> Duration {
        baseline.mul_f64(self.slowdown).max(baseline + self.grace)
    }

    /// Whether a second shows that going on is pointless: most requests fail, or take far too long.
    pub(super) fn is_hopeless(&self, second: &Second, baseline: Option<Duration>) -> bool {
        let failed = second.errors + second.denied;
        let is_late = baseline.is_some_and(|baseline| second.p50 > self.slow(baseline).mul_f64(HOPELESS));
        failed > second.allowed || is_late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(allowed: u64, errors: u64, p50_ms: u64) -> Second {
        let p50 = Duration::from_millis(p50_ms);
        Second { at: 1.0, rate: 1.0, allowed, denied: 0, errors, p50, p99: p50 }
    }

    #[test]
    fn a_fast_server_may_be_slower_by_the_grace() {
        let criteria = KneeCriteria::default();
        assert_eq!(criteria.slow(Duration::from_millis(1)), Duration::from_millis(21));
        assert_eq!(criteria.slow(Duration::from_millis(100)), Duration::from_millis(300));
    }

    #[test]
    fn a_step_ends_early_when_most_fails_or_is_far_too_late() {
        let (criteria, baseline) = (KneeCriteria::default(), Some(Duration::from_millis(100)));
        assert!(!criteria.is_hopeless(&second(100, 10, 200), baseline));
        assert!(criteria.is_hopeless(&second(100, 101, 200), baseline));
        assert!(criteria.is_hopeless(&second(100, 0, 1_501), baseline));
        assert!(!criteria.is_hopeless(&second(100, 0, 1_501), None), "nothing to compare with");
    }

    #[test]
    fn plans_without_an_end_are_rejected() {
        let plan = RampPlan::default();
        assert_eq!(plan.check(), Ok(()));
        let bad = [
            RampPlan { first: 0.5, ..plan.clone() },
            RampPlan { first: 20_000.0, ..plan.clone() },
            RampPlan { first: f64::NAN, ..plan.clone() },
            RampPlan { factor: 1.0, ..plan.clone() },
            RampPlan { step: Duration::ZERO, ..plan.clone() },
            RampPlan { connections: 0, ..plan.clone() },
        ];
        for plan in bad {
            assert!(plan.check().is_err(), "{plan:?}");
        }
    }
}
