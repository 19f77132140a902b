//! Sliding window log: the time of every admitted request, and so the exact answer.
//!
//! Costs memory per request, hence the cap on the limit. Refused requests are not stored; an entry exactly one window
//! old is gone. Entries of one instant share a place, and forced usage never makes the log longer than its limit.

use std::collections::VecDeque;

use crate::{Algorithm, Ask, Effect, LimitError, Outcome, Span, State, Time, Wait};

/// At most `limit` units in every span of length `window`, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    limit: u64,
    window: Span,
}

/// What was admitted, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// Sum of all costs in `entries`.
    sum: u64,
    /// The length of the window, by which the log knows when it may be forgotten.
    window: Span,
    /// The store is full: grow no further.
    confined: bool,
}

/// As much of a log as an answer speaks of: what a store that keeps the entries elsewhere looks up there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSummary {
    /// Units in the window.
    pub used: u64,
    /// Now, or the newest entry if the clock stepped back a little.
    pub at: Time,
    /// The first entry whose departure, with all older ones, makes room for the cost. Only of a refusal.
    pub frees: Option<Time>,
    /// The first entry whose departure, with all older ones, makes room for one unit more.
    pub next: Option<Time>,
    /// The newest entry.
    pub newest: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: Time,
    cost: u64,
}

impl SlidingLog {
    /// The largest limit: a log holds up to one entry per unit.
    pub const LIMIT_MAX: u64 = 10_000;

    /// `limit` units per `window`, exactly. Zero blocks; more than [`SlidingLog::LIMIT_MAX`] is refused.
    pub fn new(limit: u64, window: Span) -> Result<SlidingLog, LimitError> {
        match window.nanos() {
            0 => Err(LimitError::ZeroWindow),
            n if n > Span::MAX.nanos() => Err(LimitError::TooLong),
            _ if limit > Self::LIMIT_MAX => Err(LimitError::LogTooLarge),
            _ => Ok(SlidingLog { limit, window }),
        }
    }

    /// Units per window.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Length of the window.
    pub fn window(&self) -> Span {
        self.window
    }

    /// The log as of `now`, read without changing it.
    fn view_at<'a>(&self, log: &'a Log, now: Time) -> LogView<'a> {
        let newest = log.entries.back().map_or(Time::ZERO, |entry| entry.at);
        let ahead = newest.since(now);
        // A step back by a window or more shifts the whole log, so that its newest entry is now.
        let shift = if ahead >= self.window { ahead } else { Span::ZERO };
        let at = now.max(newest.before(shift));
        let gone = log.entries.iter().take_while(|entry| at.since(entry.at.before(shift)) >= self.window).count();
        let dropped: u64 = log.entries.iter().take(gone).map(|entry| entry.cost).sum();
        LogView { log, shift, at, gone, used: log.sum - dropped }
    }

    /// The use that leaves room for the ask; `None` if it can never fit.
    pub fn most_before(&self, ask: &Ask) -> Option<u64> {
        self.limit.checked_sub(ask.least())
    }

    /// The use at which one more unit is left than at `used`; `None` if none can be.
    pub fn most_before_next(&self, used: u64) -> Option<u64> {
        self.limit.min(used).checked_sub(1)
    }

    /// [`view`](Algorithm::view) from what was seen of the log.
    pub fn outcome_from(&self, summary: &LogSummary, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let leaves_after = |at: Time| at.after(self.window).since(now);
        let wait = match allowed {
            true => Wait::None,
            false if self.most_before(ask).is_none() => Wait::Never,
            false => summary.frees.map_or(Wait::Never, |at| Wait::For(leaves_after(at))),
        };
        Outcome {
            remaining: self.limit.saturating_sub(summary.used),
            used: summary.used,
            wait,
            reset_after: summary.newest.map_or(Span::ZERO, leaves_after),
            next_unit_after: summary.next.map(leaves_after),
            stamp: summary.at,
            granted,
            ..Outcome::new(allowed, self.limit)
        }
    }

    fn tidy(&self, log: &mut Log, now: Time) -> (Time, u64) {
        let LogView { shift, at, gone, used, .. } = self.view_at(log, now);
        log.entries.drain(..gone);
        if !shift.is_zero() {
            log.entries.iter_mut().for_each(|entry| entry.at = entry.at.before(shift));
        }
        log.sum = used;
        log.window = self.window;
        (at, used)
    }
}

/// A log seen from now: the first `gone` entries are out of the window, the others count `used`.
struct LogView<'a> {
    log: &'a Log,
    shift: Span,
    /// Now, or the newest entry if the clock stepped back a little.
    at: Time,
    gone: usize,
    used: u64,
}

