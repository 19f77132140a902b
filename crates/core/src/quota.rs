//! Calendar quota: a counter that is reset at the end of a day, month or year, as a calendar says.
//!
//! Periods of a calendar differ in length, so they cannot be computed from the time by a division. The node that makes
//! the charge knows the calendar and proposes three bounds: the period of its own clock and the end of the next one.
//! The clock of the store chooses among them, so nodes whose clocks differ count in the same period.

use crate::algorithm::CompactSpan;
use crate::{Algorithm, Ask, Effect, LimitError, Outcome, Span, State, Time, Wait};

/// At most `amount` units in every period of a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    amount: u64,
    overdraft: u64,
    rollover: u64,
    grant: u64,
    start: Time,
    end: Time,
    next_end: Time,
}

/// The usage of one period, and when that period ends. Packed to four bytes: a million of these live in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct QuotaUse {
    /// The first moment after the period; zero for an unused bucket.
    end: Time,
    /// Units recorded in it.
    used: u64,
    /// Units left over from the period before.
    carried: u64,
    /// How long after its end the period can still hand on units.
    keep: CompactSpan,
}

impl QuotaUse {
    /// `used` units of the period that ends at `end`, which may spend `carried` units more than its amount and hands
    /// units on until `keep` after its end.
    pub fn new(end: Time, used: u64, carried: u64, keep: Span) -> QuotaUse {
        QuotaUse { end, used, carried, keep: CompactSpan::of(keep) }
    }

    /// The first moment after the period; zero for an unused bucket.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Units recorded in the period.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Units left over from the period before.
    pub fn carried(&self) -> u64 {
        self.carried
    }

    /// How long after its end the period can still hand on units; zero without rollover.
    pub fn keep(&self) -> Span {
        let QuotaUse { keep, .. } = *self;
        keep.span()
    }

    /// True if nothing was recorded or carried, and nothing will be: all was refunded.
    fn is_empty(&self) -> bool {
        self.used() == 0 && self.carried() == 0 && self.keep().is_zero()
    }

    /// True if the period is not over.
    fn is_running(&self, now: Time) -> bool {
        self.end() > now && !self.is_empty()
    }
}

impl Quota {
    /// The end of a period that never ends: 2^63 − 1 ns after the epoch, in the year 2262.
    pub const FOREVER: Time = Time::from_nanos(i64::MAX as u64);

    /// `amount` units per period. The charge names the period from `start` to `end`, which contains the time by the
    /// clock of the node, and the end of the next one. An amount of zero refuses everything.
    pub fn new(amount: u64, start: Time, end: Time, next_end: Time) -> Result<Quota, LimitError> {
        match () {
            () if next_end > Quota::FOREVER => Err(LimitError::TooLong),
            () if start >= end => Err(LimitError::ZeroWindow),
            () if end > next_end || (end == next_end && end != Quota::FOREVER) => Err(LimitError::ZeroWindow),
            () => Ok(Quota { amount, overdraft: 0, rollover: 0, grant: 0, start, end, next_end }),
        }
    }

    /// `amount` units in all: one period that never ends.
    pub fn lifetime(amount: u64) -> Quota {
        let (start, end) = (Time::ZERO, Quota::FOREVER);
        Quota { amount, overdraft: 0, rollover: 0, grant: 0, start, end, next_end: end }
    }

    /// Admits up to `overdraft` units above the amount. Outcomes do not advertise them: they are for requests that
    /// would otherwise be cut off, and the next period starts without debt.
    pub fn with_overdraft(self, overdraft: u64) -> Quota {
        Quota { overdraft, ..self }
    }

    /// Carries at most `rollover` units that a period left over into the next one, where they are spent first. Carried
    /// units are not carried again, and a period without any charge has no bucket and carries nothing.
    pub fn with_rollover(self, rollover: u64) -> Quota {
        Quota { rollover, ..self }
    }

