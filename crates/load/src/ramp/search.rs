//! Which rate a ramp offers next: a pure search for the boundary between good and bad rates.

use super::RampEnd;
use super::step::StepVerdict;

/// The boundary is known when the lowest bad rate is at most so many times the highest good one.
const CLOSE: f64 = 1.06;
/// The lowest rate: below it a step has too few requests.
const RATE_MIN: f64 = 1.0;

/// Up by a factor while steps are good, then half-way between good and bad.
#[derive(Clone, Debug)]
pub(super) struct RampSearch {
    first: f64,
    factor: f64,
    rate_max: f64,
    good: Option<f64>,
    bad: Option<f64>,
    /// A rate that failed once: it is offered again.
    doubted: Option<f64>,
}

impl RampSearch {
    pub(super) fn new(first: f64, factor: f64, rate_max: f64) -> RampSearch {
        RampSearch { first, factor, rate_max, good: None, bad: None, doubted: None }
    }

    /// The next rate, or why there is none.
    pub(super) fn next_rate(&self) -> Result<f64, RampEnd> {
        match (self.doubted, self.good, self.bad) {
            (Some(rate), ..) => Ok(rate),
            (_, None, None) => Ok(self.first),
            (_, Some(good), None) if good >= self.rate_max => Err(RampEnd::RateMax),
            (_, Some(good), None) => Ok((good * self.factor).min(self.rate_max)),
            (_, None, Some(bad)) if bad <= RATE_MIN => Err(RampEnd::TooSlow),
            (_, None, Some(bad)) => Ok((bad / 2.0).max(RATE_MIN)),
            (_, Some(good), Some(bad)) if bad <= good * CLOSE => Err(RampEnd::Found),
            (_, Some(good), Some(bad)) => Ok((good * bad).sqrt()),
        }
    }

    /// A step at this rate ended. Only the second failure at a rate counts, unless requests fail: that is no pause of the
    /// machine.
    pub(super) fn record(&mut self, rate: f64, verdict: StepVerdict) {
        let was_doubted = self.doubted.take().is_some();
        match verdict {
            StepVerdict::KeptUp => self.good = Some(rate),
            StepVerdict::Slow | StepVerdict::Behind if !was_doubted => self.doubted = Some(rate),
            StepVerdict::Slow | StepVerdict::Behind | StepVerdict::Failing => self.bad = Some(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a server that carries `capacity`; returns the highest good rate, why it ended, and the steps.
    fn search(capacity: f64, verdict: StepVerdict) -> (f64, RampEnd, Vec<f64>) {
        let mut search = RampSearch::new(20.0, 1.5, 10_000.0);
        let mut rates = Vec::new();
        loop {
            match search.next_rate() {
                Ok(rate) => {
                    rates.push(rate);
                    search.record(rate, if rate <= capacity { StepVerdict::KeptUp } else { verdict });
                }
                Err(end) => return (search.good.unwrap_or(0.0), end, rates),
            }
        }
    }

    #[test]
    fn the_boundary_is_found_within_six_percent_and_twenty_steps() {
        for capacity in [1.5, 7.0, 19.0, 20.0, 21.0, 250.0, 1_000.0, 9_990.0] {
            let (found, end, rates) = search(capacity, StepVerdict::Failing);
            assert_eq!(end, RampEnd::Found, "{capacity}: {rates:?}");
            assert!(found <= capacity && found * CLOSE >= capacity, "{capacity}: {found}");
            assert!(rates.len() <= 20, "{capacity}: {rates:?}");
        }
    }

    #[test]
    fn no_rate_is_far_above_what_is_known_to_be_carried() {
        let (.., rates) = search(250.0, StepVerdict::Slow);
        assert!(rates.iter().all(|rate| *rate <= 250.0 * 1.5), "{rates:?}");
    }

    #[test]
    fn a_slow_step_is_repeated_once_and_a_failing_one_is_not() {
        let repeats = |verdict| search(250.0, verdict).2.array_windows().filter(|[a, b]| a == b).count();
        assert!(repeats(StepVerdict::Slow) > 0);
        assert_eq!(repeats(StepVerdict::Failing), 0);
        let mut search = RampSearch::new(20.0, 1.5, 100.0);
        search.record(20.0, StepVerdict::Slow);
        assert_eq!(search.next_rate(), Ok(20.0));
        search.record(20.0, StepVerdict::KeptUp);
        assert_eq!(search.next_rate(), Ok(30.0), "the failure was a pause of the machine");
    }

    #[test]
    fn the_search_ends_at_its_bounds() {
        let (found, end, rates) = search(1e9, StepVerdict::Failing);
        assert_eq!((found, end, rates.last()), (10_000.0, RampEnd::RateMax, Some(&10_000.0)));
        assert_eq!(search(0.5, StepVerdict::Failing).1, RampEnd::TooSlow);
    }
}