impl LogView<'_> {
    /// The first entry whose departure, with all older ones, brings the use down to `most`.
    fn down_to(&self, most: u64) -> Option<Time> {
        let mut used = self.used;
        let entry = self.live().find(|entry| {
            used = used.saturating_sub(entry.cost);
            used <= most
        });
        entry.map(|entry| entry.at)
    }

    fn live(&self) -> impl DoubleEndedIterator<Item = Entry> + '_ {
        self.log.entries.iter().skip(self.gone).map(|entry| Entry { at: entry.at.before(self.shift), ..*entry })
    }
}

impl Algorithm for SlidingLog {
    type State = Log;

    fn admits(&self, log: &Log, now: Time, ask: &Ask) -> bool {
        self.view_at(log, now).used.checked_add(ask.least()).is_some_and(|sum| sum <= self.limit)
    }

    fn record(&self, log: &mut Log, now: Time, ask: &Ask, effect: Effect) -> u64 {
        if !ask.writes() {
            return 0;
        }
        let (at, used) = self.tidy(log, now);
        let cost = match (effect, ask) {
            (Effect::Refuse, _) => 0,
            (Effect::Charge, Ask::UpTo(n)) => self.limit.saturating_sub(used).min(*n),
            _ => ask.cost(),
        };
        log.push(Entry { at, cost }, self.limit)
    }

    fn view(&self, log: &Log, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        let seen = self.view_at(log, now);
        let summary = LogSummary {
            used: seen.used,
            at: seen.at,
            frees: if allowed { None } else { self.most_before(ask).and_then(|most| seen.down_to(most)) },
            next: self.most_before_next(seen.used).and_then(|most| seen.down_to(most)),
            newest: seen.live().next_back().map(|entry| entry.at),
        };
        self.outcome_from(&summary, now, ask, allowed, granted)
    }

    fn refund(&self, log: &mut Log, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        self.tidy(log, now);
        // The newest of an instant: a shift below the beginning of time leaves several entries there.
        let end = stamp.map_or(log.entries.len(), |stamp| log.entries.partition_point(|entry| entry.at <= stamp));
        let is_named = |entry: &&mut Entry| stamp.is_none_or(|stamp| entry.at == stamp);
        let place = end.checked_sub(1);
        let Some(entry) = place.and_then(|place| log.entries.get_mut(place)).filter(is_named) else { return 0 };
        let back = units.min(entry.cost);
        entry.cost -= back;
        log.sum -= back;
        if entry.cost == 0 {
            place.map(|place| log.entries.remove(place));
        }
        back
    }
}

impl Log {
    /// Appends, or joins the newest entry when that is of the same instant or the log may not grow. Joining a later
    /// instant moves the older usage there: it may weigh longer, never shorter. Answers how much was recorded: no more
    /// than keeps the sum exact, or entries that leave would take others' units with them.
    fn push(&mut self, new: Entry, limit: u64) -> u64 {
        let full = self.entries.len() as u64 >= limit.max(1)
            || (self.confined && self.entries.len() == self.entries.capacity());
        let cost = new.cost.min(u64::MAX - self.sum);
        self.sum += cost;
        match self.entries.back_mut() {
            _ if cost == 0 => {}
            Some(newest) if newest.at == new.at || full => {
                *newest = Entry { at: new.at, cost: newest.cost + cost };
            }
            _ => self.entries.push_back(Entry { cost, ..new }),
        }
        cost
    }
}

impl State for Log {
    const ON_HEAP: bool = true;

    fn is_fresh(&self, now: Time) -> bool {
        self.entries.back().is_none_or(|newest| newest.at.after(self.window) <= now)
    }

    fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    fn confine(&mut self, confined: bool) {
        self.confined = confined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_beyond_counting_is_not_recorded_and_never_comes_back() {
        let limit = SlidingLog::new(5, Span::SECOND).unwrap();
        let (mut log, start) = (Log::default(), Time::from_secs(9));
        let later = start.after(Span::from_millis(500));
        assert_eq!(limit.record(&mut log, start, &Ask::Force(u64::MAX), Effect::Force), u64::MAX);
        assert_eq!(limit.record(&mut log, later, &Ask::Force(5), Effect::Force), 0);
        assert_eq!(limit.refund(&mut log, start.after(Span::SECOND), 5, Some(later)), 0);
        assert!(log.is_fresh(start.after(Span::SECOND)));
    }
}
