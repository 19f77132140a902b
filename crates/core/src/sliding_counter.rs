//! Sliding window counter: two fixed windows, the older one weighed by how much of it still overlaps.
//!
//! `estimate = prev · (W − e) / W + cur`, compared exactly by multiplying with W instead of dividing. Constant memory
//! and no boundary burst, at the price of an assumption: that the older window's traffic was even. Where it was not,
//! a window may see just under twice the limit.

use crate::algorithm::CompactSpan;
use crate::integer::{div_ceil, div_floor, product, window_end};
use crate::{Algorithm, Ask, Effect, LimitError, Outcome, Span, State, Time, Wait};

/// At most `limit` units, estimated over the last `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounter {
    limit: u64,
    window: Span,
    offset: Span,
}

/// The counts of two neighbouring windows. Packed to four bytes: a million of these live in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct Counter {
    /// The first moment after the newer window.
    end: Time,
    /// Units recorded in the older window.
    prev: u64,
    /// Units recorded in the newer one.
    cur: u64,
    /// The length of a window: how long the older count still weighs.
    linger: CompactSpan,
}

impl Counter {
    /// The counts of the window that ends at `end` and of the one before; `window` is their length.
    pub fn new(end: Time, prev: u64, cur: u64, window: Span) -> Counter {
        Counter { end, prev, cur, linger: CompactSpan::of(window) }
    }
}

impl SlidingCounter {
    /// `limit` units per sliding `window`. A limit of zero refuses everything.
    pub fn new(limit: u64, window: Span) -> Result<SlidingCounter, LimitError> {
        match window.nanos() {
            0 => Err(LimitError::ZeroWindow),
            n if n > Span::MAX.nanos() => Err(LimitError::TooLong),
            _ => Ok(SlidingCounter { limit, window, offset: Span::ZERO }),
        }
    }

    /// Moves the windows by `offset`, so that the windows of many keys do not end at the same moment.
    pub fn with_offset(self, offset: Span) -> SlidingCounter {
        SlidingCounter { offset, ..self }
    }

    /// How far the windows are moved from the epoch; less than one window.
    pub fn offset(&self) -> Span {
        Span::from_nanos(self.offset.nanos() % self.window.nanos())
    }

    /// The same windows with another limit.
    pub fn with_limit(self, limit: u64) -> SlidingCounter {
        SlidingCounter { limit, ..self }
    }

    /// Units per sliding window.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Length of the window.
    pub fn window(&self) -> Span {
        self.window
    }

    fn rolled(&self, state: &Counter, now: Time) -> RolledCounts {
        let Counter { end, prev, cur, .. } = *state;
        let here = || window_end(now, self.window, self.offset);
        let (end, prev, cur) = match end.since(now).nanos() {
            _ if prev == 0 && cur == 0 => (here(), 0, 0),
            0 if now < end.after(self.window) => (end.after(self.window), cur, 0),
            0 => (here(), 0, 0),
            left if left > 2 * self.window.nanos() => (here(), prev, cur), // the clock stepped far back
            _ => (end, prev, cur),
        };
        let left = end.since(now).nanos();
        RolledCounts { end, left, overlap: left.min(self.window.nanos()), prev, cur }
    }

    /// `limit · W`, the budget of the scaled comparison.
    fn budget(&self) -> u128 {
        product(self.limit, self.window.nanos())
    }

    /// The scaled estimate if `cost` more were recorded.
    fn need(&self, t: &RolledCounts, cost: u64) -> u128 {
        product(t.prev, t.overlap)
            .saturating_add((u128::from(t.cur) + u128::from(cost)) * u128::from(self.window.nanos()))
    }

    fn room(&self, t: &RolledCounts) -> u64 {
        div_floor(self.budget().saturating_sub(self.need(t, 0)), self.window.nanos())
    }

