//! Sliding window log: the exact algorithm, which stores the time of every admitted request.
//!
//! It needs memory per request, hence the cap on the limit. Refused requests are not stored; an entry that is exactly
//! one window old no longer counts. Requests of one instant share an entry, and forced usage never makes the log longer
//! than its limit.

use std::collections::VecDeque;

use crate::{Algorithm, Ask, Effect, LimitError, Outcome, Span, State, Time, Wait};

/// At most `limit` units in every span of length `window`, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    limit: u64,
    window: Span,
}

/// The admitted requests, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// Sum of all costs in `entries`.
    sum: u64,
    /// The length of the window: determines when the log may be dropped.
    window: Span,
    /// The store is full: the log must not grow.
    confined: bool,
}

/// What an outcome needs to know about a log: for stores that keep the entries elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSummary {
    /// Units in the window.
    pub used: u64,
    /// Now, or the newest entry if the clock stepped back a little.
    pub at: Time,
    /// The first entry whose expiry, with all older ones, makes room for the cost. Only for a refusal.
    pub frees: Option<Time>,
    /// The first entry whose expiry, with all older ones, makes room for one more unit.
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

    /// `limit` units per `window`, exactly. A limit of zero refuses everything; more than [`SlidingLog::LIMIT_MAX`] is
    /// an error.
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

    /// The log as of `now`, without changing it.
    fn view_at<'a>(&self, log: &'a Log, now: Time) -> LogView<'a> {
        let newest = log.entries.back().map_or(Time::ZERO, |entry| entry.at);
        let ahead = newest.since(now);
        // A backward step of a window or more shifts the whole log, so that its newest entry is now.
        let shift = if ahead >= self.window { ahead } else { Span::ZERO };
        let at = now.max(newest.before(shift));
        let gone = log.entries.iter().take_while(|entry| at.since(entry.at.before(shift)) >= self.window).count();
        let dropped: u64 = log.entries.iter().take(gone).map(|entry| entry.cost).sum();
        LogView { log, shift, at, gone, used: log.sum - dropped }
    }

    /// The most that may be used for the ask to fit; `None` if it can never fit.
    pub fn most_before(&self, ask: &Ask) -> Option<u64> {
        self.limit.checked_sub(ask.least())
    }

    /// The most that may be used for one more unit to be left than at `used`; `None` if there is none.
    pub fn most_before_next(&self, used: u64) -> Option<u64> {
        self.limit.min(used).checked_sub(1)
    }

    /// [`view`](Algorithm::view) from a summary of the log.
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

/// A log as of now: the first `gone` entries have expired, the others add up to `used`.
struct LogView<'a> {
    log: &'a Log,
    shift: Span,
    /// Now, or the newest entry if the clock stepped back a little.
    at: Time,
    gone: usize,
    used: u64,
}

impl LogView<'_> {
    /// The first entry whose expiry, with all older ones, reduces the use to `most`.
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
        // The newest entry of an instant: a shift below the epoch leaves several there.
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
    /// Appends an entry, or merges it into the newest one if that has the same time or the log must not grow. Merging
    /// moves older usage to a later time: it may count longer, never shorter. Returns the units recorded: no more than
    /// keep the sum exact, or expiring entries would remove units of others.
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
    fn usage_beyond_the_largest_sum_is_neither_recorded_nor_refunded() {
        let limit = SlidingLog::new(5, Span::SECOND).unwrap();
        let (mut log, start) = (Log::default(), Time::from_secs(9));
        let later = start.after(Span::from_millis(500));
        assert_eq!(limit.record(&mut log, start, &Ask::Force(u64::MAX), Effect::Force), u64::MAX);
        assert_eq!(limit.record(&mut log, later, &Ask::Force(5), Effect::Force), 0);
        assert_eq!(limit.refund(&mut log, start.after(Span::SECOND), 5, Some(later)), 0);
        assert!(log.is_fresh(start.after(Span::SECOND)));
    }
}
