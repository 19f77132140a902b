//! A circuit breaker: when to stop sending calls to a server that fails, and how to resume.
//!
//! Closed: all calls pass; five failures in a row, or half of at least twenty calls within a second, open it. Open: no
//! call passes, so callers lose no time; one probe at a time runs the real script. After enough successful probes it
//! recovers: the share of calls that pass grows to all of them within a second.
//!
//! If it opens again soon, more probes in a row must succeed: a server that answers every third call in time is not
//! usable, and alternating between two ways of deciding is worse than either. Successful probes follow each other
//! quickly, so a server that recovered proves it within a second, however often it failed before.
//!
//! [`Breaker`] is pure: the caller passes in time and random numbers. Tasks share it by an `AtomicBreaker`.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate_core::{Span, Time};
use tollgate_store::{StoreError, StoreErrorKind, random};

use super::failure::error;

/// Failures in a row that open it.
const FAILURES_IN_A_ROW: u32 = 5;
/// Minimum number of calls within [`WINDOW`] for the failure rate to open it.
const CALLS_MIN: u32 = 20;
const WINDOW: Span = Span::SECOND;
const PARTS: usize = 10;
/// Duration of the recovery, from the first call that passes to all of them.
const RECOVERY: Span = Span::SECOND;
/// Calls of 64 that pass when the recovery begins.
const FIRST_SHARE: u64 = 4;
/// Average pause between probes.
const PROBE_EVERY: Span = Span::from_millis(250);
/// Pause after a successful probe, if more are needed.
const PROBE_AGAIN: Span = Span::from_millis(40);
/// Longest pause before the first probe.
const HOLD_MAX: Span = Span::SECOND;
/// After being closed this long, earlier openings are forgotten.
const CALM: Span = Span::from_secs(30);
/// Openings in a row after which the breaker does not become stricter.
const TRIPS_MAX: u32 = 3;

/// What a breaker lets pass, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// All calls.
    Closed,
    /// A growing share of the calls.
    Recovering,
    /// Only probes.
    Open,
}

impl Phase {
    /// All phases, best first.
    pub const ALL: [Phase; 3] = [Phase::Closed, Phase::Recovering, Phase::Open];
}

/// The breaker of one server.
#[derive(Clone, Debug)]
pub struct Breaker {
    state: State,
    /// Openings since the last calm period.
    trips: u32,
    /// Failures since the last success.
    in_a_row: u32,
    recent: Recent,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed { since: Time },
    Recovering { since: Time },
    Open { probe_at: Time, good: u32 },
}