    /// Adds `grant` units to the proposed period, and to no other: if the clock of the store is in another period than
    /// that of the node, they do not count. They are spent after carried units and the amount, and never carried, so a
    /// grant changes nothing that is stored, nor what a period hands on.
    pub fn with_grant(self, grant: u64) -> Quota {
        Quota { grant, ..self }
    }

    /// The same periods with another amount.
    pub fn with_amount(self, amount: u64) -> Quota {
        Quota { amount, ..self }
    }

    /// Amount, overdraft, rollover and grant, each changed by `scale`.
    pub(crate) fn scaled(self, scale: impl Fn(u64) -> u64) -> Quota {
        let [amount, overdraft, rollover, grant] = [self.amount, self.overdraft, self.rollover, self.grant].map(scale);
        Quota { amount, overdraft, rollover, grant, ..self }
    }

    /// Units per period.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Units admitted above the amount.
    pub fn overdraft(&self) -> u64 {
        self.overdraft
    }

    /// The most units that a period hands on to the next.
    pub fn rollover(&self) -> u64 {
        self.rollover
    }

    /// Units added to the proposed period.
    pub fn grant(&self) -> u64 {
        self.grant
    }

    /// The first moment of the proposed period.
    pub fn start(&self) -> Time {
        self.start
    }

    /// The first moment after it.
    pub fn end(&self) -> Time {
        self.end
    }

    /// The first moment after the period that follows.
    pub fn next_end(&self) -> Time {
        self.next_end
    }

    /// The length of the proposed period.
    pub fn window(&self) -> Span {
        self.end.since(self.start)
    }

    /// How long after its end a period is kept because it may hand on units: the longer of the two proposed periods
    /// and a sixteenth, because the period that follows may be longer than both (25 hours, a leap year). As stored.
    pub fn keep(&self) -> Span {
        self.compact_keep().span()
    }

    fn compact_keep(&self) -> CompactSpan {
        let longer = self.window().max(self.next_end.since(self.end));
        match self.rollover {
            0 => CompactSpan::default(),
            _ => CompactSpan::of(Span::from_nanos(longer.nanos() + longer.nanos() / 16).min(Span::MAX)),
        }
    }

    /// The end of the period that contains `now`, and the start of that period if the bounds tell it.
    ///
    /// Before the bounds, the period ends at their start: the clock of the node is ahead. A node whose clock is wrong
    /// by more than a period proposes bounds that do not reach `now`: a period then lasts as long as the proposed one.
    /// In both cases a period that has an earlier end keeps it.
    fn period(&self, state: &QuotaUse, now: Time) -> (Time, Option<Time>) {
        let longest = now.after(self.window());
        let latest = match () {
            () if now < self.start => self.start.min(longest),
            () if now < self.end => return (self.end, Some(self.start)),
            () if now < self.next_end => return (self.next_end, Some(self.end)),
            () => longest,
        };
        (if state.is_running(now) { state.end().min(latest) } else { latest }, None)
    }

    /// The state as of `now`. A period that is over hands on what it left, if the current one follows it directly. A
    /// period that is not over keeps its usage under a new end, if the calendar changed or the clock stepped back, and
    /// of its carried units at most the rollover that is in force now.
    fn rolled(&self, state: &QuotaUse, now: Time) -> QuotaUse {
        let (end, start) = self.period(state, now);
        if state.is_running(now) {
            return QuotaUse { end, carried: state.carried().min(self.rollover), ..*state };
        }
        let follows = start == Some(state.end()) && now < state.end().after(state.keep());
        let carried = if follows { self.handed_on(state) } else { 0 };
        QuotaUse { end, used: 0, carried, keep: self.compact_keep() }
    }

    /// Units granted to the period that contains `now`.
    fn granted(&self, now: Time) -> u64 {
        if self.start <= now && now < self.end { self.grant } else { 0 }
    }

