//! The leaky bucket as a queue: a burst is delayed instead of refused.
//!
//! One unit leaves every interval. A request that would wait at most `max_delay` is admitted with its delay; a request
//! that would wait longer is refused. nginx's `limit_req` is this with `max_delay = burst · interval`.

use crate::integer::{div_floor, product};
use crate::{Algorithm, Ask, Effect, LimitError, Outcome, Span, State, Time, Wait};

/// `requests` units per `period` leave one after the other; no request waits longer than `max_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Time between two exits.
    interval: u64,
    max_delay: u64,
    /// The largest cost that may ever join: it takes as long to leave as a full queue.
    capacity: u64,
    requests: u64,
    period: Span,
}

/// When the queue will be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextFree(pub Time);

impl Queue {
    /// A queue that `requests` leave per `period`, with a delay of at most `max_delay`.
    pub fn new(requests: u64, period: Span, max_delay: Span) -> Result<Queue, LimitError> {
        if period.is_zero() {
            return Err(LimitError::ZeroWindow);
        }
        if requests == 0 {
            return Ok(Queue { interval: 1, max_delay: 0, capacity: 0, requests, period });
        }
        let interval = period.nanos() / requests;
        if interval == 0 {
            return Err(LimitError::TooFast);
        }
        let capacity = (max_delay.nanos() / interval).saturating_add(1);
        if u128::from(max_delay.nanos()) + product(interval, capacity) > u128::from(Span::MAX.nanos()) {
            return Err(LimitError::TooLong);
        }
        Ok(Queue { interval, max_delay: max_delay.nanos(), capacity, requests, period })
    }

    /// The largest cost that may ever join.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Units per [`period`](Queue::period).
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The period of the rate.
    pub fn period(&self) -> Span {
        self.period
    }

    /// The longest delay of an admitted request.
    pub fn max_delay(&self) -> Span {
        Span::from_nanos(self.max_delay)
    }

    /// Time between two exits.
    pub fn interval(&self) -> Span {
        Span::from_nanos(self.interval)
    }

    /// The furthest ahead a state can be; beyond this the clock stepped back or the limit was slower before.
    pub fn bound(&self) -> Span {
        Span::from_nanos(self.max_delay + self.interval * self.capacity)
    }

    fn delay(&self, free: &NextFree, now: Time) -> u64 {
        free.0.since(now).nanos().min(self.bound().nanos())
    }

    /// Requests of cost one that may still join.
    fn room(&self, delay: u64) -> u64 {
        match self.max_delay.checked_sub(delay) {
            Some(left) if self.capacity > 0 => left / self.interval + 1,
            _ => 0,
        }
    }
}

impl Algorithm for Queue {
    type State = NextFree;

    fn admits(&self, free: &NextFree, now: Time, ask: &Ask) -> bool {
        if self.capacity == 0 {
            return ask.least() == 0;
        }
        ask.least() <= self.capacity && self.delay(free, now) <= self.max_delay
    }

    fn record(&self, free: &mut NextFree, now: Time, ask: &Ask, effect: Effect) -> u64 {
        if self.capacity == 0 || !ask.writes() {
            return 0;
        }
        let delay = self.delay(free, now);
        let cost = match (effect, ask) {
            (Effect::Refuse, _) => 0,
            (Effect::Charge, Ask::UpTo(n)) => self.room(delay).min(*n),
            _ => ask.cost(),
        };
        let whole = u128::from(delay) + product(self.interval, cost);
        let after = u64::try_from(whole).unwrap_or(u64::MAX).min(self.bound().nanos());
        if after > 0 {
            free.0 = now.after(Span::from_nanos(after));
        }
        // Units beyond the bound were not recorded, and a refund must not return them.
        if u128::from(after) < whole { (after - delay) / self.interval } else { cost }
    }

    /// The delay is what was in the queue before the cost just recorded.
    fn view(&self, free: &NextFree, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let behind = self.delay(free, now);
        let before = u128::from(behind).saturating_sub(product(self.interval, granted));
        let over = behind.saturating_sub(self.max_delay);
        let wait = match allowed {
            true => Wait::None,
            false if ask.least() > self.capacity => Wait::Never,
            false => Wait::For(Span::from_nanos(over)),
        };
        let remaining = self.room(behind);
        // One more may join once the queue has shrunk to this.
        let to_next = || behind - (self.max_delay - remaining * self.interval);
        Outcome {
            remaining,
            used: behind.div_ceil(self.interval),
            wait,
            reset_after: Span::from_nanos(behind),
            next_unit_after: (remaining < self.capacity).then(|| Span::from_nanos(to_next())),
            delay: Span::from_nanos(u64::try_from(before).unwrap_or(0)),
            stamp: free.0,
            granted,
            ..Outcome::new(allowed, self.capacity)
        }
    }

    /// Only the newest charge can be refunded: later requests already got their delays from earlier ones.
    fn refund(&self, free: &mut NextFree, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        if stamp.is_some_and(|stamp| stamp != free.0) {
            return 0;
        }
        let delay = self.delay(free, now);
        let back = product(self.interval, units).min(u128::from(delay));
        free.0 = now.after(Span::from_nanos(delay - back as u64));
        div_floor(back, self.interval)
    }
}

impl State for NextFree {
    fn is_fresh(&self, now: Time) -> bool {
        self.0 <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by fuzzing receipts: the capacity overflowed before it was checked.
    #[test]
    fn a_delay_without_end_is_refused() {
        let refused = Queue::new(1, Span::from_nanos(1), Span::from_nanos(u64::MAX));
        assert_eq!(refused, Err(LimitError::TooLong));
    }

    #[test]
    fn an_empty_queue_has_room_and_no_wait() {
        let limit = Queue::new(1, Span::from_nanos(10), Span::from_nanos(7)).unwrap();
        let view = limit.view(&NextFree::default(), Time::from_secs(9), &Ask::Peek(1), true, 0);
        assert_eq!((view.remaining, view.next_unit_after), (1, None));
    }
}