impl Breaker {
    /// A closed breaker.
    pub fn new(now: Time) -> Breaker {
        Breaker { state: State::Closed { since: now }, trips: 0, in_a_row: 0, recent: Recent::default() }
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Closed { .. } => Phase::Closed,
            State::Recovering { .. } => Phase::Recovering,
            State::Open { .. } => Phase::Open,
        }
    }

    /// Whether a call may pass; `random` is uniformly distributed.
    pub fn admits(&mut self, now: Time, random: u64) -> bool {
        match self.state {
            State::Closed { .. } => true,
            State::Open { .. } => false,
            State::Recovering { since } => {
                let done = now.since(since).nanos().saturating_mul(64) / RECOVERY.nanos();
                random % 64 < FIRST_SHARE.max(done)
            }
        }
    }

    /// A call succeeded.
    pub fn succeeded(&mut self, now: Time) {
        self.in_a_row = 0;
        self.recent.count(now, false);
        if let State::Recovering { since } = self.state
            && now.since(since) >= RECOVERY
        {
            self.state = State::Closed { since: now };
            self.recent = Recent::default();
        }
    }

    /// The server answered a check beside the calls: ends a recovery that no call is there to end.
    pub fn settle(&mut self, now: Time) {
        if let State::Recovering { since } = self.state
            && now.since(since) >= RECOVERY
            && self.in_a_row == 0
        {
            self.state = State::Closed { since: now };
            self.recent = Recent::default();
        }
    }

    /// A call failed. True if that opened the breaker.
    pub fn failed(&mut self, now: Time, random: u64) -> bool {
        self.in_a_row += 1;
        self.recent.count(now, true);
        let enough = match self.state {
            State::Open { .. } => false,
            State::Recovering { .. } | State::Closed { .. } => {
                self.in_a_row >= FAILURES_IN_A_ROW || self.recent.half_failed(now)
            }
        };
        if enough { self.trip(now, random) } else { false }
    }

    /// Opens at once: the server is unreachable. True if it was not open.
    pub fn trip(&mut self, now: Time, random: u64) -> bool {
        match self.state {
            State::Open { .. } => return false,
            State::Closed { since } if now.since(since) >= CALM => self.trips = 1,
            State::Closed { .. } | State::Recovering { .. } => self.trips = (self.trips + 1).min(TRIPS_MAX),
        }
        let hold = Span::from_nanos(PROBE_EVERY.nanos().saturating_mul(self.factor())).min(HOLD_MAX);
        self.state = State::Open { probe_at: now.after(jittered(hold, random)), good: 0 };
        true
    }

    /// When the next probe is due; `None` unless open.
    pub fn probe_at(&self) -> Option<Time> {
        if let State::Open { probe_at, .. } = self.state { Some(probe_at) } else { None }
    }

    /// A probe ended. True if that ended the open phase.
    pub fn probed(&mut self, now: Time, good: bool, random: u64) -> bool {
        let State::Open { good: so_far, .. } = self.state else { return false };
        let so_far = if good { so_far + 1 } else { 0 };
        if u64::from(so_far) >= self.factor() {
            self.state = State::Recovering { since: now };
            self.in_a_row = 0;
            self.recent = Recent::default();
            return true;
        }
        let pause = if good { PROBE_AGAIN } else { PROBE_EVERY };
        self.state = State::Open { probe_at: now.after(jittered(pause, random)), good: so_far };
        false
    }

    /// Probes that must succeed: 1, then 4, then 16.
    fn factor(&self) -> u64 {
        4u64.pow(self.trips.saturating_sub(1).min(TRIPS_MAX))
    }
}

/// A fifth of `span` plus a random part, `span` on average: the nodes of a fleet do not probe in step.
fn jittered(span: Span, random: u64) -> Span {
    let fixed = span.nanos() / 5;
    let free = (span.nanos() - fixed).saturating_mul(2).max(1);
    Span::from_nanos(fixed + random % free)
}

/// The calls of the last second, in tenths.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    parts: [Part; PARTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    number: u64,
    calls: u32,
    failed: u32,
}

impl Recent {
    fn count(&mut self, now: Time, failed: bool) {
        let number = part_number(now);
        let Some(part) = self.parts.get_mut(number as usize % PARTS) else { return };
        if part.number != number {
            *part = Part { number, calls: 0, failed: 0 };
        }
        part.calls = part.calls.saturating_add(1);
        part.failed = part.failed.saturating_add(u32::from(failed));
    }

    fn half_failed(&self, now: Time) -> bool {
        let oldest = part_number(now).saturating_sub(PARTS as u64 - 1);
        let recent = self.parts.iter().filter(|part| part.number >= oldest);
        let (calls, failed) = recent.fold((0u32, 0u32), |(calls, failed), part| {
            (calls.saturating_add(part.calls), failed.saturating_add(part.failed))
        });
        calls >= CALLS_MIN && u64::from(failed) * 2 >= u64::from(calls)
    }
}

fn part_number(now: Time) -> u64 {
    now.nanos() / (WINDOW.nanos() / PARTS as u64)
}

const CLOSED: u8 = 0;
const RECOVERING: u8 = 1;
const OPEN: u8 = 2;