    /// Units that a period hands on: what is left of its own amount, because carried units are spent first and granted
    /// units last.
    fn handed_on(&self, state: &QuotaUse) -> u64 {
        let of_own_amount = state.used().saturating_sub(state.carried());
        self.amount.saturating_sub(of_own_amount).min(self.rollover)
    }

    /// Units that the period which ends at `end` will hand on if nothing else is charged; zero if the bounds do not
    /// tell which period follows.
    fn next_carried(&self, state: &QuotaUse, end: Time, now: Time) -> u64 {
        let is_known = end == self.start || end == self.end;
        if is_known && state.is_running(now) && !state.keep().is_zero() { self.handed_on(state) } else { 0 }
    }

    /// Units that a period offers which has `extra` units, carried or granted: `limit` in responses.
    fn offered(&self, extra: u64) -> u64 {
        if self.amount == 0 { 0 } else { self.amount.saturating_add(extra) }
    }

    /// Units that it admits.
    fn admitted(&self, extra: u64) -> u64 {
        if self.amount == 0 { 0 } else { self.offered(extra).saturating_add(self.overdraft) }
    }
}

impl Algorithm for Quota {
    type State = QuotaUse;

    fn admits(&self, state: &QuotaUse, now: Time, ask: &Ask) -> bool {
        let QuotaUse { used, carried, .. } = self.rolled(state, now);
        let extra = carried.saturating_add(self.granted(now));
        used.checked_add(ask.least()).is_some_and(|sum| sum <= self.admitted(extra))
    }

    fn record(&self, state: &mut QuotaUse, now: Time, ask: &Ask, effect: Effect) -> u64 {
        if !ask.writes() {
            return 0;
        }
        let rolled = self.rolled(state, now);
        let extra = rolled.carried().saturating_add(self.granted(now));
        let cost = match (effect, ask) {
            (Effect::Refuse, _) => 0,
            (Effect::Charge, Ask::UpTo(n)) => self.admitted(extra).saturating_sub(rolled.used).min(*n),
            _ => ask.cost(),
        };
        let used = rolled.used.saturating_add(cost);
        if used > 0 || state.is_running(now) {
            // A refusal does not change what is handed on.
            let keep = if cost > 0 { self.compact_keep() } else { rolled.keep };
            *state = QuotaUse { used, keep, ..rolled };
        }
        used - rolled.used
    }

    fn view(&self, state: &QuotaUse, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let QuotaUse { end, used, carried, .. } = self.rolled(state, now);
        let limit = self.offered(carried.saturating_add(self.granted(now)));
        let reset_after = end.since(now);
        let remaining = limit.saturating_sub(used);
        let is_last = end == self.next_end && end == Quota::FOREVER;
        let is_renewed = self.end < Quota::FOREVER && !is_last;
        let next = self.next_carried(state, end, now).saturating_add(self.granted(end));
        let wait = match allowed {
            true => Wait::None,
            false if is_renewed && ask.least() <= self.admitted(next) => Wait::For(reset_after),
            false => Wait::Never,
        };
        Outcome {
            remaining,
            used,
            wait,
            reset_after,
            next_unit_after: (is_renewed && remaining < self.offered(next)).then_some(reset_after),
            // A read does not write the new end of a period; a refund must find the one that is stored.
            stamp: if used > 0 { state.end() } else { end },
            granted,
            ..Outcome::new(allowed, limit)
        }
    }

    /// Does not depend on the bounds of the limit, which may be of an older calendar than the state.
    fn refund(&self, state: &mut QuotaUse, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        let QuotaUse { end, used, .. } = *state;
        if !state.is_running(now) || stamp.is_some_and(|stamp| stamp != end) {
            return 0;
        }
        let back = units.min(used);
        state.used = used - back;
        back
    }
}

impl State for QuotaUse {
    const IS_DURABLE: bool = true;

    fn is_fresh(&self, now: Time) -> bool {
        self.end().after(self.keep()) <= now || self.is_empty()
    }
}

#[cfg(test)]
mod tests;
