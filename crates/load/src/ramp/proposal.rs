//! Limits that leave the server room, from the step at its knee.

use super::step::RampStep;

/// Where a limit on requests in flight may not start below: less says nothing about the server.
const IN_FLIGHT_MIN: u32 = 3;
/// How far above its start such a limit may grow by itself: the knee moves with the day's requests.
const GROWTH: u32 = 3;

/// Limits that leave the server room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitProposal {
    /// Requests per second, of all callers together.
    pub per_second: u64,
    /// Requests in flight, where an adaptive limit starts.
    pub in_flight: u32,
    /// Requests in flight, up to which it may grow.
    pub in_flight_max: u32,
}

impl LimitProposal {
    /// The rate stays below that of the step by `headroom`, a share; the requests in flight are those of the step.
    pub fn new(step: &RampStep, headroom: f64) -> LimitProposal {
        let per_second = (step.offered * (1.0 - headroom)).floor().max(1.0) as u64;
        let in_flight = (step.in_flight.ceil() as u32).max(IN_FLIGHT_MIN);
        LimitProposal { per_second, in_flight, in_flight_max: in_flight * GROWTH }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::step::StepVerdict;
    use super::*;

    #[test]
    fn the_rate_has_headroom_and_the_concurrency_starts_at_the_knee() {
        let step = RampStep {
            offered: 251.0,
            answered: 250.0,
            in_flight: 10.2,
            p50: Duration::ZERO,
            p99: Duration::ZERO,
            failed: 0.0,
            verdict: StepVerdict::KeptUp,
            first_error: None,
        };
        let proposal = LimitProposal::new(&step, 0.2);
        assert_eq!(proposal, LimitProposal { per_second: 200, in_flight: 11, in_flight_max: 33 });
        let slow = LimitProposal::new(&RampStep { offered: 1.0, in_flight: 0.1, ..step }, 0.5);
        assert_eq!(slow, LimitProposal { per_second: 1, in_flight: 3, in_flight_max: 9 });
    }
}
