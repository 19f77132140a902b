//! How many retries the calls of one layer may make together.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Span, Time};
use tollgate_overload::{RetryBudget, RetryBudgetConfig};

/// A retry budget with a floor: a tenth of the calls, and one retry a second in any case, so that a program that makes
/// few calls still repeats them.
#[derive(Debug)]
pub struct RetryAllowance {
    budget: RetryBudget,
    /// When the last retry was made, in nanoseconds.
    last: AtomicU64,
}

impl Default for RetryAllowance {
    fn default() -> RetryAllowance {
        RetryAllowance::new(RetryBudgetConfig::default())
    }
}

impl RetryAllowance {
    /// A full budget.
    pub fn new(config: RetryBudgetConfig) -> RetryAllowance {
        RetryAllowance { budget: RetryBudget::new(config), last: AtomicU64::new(0) }
    }

    /// A call was made for the first time.
    pub fn record_call(&self) {
        self.budget.record_request();
    }

    /// Takes a retry; false if there is none.
    pub fn try_retry(&self, now: Time) -> bool {
        if self.budget.try_retry() {
            self.last.fetch_max(now.nanos(), Ordering::Relaxed);
            return true;
        }
        let is_due = |last: u64| (now.since(Time::from_nanos(last)) >= Span::SECOND).then_some(now.nanos());
        self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_retry_a_second_beyond_the_budget() {
        let allowance = RetryAllowance::new(RetryBudgetConfig { percent: 0, burst: 2 });
        let at = |millis| Time::from_secs(1_000).after(Span::from_millis(millis));
        let made = [0, 0, 0, 999, 1_000, 1_001, 2_000, 9_000].map(|millis| allowance.try_retry(at(millis)));
        assert_eq!(made, [true, true, false, false, true, false, true, true]);
    }
}
