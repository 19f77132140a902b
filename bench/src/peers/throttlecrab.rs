//! throttlecrab's library: a map without sharing, so it stands behind one lock, as its own server has one actor.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use throttlecrab::{PeriodicStore, RateLimiter};

use super::{BURST, KeyedLimiter, PERIOD};

/// Its fastest store, with the sweep put off until after the run.
pub struct Throttlecrab(Mutex<RateLimiter<PeriodicStore>>);

impl Throttlecrab {
    /// An empty limiter.
    pub fn new() -> Throttlecrab {
        let store = PeriodicStore::builder().cleanup_interval(Duration::from_secs(86_400)).build();
        Throttlecrab(Mutex::new(RateLimiter::new(store)))
    }
}

impl KeyedLimiter for Throttlecrab {
    type Hand = ();

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "the peer takes the wall clock")]
    fn check(&self, (): &mut (), key: &str) -> bool {
        let now = SystemTime::now();
        let period = PERIOD.as_secs() as i64;
        let answer = self.0.lock().rate_limit(key, i64::from(BURST), 1, period, 1, now);
        answer.is_ok_and(|(allowed, _)| allowed)
    }
}
