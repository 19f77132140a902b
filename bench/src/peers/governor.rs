//! governor, keyed, on its DashMap: with its default clock, and with the standard library's beside it.
//!
//! It wants `&String`; a caller that has a `&str` copies it into a buffer it keeps, which is cheaper than a new string.

use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use super::{BURST, KeyedLimiter, PERIOD};

/// governor with the clock `C`.
pub struct OnClock<C: Clock>(RateLimiter<String, DashMapStateStore<String>, C, NoOpMiddleware<C::Instant>>);

/// governor as it comes: quanta reads the processor's counter.
pub type Governor = OnClock<DefaultClock>;
/// governor on `Instant`.
pub type GovernorStd = OnClock<MonotonicClock>;

impl<C: Clock + Default> OnClock<C> {
    /// An empty limiter.
    pub fn new() -> OnClock<C> {
        let burst = NonZeroU32::new(BURST).unwrap_or(NonZeroU32::MAX);
        let quota = Quota::with_period(PERIOD).expect("the period is not zero").allow_burst(burst);
        OnClock(RateLimiter::dashmap_with_clock(quota, C::default()))
    }
}

impl<C: Clock + Sync> KeyedLimiter for OnClock<C> {
    type Hand = String;

    #[inline]
    fn check(&self, buffer: &mut String, key: &str) -> bool {
        buffer.clear();
        buffer.push_str(key);
        self.0.check_key(buffer).is_ok()
    }
}
