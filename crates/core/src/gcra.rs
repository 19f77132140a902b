//! GCRA: the token bucket and the leaky bucket as a meter, in one 64-bit state and without rounding.
//!
//! The state is the theoretical arrival time: the moment at which the bucket will be full again. A request of cost n
//! pushes it `n · interval` ahead, and passes while it then lies at most `burst · interval` ahead of now. Tokens are
//! `burst − (tat − now) / interval`, but fractions of a token are never computed.

use crate::integer::{div_floor, product};
use crate::{Algorithm, Ask, Effect, LimitError, Outcome, Span, State, Time, Wait};

/// `requests` units per `period`, at most `burst` at once.
///
/// In any span t it admits at most `burst + ⌊t / interval⌋` units, with `interval = ⌊period / requests⌋`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gcra {
    /// Time in which one unit is returned.
    interval: u64,
    /// How far ahead of now the arrival time may run: `burst · interval`.
    tolerance: u64,
    /// The furthest ahead it can be, debt included. Beyond this the clock stepped back or the limit changed.
    bound: u64,
    /// Capacity in units; zero refuses everything.
    burst: u64,
    requests: u64,
    period: Span,
    /// Pull an arrival time beyond `bound` back to it. Off only for redis-cell's behaviour.
    clamp: bool,
}

/// A bucket's theoretical arrival time. A time in the past is equivalent to an unused bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tat(pub Time);

impl Gcra {
    /// A limit of `requests` per `period` with room for `burst` at once. Zero requests or a zero burst refuse
    /// everything.
    pub fn new(requests: u64, period: Span, burst: u64) -> Result<Gcra, LimitError> {
        Gcra { interval: 0, tolerance: 0, bound: 0, burst, requests, period, clamp: true }.with_max_debt(0)
    }

    /// Allows forced usage of `max_debt` units beyond the capacity.
    pub fn with_max_debt(self, max_debt: u64) -> Result<Gcra, LimitError> {
        if self.period.is_zero() {
            return Err(LimitError::ZeroWindow);
        }
        let blocks = self.requests == 0 || self.burst == 0;
        let interval = if blocks { 1 } else { self.period.nanos() / self.requests };
        if interval == 0 {
            return Err(LimitError::TooFast);
        }
        let burst = if blocks { 0 } else { self.burst };
        let bound = product(interval, burst.saturating_add(max_debt));
        if bound > u128::from(Span::MAX.nanos()) {
            return Err(LimitError::TooLong);
        }
        Ok(Gcra { interval, tolerance: interval * burst, bound: bound as u64, burst, ..self })
    }

    /// The same debt and clamping with another rate and capacity.
    pub(crate) fn with_rate(self, requests: u64, burst: u64) -> Result<Gcra, LimitError> {
        Gcra { requests, burst, ..self }.with_max_debt(self.max_debt())
    }

    /// The same rate and bound of debt with `extra` more capacity, taken out of that debt.
    pub(crate) fn raised(self, extra: u64) -> Result<Gcra, LimitError> {
        let burst = self.burst.saturating_add(extra);
        Gcra { burst, ..self }.with_max_debt(self.max_debt().saturating_sub(extra))
    }

    /// Keeps an arrival time however far ahead it is, as redis-cell does.
    pub fn unclamped(self) -> Gcra {
        Gcra { clamp: false, ..self }
    }

    /// Capacity in units.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// Units per [`period`](Gcra::period).
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The period of the rate.
    pub fn period(&self) -> Span {
        self.period
    }

    /// Time in which one unit is returned.
    pub fn interval(&self) -> Span {
        Span::from_nanos(self.interval)
    }

    /// How far ahead of now the arrival time may run before requests are refused.
    pub fn tolerance(&self) -> Span {
        Span::from_nanos(self.tolerance)
    }

    /// The furthest ahead of now that the arrival time can be, debt included.
    pub fn bound(&self) -> Span {
        Span::from_nanos(self.bound)
    }

    /// True unless [`unclamped`](Gcra::unclamped).
    pub fn is_clamped(&self) -> bool {
        self.clamp
    }

    /// Units of debt beyond the capacity that forced usage may add.
    pub fn max_debt(&self) -> u64 {
        (self.bound - self.tolerance) / self.interval
    }

    /// How far the arrival time runs ahead of now, in nanoseconds.
    fn ahead(&self, tat: &Tat, now: Time) -> u64 {
        let ahead = tat.0.since(now).nanos();
        match () {
            () if self.burst == 0 => 0,
            () if self.clamp => ahead.min(self.bound),
            () => ahead,
        }
    }

