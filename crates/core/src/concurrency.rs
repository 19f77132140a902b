//! Concurrency: a number of slots, each held by an id until it is released or its holder stops renewing it.
//!
//! All holders share one time to live, so slots expire in the order of their last renewal: a queue. A renewed slot
//! leaves a stale queue entry behind, which is skipped when it reaches the front. Every call costs constant time on
//! average, with five slots or five thousand.

use std::collections::VecDeque;

use crate::slot_hasher::SlotIdMap;
use crate::{Algorithm, Ask, Effect, LimitError, Outcome, SlotId, Span, State, Time, Wait};

/// At most `slots` holders at a time; a holder that does not renew within `ttl` loses its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    slots: u64,
    ttl: Span,
}

/// The holders of slots, and when each expires.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    held: SlotIdMap<Time>,
    /// All expiries that have not passed, earliest first; those that differ from `held` are stale. Of a bucket whose
    /// last slot was released, the time of that: it is unused from then on.
    expiries: VecDeque<(Time, SlotId)>,
    /// The store is full: no more holders than fit into the allocated memory.
    confined: bool,
}

/// What an outcome needs to know about the slots: for stores that keep the holders elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotsSummary {
    /// Slots in use.
    pub in_use: u64,
    /// The expiry after which the ask passes, if no slot is renewed or released. Only for a refusal.
    pub frees: Option<Time>,
    /// The last expiry.
    pub newest: Option<Time>,
}

impl Concurrency {
    /// `slots` slots with time to live `ttl`. Zero slots refuse everything.
    pub fn new(slots: u64, ttl: Span) -> Result<Concurrency, LimitError> {
        match ttl.nanos() {
            0 => Err(LimitError::ZeroWindow),
            n if n > Span::MAX.nanos() => Err(LimitError::TooLong),
            _ => Ok(Concurrency { slots, ttl }),
        }
    }

    /// Number of slots.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// How long a slot is held without renewal.
    pub fn ttl(&self) -> Span {
        self.ttl
    }

    /// Releases the slot that `id` holds; false if it holds none. Never releases the slot of another id.
    pub fn release(&self, state: &mut Slots, now: Time, id: SlotId) -> bool {
        state.tidy(now, self.ttl);
        let released = state.held.remove(&id).is_some();
        if released && state.held.is_empty() {
            state.expiries.clear();
            state.expiries.push_back((now, id));
        }
        released
    }

    /// How many slots expire before the one whose expiry lets the ask pass: all beyond the limit, and one more unless
    /// the ask only reads.
    fn leaving_before(&self, in_use: u64, ask: &Ask) -> u64 {
        (in_use + u64::from(ask.cost() > 0)).saturating_sub(self.slots).saturating_sub(1)
    }

    /// [`view`](Algorithm::view) from a summary of the slots.
    pub fn outcome_from(&self, summary: &SlotsSummary, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let bound = now.after(self.ttl);
        let until = |expiry: Time| bound.min(expiry).since(now);
        let wait = match ask {
            _ if allowed => Wait::None,
            Ask::Renew(_) => Wait::Never,
            _ if self.slots == 0 && ask.cost() > 0 => Wait::Never,
            _ => summary.frees.map_or(Wait::Never, |expiry| Wait::For(until(expiry))),
        };
        Outcome {
            remaining: self.slots.saturating_sub(summary.in_use),
            used: summary.in_use,
            wait,
            reset_after: summary.newest.map_or(Span::ZERO, until),
            stamp: bound,
            granted,
            ..Outcome::new(allowed, self.slots)
        }
    }

    /// Slots in use at `now`.
    pub fn in_use(&self, state: &Slots, now: Time) -> u64 {
        state.live(now).count() as u64
    }
}

impl Slots {
    /// True if `id` holds a slot at `now`.
    pub fn holds(&self, id: SlotId, now: Time) -> bool {
        self.held.get(&id).is_some_and(|expiry| *expiry > now)
    }

    /// Expiries of the slots held at `now`, earliest first. A queue entry is live if it equals the expiry in `held`.
    fn live(&self, now: Time) -> impl DoubleEndedIterator<Item = Time> + '_ {
        let agrees = move |(expiry, id): &&(Time, SlotId)| *expiry > now && self.held.get(id) == Some(expiry);
        self.expiries.iter().filter(agrees).map(|(expiry, _)| *expiry)
    }

    /// The number of slots held at `now`, without iterating over them.
    fn count(&self, now: Time) -> u64 {
        let passed = self.expiries.iter().take_while(|(expiry, _)| *expiry <= now);
        let lost = passed.filter(|(expiry, id)| self.held.get(id) == Some(expiry)).count();
        (self.held.len() - lost) as u64
    }

    /// Drops expired and stale entries; caps the others at `now + ttl`, which only a backward clock step or a lowered
    /// time to live exceeds.
    fn tidy(&mut self, now: Time, ttl: Span) {
        while let Some((expiry, id)) = self.expiries.front().copied() {
            let stale = self.held.get(&id) != Some(&expiry);
            if !stale && expiry > now {
                break;
            }
            if !stale {
                self.held.remove(&id);
            }
            self.expiries.pop_front();
        }
        let bound = now.after(ttl);
        if self.expiries.back().is_some_and(|(newest, _)| *newest > bound) {
            self.rebuild(bound);
        } else if self.expiries.len() > 2 * self.held.len() + 16 {
            self.rebuild(Time::from_nanos(u64::MAX)); // renewals left many stale entries
        }
    }

    fn rebuild(&mut self, bound: Time) {
        let held = &mut self.held;
        self.expiries.retain(|(expiry, id)| held.get(id) == Some(expiry));
        for (expiry, id) in &mut self.expiries {
            *expiry = bound.min(*expiry);
            held.insert(*id, *expiry);
        }
    }

    /// True if another holder would need memory that the store may not allocate.
    fn is_full(&self) -> bool {
        self.confined && self.held.len() == self.held.capacity()
    }

    fn set(&mut self, id: SlotId, expiry: Time) {
        if self.held.insert(id, expiry) == Some(expiry) {
            return;
        }
        // Released and taken again within one instant: a second queue entry would count the slot twice.
        let mut of_this_instant = self.expiries.iter().rev().take_while(|(other, _)| *other == expiry);
        if !of_this_instant.any(|(_, other)| *other == id) {
            self.expiries.push_back((expiry, id));
        }
    }
}

