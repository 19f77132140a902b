//! Fixed window: a counter that is reset when the window ends.
//!
//! The simplest algorithm and the coarsest: two full windows may pass in a row around a boundary. The state keeps the
//! end of its window instead of the window's number, so that it knows when it may be dropped.

use crate::integer::window_end;
use crate::{Algorithm, Ask, Effect, LimitError, Outcome, Span, State, Time, Wait};

/// At most `limit` units in every window; windows start at `offset` and every `window` after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    limit: u64,
    window: Span,
    offset: Span,
}

/// The count of one window, and when that window ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first moment after the window.
    pub end: Time,
    /// Units recorded in it.
    pub count: u64,
}

impl FixedWindow {
    /// `limit` units per `window`, aligned to the epoch. A limit of zero refuses everything.
    pub fn new(limit: u64, window: Span) -> Result<FixedWindow, LimitError> {
        match window.nanos() {
            0 => Err(LimitError::ZeroWindow),
            n if n > Span::MAX.nanos() => Err(LimitError::TooLong),
            _ => Ok(FixedWindow { limit, window, offset: Span::ZERO }),
        }
    }

    /// Moves all windows by `offset`, so that many keys are not reset at the same moment.
    pub fn with_offset(self, offset: Span) -> FixedWindow {
        FixedWindow { offset, ..self }
    }

    /// How far the windows are moved from the epoch; less than one window.
    pub fn offset(&self) -> Span {
        Span::from_nanos(self.offset.nanos() % self.window.nanos())
    }

    /// The same windows with another limit.
    pub fn with_limit(self, limit: u64) -> FixedWindow {
        FixedWindow { limit, ..self }
    }

    /// Units per window.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Length of a window.
    pub fn window(&self) -> Span {
        self.window
    }

    /// The state as of `now`: reset if its window is over or empty; kept through a small backward step of the clock;
    /// after a step of more than a window, moved with its count to the window that contains `now`.
    fn rolled(&self, state: &Window, now: Time) -> Window {
        let left = state.end.since(now).nanos();
        if left == 0 || state.count == 0 {
            return Window { end: window_end(now, self.window, self.offset), count: 0 };
        }
        if left > 2 * self.window.nanos() {
            return Window { end: window_end(now, self.window, self.offset), ..*state };
        }
        *state
    }
}

impl Algorithm for FixedWindow {
    type State = Window;

    fn admits(&self, state: &Window, now: Time, ask: &Ask) -> bool {
        let used = if state.end <= now { 0 } else { state.count };
        used.checked_add(ask.least()).is_some_and(|sum| sum <= self.limit)
    }

    fn record(&self, state: &mut Window, now: Time, ask: &Ask, effect: Effect) -> u64 {
        if !ask.writes() {
            return 0;
        }
        let rolled = self.rolled(state, now);
        let cost = match (effect, ask) {
            (Effect::Refuse, _) => 0,
            (Effect::Charge, Ask::UpTo(n)) => self.limit.saturating_sub(rolled.count).min(*n),
            _ => ask.cost(),
        };
        let count = rolled.count.saturating_add(cost);
        if count > 0 {
            *state = Window { count, ..rolled };
        }
        count - rolled.count
    }

    fn view(&self, state: &Window, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let rolled = self.rolled(state, now);
        let reset_after = rolled.end.since(now);
        let remaining = self.limit.saturating_sub(rolled.count);
        let wait = match allowed {
            true => Wait::None,
            false if ask.least() > self.limit => Wait::Never,
            false => Wait::For(reset_after),
        };
        Outcome {
            remaining,
            used: rolled.count,
            wait,
            reset_after,
            next_unit_after: (remaining < self.limit).then_some(reset_after),
            stamp: rolled.end,
            granted,
            ..Outcome::new(allowed, self.limit)
        }
    }

    fn refund(&self, state: &mut Window, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        let rolled = self.rolled(state, now);
        if stamp.is_some_and(|stamp| stamp != rolled.end) {
            return 0;
        }
        let back = units.min(rolled.count);
        if rolled.count > 0 {
            *state = Window { count: rolled.count - back, ..rolled };
        }
        back
    }
}

impl State for Window {
    fn is_fresh(&self, now: Time) -> bool {
        self.end <= now || self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_with_nothing_in_it_equals_an_unused_one_after_a_step_back() {
        let limit = FixedWindow::new(3, Span::SECOND).unwrap();
        let (mut state, now) = (Window::default(), Time::from_secs(9));
        limit.record(&mut state, now, &Ask::Consume(1), Effect::Charge);
        limit.refund(&mut state, now, 1, None);
        let view = |state| limit.view(&state, now.before(Span::from_millis(1)), &Ask::Peek(1), true, 0);
        assert!(state.is_fresh(now));
        assert_eq!(view(state), view(Window::default()));
    }
}
