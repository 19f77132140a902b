//! A breaker shared by tasks: one atomic load per call while it is closed.

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use tollgate_core::Time;
use tollgate_store::{StoreError, StoreErrorKind, random};

use super::breaker::{Breaker, Phase};
use super::failure::error;

const CLOSED: u8 = 0;
const RECOVERING: u8 = 1;
const OPEN: u8 = 2;

/// A breaker, and why it opened.
#[derive(Debug)]
pub(crate) struct AtomicBreaker {
    phase: AtomicU8,
    inside: Mutex<(Breaker, StoreError)>,
}

impl AtomicBreaker {
    pub(crate) fn new(now: Time) -> AtomicBreaker {
        let never = error(StoreErrorKind::Unavailable, "");
        AtomicBreaker { phase: AtomicU8::new(CLOSED), inside: Mutex::new((Breaker::new(now), never)) }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            CLOSED => Phase::Closed,
            RECOVERING => Phase::Recovering,
            _ => Phase::Open,
        }
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
        self.phase.store(phase, Ordering::Relaxed);
        result
    }
}

/// The error for calls that do not pass: they were not sent, whatever happened to others.
fn turned_away(why: &StoreError) -> StoreError {
    let kind = if why.kind == StoreErrorKind::Indeterminate { StoreErrorKind::Unavailable } else { why.kind };
    error(kind, format!("not asked, because {}", why.detail))
}