    /// When `cost` fits: once the older window's weight is small enough, or, if the newer window alone is too full,
    /// some time into the next window, when the newer one has become the older.
    fn wait(&self, t: &RolledCounts, cost: u64) -> u64 {
        let excess = |need: u128| need.saturating_sub(self.budget());
        let back = t.left - t.overlap; // nanoseconds until the newer window starts, after a small backward step
        if u128::from(t.cur) + u128::from(cost) <= u128::from(self.limit) && t.prev > 0 {
            return back.saturating_add(div_ceil(excess(self.need(t, cost)), t.prev));
        }
        let alone = (u128::from(t.cur) + u128::from(cost)) * u128::from(self.window.nanos());
        t.left.saturating_add(div_ceil(excess(alone), t.cur.max(1)))
    }
}

/// The counts as of now. `left`: until the newer window ends; `overlap`: how much of the older one still counts.
struct RolledCounts {
    end: Time,
    left: u64,
    overlap: u64,
    prev: u64,
    cur: u64,
}

impl Algorithm for SlidingCounter {
    type State = Counter;

    fn admits(&self, state: &Counter, now: Time, ask: &Ask) -> bool {
        self.need(&self.rolled(state, now), ask.least()) <= self.budget()
    }

    fn record(&self, state: &mut Counter, now: Time, ask: &Ask, effect: Effect) -> u64 {
        if !ask.writes() {
            return 0;
        }
        let t = self.rolled(state, now);
        let cost = match (effect, ask) {
            (Effect::Refuse, _) => 0,
            (Effect::Charge, Ask::UpTo(n)) => self.room(&t).min(*n),
            _ => ask.cost(),
        };
        let cur = t.cur.saturating_add(cost);
        if cur > 0 || t.prev > 0 {
            *state = Counter::new(t.end, t.prev, cur, self.window);
        }
        cur - t.cur
    }

    fn view(&self, state: &Counter, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let t = self.rolled(state, now);
        let remaining = self.room(&t);
        let wait = match allowed {
            true => Wait::None,
            false if ask.least() > self.limit => Wait::Never,
            false => Wait::For(Span::from_nanos(self.wait(&t, ask.least()))),
        };
        let reset_after = match (t.cur, t.prev) {
            (0, 0) => 0,
            (0, _) => t.left,
            _ => t.left.saturating_add(self.window.nanos()),
        };
        let can_grow = reset_after > 0 && remaining < self.limit;
        Outcome {
            remaining,
            used: div_ceil(self.need(&t, 0), self.window.nanos()),
            wait,
            reset_after: Span::from_nanos(reset_after),
            next_unit_after: can_grow.then(|| Span::from_nanos(self.wait(&t, remaining + 1))),
            stamp: t.end,
            granted,
            ..Outcome::new(allowed, self.limit)
        }
    }

    fn refund(&self, state: &mut Counter, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        let mut t = self.rolled(state, now);
        let count = match stamp {
            None => &mut t.cur,
            Some(stamp) if stamp == t.end => &mut t.cur,
            Some(stamp) if stamp.after(self.window) == t.end => &mut t.prev,
            Some(_) => return 0,
        };
        let back = units.min(*count);
        *count -= back;
        *state = Counter::new(t.end, t.prev, t.cur, self.window);
        back
    }
}

impl State for Counter {
    fn is_fresh(&self, now: Time) -> bool {
        let Counter { end, prev, cur, linger } = *self;
        match (cur, prev) {
            (0, 0) => true,
            (0, _) => end <= now,
            _ => end.after(linger.span()) <= now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_after_the_epoch_keeps_to_its_offset() {
        let limit = SlidingCounter::new(1, Span::from_nanos(6)).unwrap().with_offset(Span::from_nanos(1));
        let (mut state, now) = (Counter::default(), Time::from_nanos(5));
        limit.record(&mut state, now, &Ask::Consume(1), Effect::Charge);
        assert_eq!(limit.view(&state, now, &Ask::Peek(0), true, 0).reset_after, Span::from_nanos(8));
    }
}
