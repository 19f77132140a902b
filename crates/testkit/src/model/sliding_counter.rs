//! SPEC 5.6, solved for what fits: `prev · overlap ≤ (limit − cur − cost) · W`, so that all products stay below 2^127.

use super::{Fate, Model, ModelAsk, Nanos, narrow};
use crate::{LimitConfig, SpecOutcome};

/// The number of the newer window, and the units in both.
#[derive(Clone, Copy, Default)]
pub(super) struct ModelCounter {
    number: Nanos,
    prev: u64,
    cur: u64,
}

struct Numbers {
    limit: u64,
    window: Nanos,
    offset: Nanos,
}

fn numbers(config: &LimitConfig) -> Numbers {
    let &LimitConfig::SlidingCounter { limit, window, offset } = config else { panic!("{config:?}") };
    Numbers { limit, window: window.into(), offset: offset.into() }
}

impl Numbers {
    fn end(&self, number: Nanos) -> Nanos {
        self.offset + (number + 1) * self.window
    }

    /// Nanoseconds of the older window that still count, and those until our window begins, if it has not.
    fn overlap(&self, w: &ModelCounter, now: Nanos) -> (Nanos, Nanos) {
        let left = self.end(w.number) - now;
        (left.min(self.window), (left - self.window).max(0))
    }

    /// The weight of the older window, in begun units.
    fn weight(&self, w: &ModelCounter, now: Nanos) -> u64 {
        let (overlap, _) = self.overlap(w, now);
        narrow((Nanos::from(w.prev) * overlap).unsigned_abs().div_ceil(self.window.unsigned_abs()) as Nanos)
    }

    /// The largest cost that fits; `None` if not even zero does.
    fn room(&self, w: &ModelCounter, now: Nanos) -> Option<u64> {
        self.limit.checked_sub(w.cur)?.checked_sub(self.weight(w, now))
    }

    /// The wait until `cost` fits, which is at most the limit.
    fn wait(&self, w: &ModelCounter, now: Nanos, cost: u64) -> u64 {
        let (overlap, back) = self.overlap(w, now);
        let most = |free: u64, count: u64| Nanos::from(free) * self.window / Nanos::from(count.max(1));
        match self.limit.checked_sub(w.cur).and_then(|free| free.checked_sub(cost)) {
            Some(free) => narrow(back + overlap - most(free, w.prev).min(overlap)),
            None => narrow(back + overlap + self.window - most(self.limit - cost, w.cur).min(self.window)),
        }
    }
}

impl ModelCounter {
    fn turned(&self, n: &Numbers, now: Nanos) -> ModelCounter {
        let here = (now - n.offset).div_euclid(n.window);
        match here - self.number {
            _ if self.prev == 0 && self.cur == 0 => ModelCounter { number: here, prev: 0, cur: 0 },
            0 | -1 => *self,
            1 => ModelCounter { number: here, prev: self.cur, cur: 0 },
            ahead if ahead > 1 => ModelCounter { number: here, prev: 0, cur: 0 },
            _ => ModelCounter { number: here, ..*self },
        }
    }
}

impl Model for ModelCounter {
    fn ask(&mut self, config: &LimitConfig, now: Nanos, wish: ModelAsk) -> (SpecOutcome, u64) {
        let n = numbers(config);
        let mut w = self.turned(&n, now);
        let (before, room) = (w.cur, n.room(&w, now));
        let allowed = room.is_some_and(|room| wish.least() <= room);
        let fate = wish.fate(allowed, room.unwrap_or(0));
        if let Fate::Charged(cost) | Fate::Forced(cost) = fate {
            w.cur = w.cur.saturating_add(cost);
        }
        if fate != Fate::Read && (w.prev > 0 || w.cur > 0) {
            *self = w;
        }
        let remaining = n.room(&w, now).unwrap_or(0);
        let until_end = narrow(n.end(w.number) - now);
        let reset_after = match (w.cur, w.prev) {
            (0, 0) => 0,
            (0, _) => until_end,
            _ => until_end + narrow(n.window),
        };
        let answer = SpecOutcome {
            allowed,
            limit: n.limit,
            remaining,
            retry_after: match allowed {
                true => Some(0),
                false if wish.least() > n.limit => None,
                false => Some(n.wait(&w, now, wish.least())),
            },
            reset_after,
            next_unit: (remaining < n.limit).then(|| n.wait(&w, now, remaining + 1)),
            delay: allowed.then_some(0),
            in_use: w.cur.saturating_add(n.weight(&w, now)),
        };
        (answer, w.cur - before)
    }

    fn refund(&mut self, config: &LimitConfig, now: Nanos, units: u64, stamp: Option<Nanos>) -> u64 {
        let n = numbers(config);
        let mut w = self.turned(&n, now);
        let count = match stamp {
            Some(stamp) if stamp == n.end(w.number - 1) => &mut w.prev,
            Some(stamp) if stamp != n.end(w.number) => return 0,
            _ => &mut w.cur,
        };
        let back = units.min(*count);
        *count -= back;
        *self = w;
        back
    }
}