    /// Whole units that fit into what is left of the tolerance.
    fn room(&self, ahead: u64) -> u64 {
        self.tolerance.saturating_sub(ahead) / self.interval
    }

    /// Units in use, begun ones included; a second division only for a bucket in debt.
    fn used(&self, ahead: u64, room: u64) -> u64 {
        match ahead.checked_sub(self.tolerance) {
            None | Some(0) => self.burst - room,
            Some(debt) => self.burst + debt.div_ceil(self.interval),
        }
    }
}

impl Algorithm for Gcra {
    type State = Tat;

    #[inline]
    fn admits(&self, tat: &Tat, now: Time, ask: &Ask) -> bool {
        u128::from(self.ahead(tat, now)) + product(self.interval, ask.least()) <= u128::from(self.tolerance)
    }

    #[inline]
    fn record(&self, tat: &mut Tat, now: Time, ask: &Ask, effect: Effect) -> u64 {
        if self.burst == 0 || !ask.writes() {
            return 0;
        }
        let ahead = self.ahead(tat, now);
        let (cost, most) = match (effect, ask) {
            (Effect::Refuse, _) => (0, self.bound),
            (Effect::Charge, Ask::UpTo(n)) => (self.room(ahead).min(*n), self.tolerance),
            (Effect::Charge, _) => (ask.cost(), self.tolerance),
            (Effect::Force, _) => (ask.cost(), self.bound),
        };
        let whole = u128::from(ahead) + product(self.interval, cost);
        let after = u64::try_from(whole).unwrap_or(u64::MAX).min(most.max(ahead));
        if after > 0 {
            tat.0 = now.after(Span::from_nanos(after));
        }
        // Units beyond the debt were not recorded, and a refund must not return them.
        if u128::from(after) < whole { (after - ahead) / self.interval } else { cost }
    }

    #[inline]
    fn view(&self, tat: &Tat, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let ahead = self.ahead(tat, now);
        let remaining = self.room(ahead);
        let next = u128::from(ahead) + product(self.interval, remaining + 1) - u128::from(self.tolerance);
        let wait = match allowed {
            true => Wait::None,
            false if ask.least() > self.burst => Wait::Never,
            false => {
                let needed = u128::from(ahead) + product(self.interval, ask.least());
                Wait::For(Span::from_nanos(needed.saturating_sub(u128::from(self.tolerance)) as u64))
            }
        };
        Outcome {
            remaining,
            used: self.used(ahead, remaining),
            wait,
            reset_after: Span::from_nanos(ahead),
            next_unit_after: (ahead > 0).then(|| Span::from_nanos(next as u64)),
            stamp: tat.0,
            granted,
            ..Outcome::new(allowed, self.burst)
        }
    }

    fn refund(&self, tat: &mut Tat, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        // No bound for a receipt: other charges may have used a larger limit than the receipt's.
        let (ahead, owed) = match stamp {
            Some(stamp) => (tat.0.since(now).nanos(), stamp.since(now).nanos()),
            None => (self.ahead(tat, now), u64::MAX),
        };
        let back = product(self.interval, units).min(u128::from(ahead.min(owed)));
        if ahead > 0 {
            tat.0 = now.after(Span::from_nanos(ahead - back as u64));
        }
        div_floor(back, self.interval)
    }
}

impl State for Tat {
    fn is_fresh(&self, now: Time) -> bool {
        self.0 <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(9);

    #[test]
    fn a_refund_of_capped_usage_gives_back_no_more_than_was_recorded() {
        let limit = Gcra::new(1, Span::SECOND, 10).unwrap();
        let mut tat = Tat::default();
        limit.record(&mut tat, NOW, &Ask::Consume(8), Effect::Charge);
        let units = limit.record(&mut tat, NOW, &Ask::Force(100), Effect::Force);
        let stamp = Some(tat.0);
        assert_eq!((units, limit.refund(&mut tat, NOW, units, stamp)), (2, 2));
        assert_eq!(limit.view(&tat, NOW, &Ask::Peek(0), true, 0).used, 8);
    }

    #[test]
    fn a_receipt_of_a_smaller_limit_leaves_what_was_used_since() {
        let [small, large] = [1, 10].map(|burst| Gcra::new(1, Span::SECOND, burst).unwrap());
        let mut tat = Tat::default();
        let units = small.record(&mut tat, NOW, &Ask::Consume(1), Effect::Charge);
        let stamp = Some(tat.0);
        large.record(&mut tat, NOW, &Ask::Consume(9), Effect::Charge);
        assert_eq!(small.refund(&mut tat, NOW, units, stamp), 1);
        assert_eq!(large.view(&tat, NOW, &Ask::Peek(0), true, 0).used, 9);
    }
}
