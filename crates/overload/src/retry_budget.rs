//! Retries as a share of requests: when everything fails, retries must not double the load.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many retries there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudgetConfig {
    /// Retries per hundred requests.
    pub percent: u32,
    /// Retries that may follow each other at once, and most that are saved up.
    pub burst: u32,
}

impl Default for RetryBudgetConfig {
    fn default() -> RetryBudgetConfig {
        RetryBudgetConfig { percent: 10, burst: 10 }
    }
}

/// A token bucket that requests fill and retries empty. Over any number of requests there are at most `percent` of them
/// in retries, and `burst`.
#[derive(Debug)]
pub struct RetryBudget {
    config: RetryBudgetConfig,
    /// Hundredths of a retry.
    credit: AtomicU64,
}

/// Hundredths.
const RETRY: u64 = 100;

impl RetryBudget {
    /// A full bucket.
    pub fn new(config: RetryBudgetConfig) -> RetryBudget {
        RetryBudget { config, credit: AtomicU64::new(u64::from(config.burst) * RETRY) }
    }

    /// A request was sent for the first time.
    pub fn record_request(&self) {
        let most = u64::from(self.config.burst) * RETRY;
        let add = |credit: u64| (credit < most).then(|| (credit + u64::from(self.config.percent)).min(most));
        // A full bucket stays as it is: no write, no contention.
        let _ = self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes a retry from the budget; false if there is none.
    pub fn try_retry(&self) -> bool {
        let take = |credit: u64| credit.checked_sub(RETRY);
        self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_requests_may_be_retried() {
        let budget = RetryBudget::new(RetryBudgetConfig { percent: 10, burst: 5 });
        let mut retries = 0;
        for _ in 0..1_000 {
            budget.record_request();
            retries += u32::from(budget.try_retry());
        }
        assert_eq!(retries, 5 + 99, "the burst, then one per ten");
    }

    #[test]
    fn quiet_times_save_no_more_than_the_burst() {
        let budget = RetryBudget::new(RetryBudgetConfig { percent: 100, burst: 3 });
        (0..1_000).for_each(|_| budget.record_request());
        assert_eq!((0..10).filter(|_| budget.try_retry()).count(), 3);
        let none = RetryBudget::new(RetryBudgetConfig { percent: 10, burst: 0 });
        none.record_request();
        assert!(!none.try_retry());
    }
}
