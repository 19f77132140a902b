//! This node's copy of a bucket in the shared store, and its age.
//!
//! An outcome contains the whole state of a token bucket (its arrival time) or of a fixed window (its end and count). A
//! state answers every ask: another cost, a later time. A remembered verdict could not.

use tollgate_core::{Algorithm, Ask, Effect, Limit, Outcome, Span, Tat, Time, Window};

/// A copy of a bucket's state, for algorithms whose outcome contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mirror {
    Gcra(Tat),
    Window(Window),
}

/// Runs `$body` with the algorithm and its state. A mirror of another algorithm belongs to another bucket: it counts as
/// unused.
macro_rules! with_state {
    ($limit:expr, $mirror:expr, $other:expr, |$algorithm:ident, $state:ident| $body:expr) => {
        match ($limit, $mirror) {
            (Limit::Gcra($algorithm), Mirror::Gcra($state)) => $body,
            (Limit::FixedWindow($algorithm), Mirror::Window($state)) => $body,
            _ => $other,
        }
    };
}

impl Mirror {
    /// An unused bucket, if its algorithm can be mirrored.
    pub(super) fn unused(limit: &Limit) -> Option<Mirror> {
        match limit {
            Limit::Gcra(_) => Some(Mirror::Gcra(Tat::default())),
            Limit::FixedWindow(_) => Some(Mirror::Window(Window::default())),
            _ => None,
        }
    }

    /// The state that an outcome contains.
    #[inline]
    pub(super) fn of(limit: &Limit, outcome: &Outcome) -> Option<Mirror> {
        match limit {
            Limit::Gcra(_) => Some(Mirror::Gcra(Tat(outcome.stamp))),
            Limit::FixedWindow(_) => Some(Mirror::Window(Window { end: outcome.stamp, count: outcome.used })),
            _ => None,
        }
    }

    /// The state without `units` of its charges: units held in advance are not used yet.
    #[inline]
    pub(super) fn without(self, limit: &Limit, units: u64) -> Mirror {
        match (limit, self) {
            (Limit::Gcra(gcra), Mirror::Gcra(Tat(tat))) => {
                Mirror::Gcra(Tat(tat.before(Span::from_nanos(gcra.interval().nanos().saturating_mul(units)))))
            }
            (_, Mirror::Window(window)) => {
                Mirror::Window(Window { count: window.count.saturating_sub(units), ..window })
            }
            _ => self,
        }
    }

    #[inline]
    pub(super) fn admits(&self, limit: &Limit, now: Time, ask: &Ask) -> bool {
        with_state!(limit, self, true, |algorithm, state| algorithm.admits(state, now, ask))
    }

    /// The outcome. `None` for an algorithm that has no mirror.
    #[inline]
    pub(super) fn view(&self, limit: &Limit, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Option<Outcome> {
        with_state!(limit, self, None, |algorithm, state| Some(algorithm.view(state, now, ask, allowed, granted)))
    }

    /// True if the state is further ahead than its limit allows, so that its `view` was clamped: the limit was lowered,
    /// or a clock stepped back. The store must then decide, because its refusal stores the clamped state; refusals by a
    /// copy would report a wait that never ends.
    #[inline]
    pub(super) fn is_beyond(&self, view: &Outcome, now: Time) -> bool {
        match self {
            Mirror::Gcra(tat) => tat.0.since(now) != view.reset_after,
            Mirror::Window(window) => window.count > 0 && window.end > now && window.end != view.stamp,
        }
    }

    /// Records units even if they do not fit.
    pub(super) fn force(&mut self, limit: &Limit, now: Time, units: u64) {
        with_state!(limit, self, (), |algorithm, state| {
            algorithm.record(state, now, &Ask::Force(units), Effect::Force);
        });
    }

    /// Gives units back.
    pub(super) fn refund(&mut self, limit: &Limit, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        with_state!(limit, self, 0, |algorithm, state| algorithm.refund(state, now, units, stamp))
    }

    /// Units that would pass at `now`.
    pub(super) fn room(&self, limit: &Limit, now: Time) -> u64 {
        self.view(limit, now, &Ask::Peek(0), true, 0).map_or(0, |outcome| outcome.remaining)
    }

    /// True if indistinguishable from a fresh bucket.
    pub(super) fn is_fresh(&self, now: Time) -> bool {
        use tollgate_core::State;
        match self {
            Mirror::Gcra(tat) => tat.is_fresh(now),
            Mirror::Window(window) => window.is_fresh(now),
        }
    }
}

/// The time of an answer of the shared store: its own clock, and this node's clock before the call and after the
/// answer. The clocks are not synchronised, so the store's time is only known between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) store_time: Time,
    pub(super) sent: Time,
    pub(super) received: Time,
}

impl Observation {
    /// The latest that the store's time can be: a refusal at this time is a refusal by the store.
    #[inline]
    pub(super) fn latest(&self, now: Time) -> Time {
        self.store_time.after(now.since(self.sent))
    }

    /// The earliest that the store's time can be: a wait from this time is sufficient.
    #[inline]
    pub(super) fn earliest(&self, now: Time) -> Time {
        self.store_time.after(now.since(self.received))
    }

    /// How long ago the call was sent.
    #[inline]
    pub(super) fn age(&self, now: Time) -> Span {
        now.since(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{FixedWindow, Wait};

    use super::*;

    const NOW: Time = Time::from_secs(50);

    fn limits() -> [Limit; 2] {
        [Limit::per_second(10).unwrap(), Limit::FixedWindow(FixedWindow::new(10, Span::SECOND).unwrap())]
    }

    #[test]
    fn an_outcome_contains_the_whole_state() {
        for limit in limits() {
            let mut state = Mirror::unused(&limit).unwrap();
            state.force(&limit, NOW, 7);
            let answer = state.view(&limit, NOW, &Ask::Consume(4), false, 0).unwrap();
            let copy = Mirror::of(&limit, &answer).unwrap();
            for (later, cost) in [(0, 3), (0, 4), (99, 1), (100, 4), (5_000, 10)] {
                let then = NOW.after(Span::from_millis(later));
                let ask = Ask::Peek(cost);
                assert_eq!(copy.admits(&limit, then, &ask), state.admits(&limit, then, &ask));
                assert_eq!(copy.view(&limit, then, &ask, true, 0), state.view(&limit, then, &ask, true, 0));
            }
        }
    }

    #[test]
    fn units_held_in_advance_are_not_used() {
        for limit in limits() {
            let mut state = Mirror::unused(&limit).unwrap();
            state.force(&limit, NOW, 10);
            let own = state.without(&limit, 4);
            assert_eq!(own.room(&limit, NOW), 4);
            assert!(own.admits(&limit, NOW, &Ask::Consume(4)) && !own.admits(&limit, NOW, &Ask::Consume(5)));
        }
        let limit = Limit::per_second(10).unwrap();
        let mut state = Mirror::unused(&limit).unwrap();
        state.force(&limit, NOW, 10);
        let outcome = state.without(&limit, 4).view(&limit, NOW, &Ask::Consume(6), false, 0).unwrap();
        assert_eq!(outcome.wait, Wait::For(Span::from_millis(200)), "two more units must come back");
    }

    #[test]
    fn the_time_of_the_store_is_between_its_bounds() {
        let seen =
            Observation { store_time: Time::from_secs(900), sent: Time::from_secs(10), received: Time::from_secs(12) };
        let now = Time::from_secs(20);
        assert_eq!((seen.earliest(now), seen.latest(now)), (Time::from_secs(908), Time::from_secs(910)));
    }
}
