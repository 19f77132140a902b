//! SPEC 5.3.

use super::{Fate, Model, ModelAsk, Nanos, narrow};
use crate::{LimitConfig, SpecOutcome};

#[derive(Default)]
pub(super) struct ModelQueue(Option<Nanos>);

struct Numbers {
    interval: Nanos,
    max_delay: Nanos,
    /// 0 blocks.
    capacity: Nanos,
    bound: Nanos,
}

fn numbers(config: &LimitConfig) -> Numbers {
    let &LimitConfig::Queue { count, period, max_delay } = config else { panic!("{config:?}") };
    if count == 0 {
        return Numbers { interval: 1, max_delay: 0, capacity: 0, bound: 0 };
    }
    let (interval, max_delay) = (Nanos::from(period / count), Nanos::from(max_delay));
    let capacity = max_delay / interval + 1;
    Numbers { interval, max_delay, capacity, bound: max_delay + interval * capacity }
}

impl Numbers {
    /// How many of cost one may join behind `delay`, one after the other.
    fn room(&self, delay: Nanos) -> Nanos {
        if delay > self.max_delay || self.capacity == 0 { 0 } else { (self.max_delay - delay) / self.interval + 1 }
    }
}

impl ModelQueue {
    fn delay(&self, n: &Numbers, now: Nanos) -> Nanos {
        (self.0.unwrap_or(now) - now).clamp(0, n.bound)
    }
}

impl Model for ModelQueue {
    fn ask(&mut self, config: &LimitConfig, now: Nanos, wish: ModelAsk) -> (SpecOutcome, u64) {
        let n = numbers(config);
        let least = Nanos::from(wish.least());
        let before = self.delay(&n, now);
        let allowed = least <= n.capacity && before <= n.max_delay;
        let fate = if n.capacity == 0 { Fate::Read } else { wish.fate(allowed, narrow(n.room(before))) };
        let behind = match fate {
            Fate::Charged(cost) => before + n.interval * Nanos::from(cost),
            Fate::Forced(cost) => (before + n.interval * Nanos::from(cost)).min(n.bound),
            Fate::Refused | Fate::Read => before,
        };
        if fate != Fate::Read && behind > 0 {
            self.0 = Some(now + behind);
        }
        let remaining = n.room(behind);
        let retry_after = match allowed {
            true => Some(0),
            false if least > n.capacity => None,
            false => Some(narrow(behind - n.max_delay)),
        };
        let next_unit = (remaining < n.capacity).then(|| narrow(behind - n.max_delay + remaining * n.interval));
        let answer = SpecOutcome {
            allowed,
            limit: narrow(n.capacity),
            remaining: narrow(remaining),
            retry_after,
            reset_after: narrow(behind),
            next_unit,
            delay: allowed.then(|| narrow(before)),
            in_use: narrow((behind + n.interval - 1) / n.interval),
        };
        (answer, narrow((behind - before) / n.interval))
    }

    fn refund(&mut self, config: &LimitConfig, now: Nanos, units: u64, stamp: Option<Nanos>) -> u64 {
        let n = numbers(config);
        let Some(free) = self.0 else { return 0 };
        if stamp.is_some_and(|stamp| stamp != free) {
            return 0;
        }
        let delay = self.delay(&n, now);
        let back = delay.min(n.interval * Nanos::from(units));
        self.0 = Some(now + delay - back);
        narrow(back / n.interval)
    }
}
