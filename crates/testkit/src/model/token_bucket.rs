//! SPEC 5.2: tokens and the time of the last refill, in integer shares of a token, so that nothing is rounded.

use super::{Nanos, narrow};
use crate::SpecOutcome;

/// A bucket of `capacity` tokens, one more per `interval` nanoseconds. For clocks that only run forward.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    interval: Nanos,
    capacity: Nanos,
    /// In shares: `interval` of them are one token.
    shares: Nanos,
    last: Nanos,
}

impl TokenBucket {
    /// A full bucket.
    pub fn full(interval: u64, capacity: u64, now: Nanos) -> TokenBucket {
        let (interval, capacity) = (Nanos::from(interval), Nanos::from(capacity));
        TokenBucket { interval, capacity, shares: interval * capacity, last: now }
    }

    /// Takes `cost` tokens if they are there.
    pub fn take(&mut self, now: Nanos, cost: u64) -> SpecOutcome {
        let full = self.interval * self.capacity;
        self.shares = full.min(self.shares + now - self.last);
        self.last = now;
        let price = self.interval * Nanos::from(cost);
        let allowed = self.shares >= price;
        if allowed {
            self.shares -= price;
        }
        let missing = full - self.shares;
        SpecOutcome {
            allowed,
            limit: narrow(self.capacity),
            remaining: narrow(self.shares / self.interval),
            retry_after: match allowed {
                true => Some(0),
                false if price > full => None,
                false => Some(narrow(price - self.shares)),
            },
            reset_after: narrow(missing),
            next_unit: (missing > 0).then(|| narrow(self.interval - self.shares % self.interval)),
            delay: allowed.then_some(0),
            in_use: narrow((missing + self.interval - 1) / self.interval),
        }
    }
}