/// A breaker, and why it opened.
#[derive(Debug)]
pub(crate) struct AtomicBreaker {
    phase: AtomicU8,
    /// How often each phase began, in the order of [`Phase::ALL`].
    transitions: [AtomicU64; 3],
    inside: Mutex<(Breaker, StoreError)>,
}

impl AtomicBreaker {
    pub(crate) fn new(now: Time) -> AtomicBreaker {
        let never = error(StoreErrorKind::Unavailable, "");
        AtomicBreaker {
            phase: AtomicU8::new(CLOSED),
            transitions: Default::default(),
            inside: Mutex::new((Breaker::new(now), never)),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            CLOSED => Phase::Closed,
            RECOVERING => Phase::Recovering,
            _ => Phase::Open,
        }
    }

    /// How often each phase began, in the order of [`Phase::ALL`].
    pub(crate) fn transitions(&self) -> [u64; 3] {
        self.transitions.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Whether a call may pass; the error if not.
    pub(crate) fn pass(&self, now: Time) -> Result<(), StoreError> {
        if self.phase.load(Ordering::Relaxed) == CLOSED {
            return Ok(());
        }
        let (breaker, why) = &mut *self.inside.lock();
        if breaker.admits(now, random::fast()) { Ok(()) } else { Err(why.clone()) }
    }

    /// Why it opened, unless it is closed.
    pub(crate) fn why(&self) -> Option<String> {
        let (breaker, why) = &*self.inside.lock();
        if breaker.phase() == Phase::Closed { None } else { Some(why.detail.clone()) }
    }

    pub(crate) fn probe_at(&self) -> Option<Time> {
        if self.phase.load(Ordering::Relaxed) == OPEN { self.inside.lock().0.probe_at() } else { None }
    }

    pub(crate) fn succeeded(&self, now: Time) {
        self.change(|breaker| breaker.succeeded(now));
    }

    /// The server answered a check beside the calls.
    pub(crate) fn settle(&self, now: Time) {
        if self.phase.load(Ordering::Relaxed) == RECOVERING {
            self.change(|breaker| breaker.settle(now));
        }
    }

    /// A call failed. True if that opened the breaker.
    pub(crate) fn failed(&self, now: Time, why: &StoreError) -> bool {
        self.opening(why, |breaker| breaker.failed(now, random::fast()))
    }

    /// Opens the breaker; true if it was not open.
    pub(crate) fn trip(&self, now: Time, why: &StoreError) -> bool {
        self.opening(why, |breaker| breaker.trip(now, random::fast()))
    }

    /// A probe ended. True if that ended the open phase.
    pub(crate) fn probed(&self, now: Time, good: bool) -> bool {
        self.change(|breaker| breaker.probed(now, good, random::fast()))
    }

    /// Updates the reason while it is open.
    pub(crate) fn still(&self, why: &StoreError) {
        self.inside.lock().1 = turned_away(why);
    }

    fn opening(&self, why: &StoreError, event: impl FnOnce(&mut Breaker) -> bool) -> bool {
        let opened = self.change(event);
        if opened {
            self.still(why);
        }
        opened
    }

    fn change<T>(&self, event: impl FnOnce(&mut Breaker) -> T) -> T {
        let (breaker, _) = &mut *self.inside.lock();
        let result = event(breaker);
        let phase = match breaker.phase() {
            Phase::Closed => CLOSED,
            Phase::Recovering => RECOVERING,
            Phase::Open => OPEN,
        };
        if self.phase.swap(phase, Ordering::Relaxed) != phase
            && let Some(count) = self.transitions.get(usize::from(phase))
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

/// The error for calls that do not pass: they were not sent, whatever happened to others.
fn turned_away(why: &StoreError) -> StoreError {
    let kind = if why.kind == StoreErrorKind::Indeterminate { StoreErrorKind::Unavailable } else { why.kind };
    error(kind, format!("not asked, because {}", why.detail))
}

#[cfg(test)]
mod tests;
