//! The state of any algorithm, and [`Algorithm`]'s methods on it by way of a [`Limit`].

use tollgate_core::{
    Algorithm, Ask, Counter, Effect, Limit, LimitKind, Log, NextFree, Outcome, QuotaUse, SlotId, Slots, State, Tat,
    Time, Window,
};

/// The state of one bucket. Promises are checked by probing clones of it.
#[derive(Clone, Debug)]
pub enum Bucket {
    /// Of [`Limit::Gcra`].
    Gcra(Tat),
    /// Of [`Limit::Queue`].
    Queue(NextFree),
    /// Of [`Limit::FixedWindow`].
    FixedWindow(Window),
    /// Of [`Limit::SlidingLog`].
    SlidingLog(Log),
    /// Of [`Limit::SlidingCounter`].
    SlidingCounter(Counter),
    /// Of [`Limit::Concurrency`].
    Concurrency(Slots),
    /// Of [`Limit::Quota`].
    Quota(QuotaUse),
}

/// Calls a method of the algorithm on its own state. Panics if the bucket is of another algorithm: the test is wrong.
macro_rules! dispatch {
    ($limit:expr, $bucket:expr, |$algorithm:ident, $state:ident| $call:expr) => {
        match ($limit, $bucket) {
            (Limit::Gcra($algorithm), Bucket::Gcra($state)) => $call,
            (Limit::Queue($algorithm), Bucket::Queue($state)) => $call,
            (Limit::FixedWindow($algorithm), Bucket::FixedWindow($state)) => $call,
            (Limit::SlidingLog($algorithm), Bucket::SlidingLog($state)) => $call,
            (Limit::SlidingCounter($algorithm), Bucket::SlidingCounter($state)) => $call,
            (Limit::Concurrency($algorithm), Bucket::Concurrency($state)) => $call,
            (Limit::Quota($algorithm), Bucket::Quota($state)) => $call,
            (limit, bucket) => panic!("{limit:?} met {bucket:?}"),
        }
    };
}

impl Bucket {
    /// A fresh bucket.
    pub fn unused(kind: LimitKind) -> Bucket {
        match kind {
            LimitKind::Gcra => Bucket::Gcra(Tat::default()),
            LimitKind::Queue => Bucket::Queue(NextFree::default()),
            LimitKind::FixedWindow => Bucket::FixedWindow(Window::default()),
            LimitKind::SlidingLog => Bucket::SlidingLog(Log::default()),
            LimitKind::SlidingCounter => Bucket::SlidingCounter(Counter::default()),
            LimitKind::Concurrency => Bucket::Concurrency(Slots::default()),
            LimitKind::Quota => Bucket::Quota(QuotaUse::default()),
        }
    }

    /// [`Algorithm::admits`]
    pub fn admits(&self, limit: &Limit, now: Time, ask: &Ask) -> bool {
        dispatch!(limit, self, |algorithm, state| algorithm.admits(state, now, ask))
    }

    /// [`Algorithm::record`]
    pub fn record(&mut self, limit: &Limit, now: Time, ask: &Ask, effect: Effect) -> u64 {
        dispatch!(limit, self, |algorithm, state| algorithm.record(state, now, ask, effect))
    }

    /// [`Algorithm::view`]
    pub fn view(&self, limit: &Limit, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome {
        dispatch!(limit, self, |algorithm, state| algorithm.view(state, now, ask, allowed, granted))
    }

    /// [`Algorithm::refund`]
    pub fn refund(&mut self, limit: &Limit, now: Time, units: u64, stamp: Option<Time>) -> u64 {
        dispatch!(limit, self, |algorithm, state| algorithm.refund(state, now, units, stamp))
    }

    /// [`tollgate_core::Concurrency::release`]; no other algorithm has anything to release.
    pub fn release(&mut self, limit: &Limit, now: Time, id: SlotId) -> bool {
        match (limit, self) {
            (Limit::Concurrency(concurrency), Bucket::Concurrency(slots)) => concurrency.release(slots, now, id),
            _ => false,
        }
    }

    /// [`State::is_fresh`]
    pub fn is_fresh(&self, now: Time) -> bool {
        match self {
            Bucket::Gcra(state) => state.is_fresh(now),
            Bucket::Queue(state) => state.is_fresh(now),
            Bucket::FixedWindow(state) => state.is_fresh(now),
            Bucket::SlidingLog(state) => state.is_fresh(now),
            Bucket::SlidingCounter(state) => state.is_fresh(now),
            Bucket::Concurrency(state) => state.is_fresh(now),
            Bucket::Quota(state) => state.is_fresh(now),
        }
    }

    /// The outcome of a peek of this cost.
    pub fn peek(&self, limit: &Limit, now: Time, cost: u64) -> Outcome {
        let ask = Ask::Peek(cost);
        self.view(limit, now, &ask, self.admits(limit, now, &ask), 0)
    }

    /// One request to this bucket alone: look, record and view, as a store with a single charge does.
    pub fn take(&mut self, limit: &Limit, now: Time, ask: &Ask, count_denied: bool) -> Outcome {
        let allowed = self.admits(limit, now, ask);
        let effect = match ask {
            Ask::Force(_) => Effect::Force,
            _ if allowed => Effect::Charge,
            _ if count_denied => Effect::Force,
            _ => Effect::Refuse,
        };
        let granted = if ask.writes() { self.record(limit, now, ask, effect) } else { 0 };
        self.view(limit, now, ask, allowed, granted)
    }
}