impl Algorithm for Concurrency {
    type State = Slots;

    fn admits(&self, state: &Slots, now: Time, ask: &Ask) -> bool {
        match ask {
            Ask::Hold(id) if state.holds(*id, now) => true,
            Ask::Renew(id) => state.holds(*id, now),
            ask if ask.cost() == 0 => state.count(now) <= self.slots,
            _ => state.count(now) < self.slots && !state.is_full(),
        }
    }

    fn record(&self, state: &mut Slots, now: Time, ask: &Ask, effect: Effect) -> u64 {
        let (Ask::Hold(id) | Ask::Renew(id)) = *ask else { return 0 };
        state.tidy(now, self.ttl);
        let held = state.holds(id, now);
        let taken = effect == Effect::Charge && !held && matches!(ask, Ask::Hold(_));
        if taken || (held && effect == Effect::Charge) {
            state.set(id, now.after(self.ttl));
        }
        u64::from(taken)
    }

    fn view(&self, state: &Slots, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let in_use = state.count(now);
        let frees = || state.live(now).nth(self.leaving_before(in_use, ask) as usize);
        let newest = state.live(now).next_back();
        let summary = SlotsSummary { in_use, frees: if allowed { None } else { frees() }, newest };
        self.outcome_from(&summary, now, ask, allowed, granted)
    }

    /// Slots are released by id: see [`Concurrency::release`].
    fn refund(&self, _: &mut Slots, _: Time, _: u64, _: Option<Time>) -> u64 {
        0
    }
}

impl State for Slots {
    const ON_HEAP: bool = true;

    fn is_fresh(&self, now: Time) -> bool {
        self.expiries.back().is_none_or(|(newest, _)| *newest <= now)
    }

    fn heap_bytes(&self) -> usize {
        let place = size_of::<(Time, SlotId)>();
        self.held.capacity() * (place + 1) * 8 / 7 + self.expiries.capacity() * place
    }

    fn confine(&mut self, confined: bool) {
        self.confined = confined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_waits_only_for_slots_beyond_the_limit() {
        let [two, one] = [2, 1].map(|slots| Concurrency::new(slots, Span::SECOND).unwrap());
        let (mut slots, now) = (Slots::default(), Time::from_secs(9));
        two.record(&mut slots, now, &Ask::Hold(SlotId(1)), Effect::Charge);
        let now = now.after(Span::from_millis(100));
        two.record(&mut slots, now, &Ask::Hold(SlotId(2)), Effect::Charge);
        let wait = |cost| one.view(&slots, now, &Ask::Peek(cost), false, 0).wait;
        assert_eq!(wait(0), Wait::For(Span::from_millis(900)));
        assert_eq!(wait(1), Wait::For(Span::SECOND));
    }

    #[test]
    fn a_slot_released_and_taken_within_one_instant_counts_once() {
        let limit = Concurrency::new(2, Span::SECOND).unwrap();
        let (mut slots, now, id) = (Slots::default(), Time::from_secs(9), SlotId(1));
        for _ in 0..2 {
            limit.release(&mut slots, now, id);
            limit.record(&mut slots, now, &Ask::Hold(id), Effect::Charge);
        }
        assert_eq!(limit.in_use(&slots, now), 1);
        assert_eq!(limit.view(&slots, now.after(Span::SECOND), &Ask::Peek(1), true, 0).used, 0);
    }

    /// As every other bucket: a store keeps what was used a moment ago, since it is probably used again.
    #[test]
    fn a_bucket_is_unused_from_the_release_of_its_last_slot_on() {
        let limit = Concurrency::new(2, Span::SECOND).unwrap();
        let (mut slots, start) = (Slots::default(), Time::from_secs(9));
        let [second, third] = [100, 200].map(|millis| start.after(Span::from_millis(millis)));
        for id in [1, 2] {
            limit.record(&mut slots, start, &Ask::Hold(SlotId(id)), Effect::Charge);
        }
        assert!(limit.release(&mut slots, second, SlotId(1)));
        assert!(!slots.is_fresh(second));
        assert!(limit.release(&mut slots, third, SlotId(2)));
        assert!(slots.is_fresh(third) && !slots.is_fresh(second));
        limit.record(&mut slots, third, &Ask::Hold(SlotId(3)), Effect::Charge);
        assert_eq!((limit.in_use(&slots, third), slots.is_fresh(third)), (1, false));
    }
}
