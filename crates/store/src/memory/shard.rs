//! One shard: a table per algorithm, a memory budget, and what happens when it is used up.

use tollgate_core::{
    Algorithm, Charge, Counter, Digest, Limit, LimitKind, Log, NextFree, Outcome, QuotaUse, Receipt, Slots, Source,
    Span, State, Tat, Time, Window,
};

use super::spent_receipts::SpentReceipts;
use super::table::BucketTable;
use super::usage::ShardUsage;
use crate::Outcomes;

/// Everything behind one lock.
#[derive(Debug)]
#[repr(C)] // the most used table next to the lock
pub(super) struct Shard {
    gcra: BucketTable<Tat>,
    window: BucketTable<Window>,
    counter: BucketTable<Counter>,
    queue: BucketTable<NextFree>,
    log: BucketTable<Log>,
    slots: BucketTable<Slots>,
    pub(super) quota: BucketTable<QuotaUse>,
    pub(super) usage: ShardUsage,
    spent: SpentReceipts,
}

/// The numbers of spent receipts may use one part in this many of a shard's budget.
const SPENT_SHARE: usize = 8;

/// How often a full shard rebuilds its tables to release memory that they no longer need.
const RECLAIM_EVERY: Span = Span::SECOND;

/// The time of one call, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreTime {
    /// For rates and slots: never steps back, and follows a step of the wall clock only slowly.
    pub(super) now: Time,
    /// For periods of calendars, which end when the wall clock says so.
    pub(super) wall: Time,
}

impl StoreTime {
    /// The time by which buckets of this kind of limit are counted.
    #[inline]
    pub(super) fn of(self, limit: &Limit) -> Time {
        if matches!(limit, Limit::Quota(_)) { self.wall } else { self.now }
    }
}

/// The result of reading a charge's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Whether the bucket admits the charge; `place` is its index, if it exists.
    Seen { admits: bool, place: Option<usize> },
    /// There is no such bucket and no room for one.
    Full,
}

impl Look {
    pub(super) fn admits(self) -> bool {
        matches!(self, Look::Seen { admits: true, .. })
    }
}

/// Runs `$body` with the table and the algorithm that belong to `$limit`.
macro_rules! with_table {
    ($shard:expr, $limit:expr, |$table:ident, $algorithm:ident| $body:expr) => {
        match $limit {
            Limit::Gcra($algorithm) => {
                let $table = &mut $shard.gcra;
                $body
            }
            Limit::FixedWindow($algorithm) => {
                let $table = &mut $shard.window;
                $body
            }
            Limit::SlidingCounter($algorithm) => {
                let $table = &mut $shard.counter;
                $body
            }
            Limit::Queue($algorithm) => {
                let $table = &mut $shard.queue;
                $body
            }
            Limit::SlidingLog($algorithm) => {
                let $table = &mut $shard.log;
                $body
            }
            Limit::Concurrency($algorithm) => {
                let $table = &mut $shard.slots;
                $body
            }
            Limit::Quota($algorithm) => {
                let $table = &mut $shard.quota;
                $body
            }
        }
    };
}

impl Shard {
    /// The smallest budget: room for a few buckets.
    pub(super) const BUDGET_MIN: usize = 4096;

    pub(super) fn new(budget: usize) -> Shard {
        Shard {
            gcra: BucketTable::default(),
            window: BucketTable::default(),
            counter: BucketTable::default(),
            queue: BucketTable::default(),
            log: BucketTable::default(),
            slots: BucketTable::default(),
            quota: BucketTable::default(),
            usage: ShardUsage { budget, ..ShardUsage::default() },
            spent: SpentReceipts::default(),
        }
    }

    /// Look and settle in one step, for a request with only this charge: the common case, kept short. `None` if there
    /// is no room for the bucket.
    #[inline]
    pub(super) fn take_alone(&mut self, charge: &Charge, time: StoreTime, outcomes: &mut Outcomes) -> Option<bool> {
        if let Limit::Gcra(gcra) = &charge.limit
            && charge.soft.is_none()
            && let Some(entry) = self.gcra.find_mut(charge.bucket)
            && !charge.owner.is_overflowing()
        {
            return Some(take_in(&mut entry.state, gcra, charge, time.now, outcomes));
        }
        self.take_alone_slowly(charge, time, outcomes)
    }

    /// The same for a new bucket, and for every other algorithm.
    #[inline(never)]
    fn take_alone_slowly(&mut self, charge: &Charge, time: StoreTime, outcomes: &mut Outcomes) -> Option<bool> {
        let place = self.place(charge);
        let Look::Seen { admits, place } = self.look(charge, place, time, 0) else { return None };
        let passes = admits || !charge.is_enforced();
        outcomes.push(self.settle(charge, place, time, passes, admits));
        Some(passes)
    }

    /// The index of the charge's bucket. A separate, short step, so that the cache misses of several charges overlap.
    #[inline]
    pub(super) fn place(&mut self, charge: &Charge) -> Option<usize> {
        with_table!(self, &charge.limit, |table, _algorithm| table.find(charge.bucket))
    }

    /// Whether the bucket at `place` admits the charge. Changes no bucket; may drop unused buckets to make room for a
    /// new one, after `pending` others of the same call.
    #[inline]
    pub(super) fn look(&mut self, charge: &Charge, place: Option<usize>, time: StoreTime, pending: usize) -> Look {
        let now = time.of(&charge.limit);
        let raised = charge.soft.map(|_| charge.limit_at(now));
        let (admits, place) = with_table!(self, raised.as_ref().unwrap_or(&charge.limit), |table, algorithm| {
            // An earlier charge of the same request may have moved the entry while making room for its own.
            let moved = place.is_some_and(|place| table.get(place, charge.bucket).is_none());
            let place = if moved { table.find(charge.bucket) } else { place };
            let admits = match place.and_then(|place| table.get(place, charge.bucket)) {
                Some(entry) => algorithm.admits(&entry.state, now, &charge.ask),
                None => algorithm.admits(&Default::default(), now, &charge.ask),
            };
            (admits, place)
        });
        if place.is_none() && charge.ask.cost() > 0 && !self.make_room(charge, time, pending) {
            return Look::Full;
        }
        Look::Seen { admits, place }
    }

    /// Records what was decided over all charges, and returns the outcome of the bucket.
    #[inline]
    pub(super) fn settle(
        &mut self,
        charge: &Charge,
        place: Option<usize>,
        time: StoreTime,
        passes: bool,
        admits: bool,
    ) -> Outcome {
        let now = time.of(&charge.limit);
        let plain = charge.soft.is_none() && !charge.count_denied && !charge.owner.is_overflowing();
        if let Some(place) = place.filter(|_| plain) {
            let usage = &mut self.usage;
            let settled = with_table!(self, &charge.limit, |table, algorithm| {
                let settled = table.get_mut(place, charge.bucket).map(|entry| {
                    let record = |effect| {
                        let record = |state: &mut _| algorithm.record(state, now, &charge.ask, effect);
                        usage.record(charge.owner, entry, record)
                    };
                    let granted = charge.effect(passes, admits).map_or(0, record);
                    (algorithm.view(&entry.state, now, &charge.ask, admits, granted), granted)
                });
                settled.map(|(outcome, granted)| {
                    if granted > 0 {
                        table.mark_changed(place);
                    }
                    outcome
                })
            });
            if let Some(outcome) = settled {
                return outcome;
            }
        }
        self.settle_slowly(charge, place, now, passes, admits)
    }

    /// The same for a bucket that is new or has moved, and for charges with special options.
    #[inline(never)]
    fn settle_slowly(
        &mut self,
        charge: &Charge,
        place: Option<usize>,
        now: Time,
        passes: bool,
        admits: bool,
    ) -> Outcome {
        let deciding = charge.limit_at(now);
        let usage = &mut self.usage;
        let granted = match charge.effect(passes, admits) {
            None => 0,
            Some(effect) => with_table!(self, deciding, |table, algorithm| {
                record_in(table, usage, charge, place, |state| algorithm.record(state, now, &charge.ask, effect), now)
            }),
        };
        let mut outcome = with_table!(self, charge.limit, |table, algorithm| {
            let place = place.filter(|place| table.get(*place, charge.bucket).is_some());
            let entry = place.or_else(|| table.find(charge.bucket)).and_then(|place| table.get(place, charge.bucket));
            let fresh = Default::default();
            let state = entry.map_or(&fresh, |entry| &entry.state);
            let outcome = algorithm.view(state, now, &charge.ask, admits, granted);
            // Counted although another rule refused: the wait must include this count.
            let counted = charge.count_denied && admits && !passes && granted > 0;
            match counted && !algorithm.admits(state, now, &charge.ask) {
                true => Outcome { wait: algorithm.view(state, now, &charge.ask, false, granted).wait, ..outcome },
                false => outcome,
            }
        });
        if charge.owner.is_overflowing() {
            outcome.source = Source::Overflow;
        }
        outcome
    }

    /// Gives back what the receipt's charge still owes; true if that was anything.
    pub(super) fn give_back(&mut self, receipt: &Receipt, time: StoreTime) -> bool {
        let now = time.of(&receipt.limit);
        if let (Limit::Concurrency(limit), Some(id)) = (receipt.limit, receipt.slot) {
            let place = self.slots.find(receipt.bucket);
            let entry = place.and_then(|place| self.slots.get_mut(place, receipt.bucket));
            return entry.is_some_and(|entry| limit.release(&mut entry.state, now, id));
        }
        let until = time.now.after(receipt.remembered_until(now).since(now));
        let most = self.usage.budget / SPENT_SHARE;
        if receipt.number.is_some_and(|number| !self.spent.spend(number, until, time.now, most)) {
            return false;
        }
        with_table!(self, receipt.limit, |table, algorithm| {
            let Some(place) = table.find(receipt.bucket) else { return false };
            let Some(entry) = table.get_mut(place, receipt.bucket) else { return false };
            let units = algorithm.refund(&mut entry.state, now, receipt.units, Some(receipt.stamp));
            if units > 0 {
                table.mark_changed(place);
            }
            units > 0
        })
    }

    pub(super) fn forget(&mut self, bucket: Digest, kind: LimitKind) {
        let usage = &mut self.usage;
        match kind {
            LimitKind::Gcra => forget_in(&mut self.gcra, usage, bucket),
            LimitKind::FixedWindow => forget_in(&mut self.window, usage, bucket),
            LimitKind::SlidingCounter => forget_in(&mut self.counter, usage, bucket),
            LimitKind::Queue => forget_in(&mut self.queue, usage, bucket),
            LimitKind::SlidingLog => forget_in(&mut self.log, usage, bucket),
            LimitKind::Concurrency => forget_in(&mut self.slots, usage, bucket),
            LimitKind::Quota => forget_in(&mut self.quota, usage, bucket),
        }
    }

    pub(super) fn sweep(&mut self, time: StoreTime) {
        let StoreTime { now, wall } = time;
        let usage = &mut self.usage;
        self.gcra.sweep_step(now, |entry| usage.remove(entry));
        self.window.sweep_step(now, |entry| usage.remove(entry));
        self.counter.sweep_step(now, |entry| usage.remove(entry));
        self.queue.sweep_step(now, |entry| usage.remove(entry));
        self.log.sweep_step(now, |entry| usage.remove(entry));
        self.slots.sweep_step(now, |entry| usage.remove(entry));
        self.quota.sweep_step(wall, |entry| usage.remove(entry));
        if usage.bytes() > usage.budget / 2 {
            self.reclaim(time);
        }
    }

    /// Releases memory of tables that a past flood enlarged: otherwise a flood of one algorithm would starve the others
    /// forever. Iterates over the shard, hence rate-limited.
    #[cold]
    fn reclaim(&mut self, StoreTime { now, wall }: StoreTime) {
        let usage = &mut self.usage;
        if now < usage.reclaimed.after(RECLAIM_EVERY) && now >= usage.reclaimed {
            return;
        }
        usage.reclaimed = now;
        self.gcra.shrink(now, |entry| usage.remove(entry));
        self.window.shrink(now, |entry| usage.remove(entry));
        self.counter.shrink(now, |entry| usage.remove(entry));
        self.queue.shrink(now, |entry| usage.remove(entry));
        self.log.shrink(now, |entry| usage.remove(entry));
        self.slots.shrink(now, |entry| usage.remove(entry));
        self.quota.shrink(wall, |entry| usage.remove(entry));
        let (small, large) = (self.gcra.bytes() + self.queue.bytes(), self.window.bytes() + self.counter.bytes());
        usage.tables = small + large + self.log.bytes() + self.slots.bytes() + self.quota.bytes();
    }

    pub(super) fn buckets(&self) -> usize {
        let counts = self.gcra.len() + self.window.len() + self.counter.len() + self.queue.len();
        counts + self.log.len() + self.slots.len() + self.quota.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.usage.bytes() + self.spent.bytes()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.usage.dropped
    }

    /// Makes room for one more bucket of the charge's algorithm: grows within the budget, then drops fresh buckets.
    #[inline]
    pub(super) fn make_room(&mut self, charge: &Charge, time: StoreTime, pending: usize) -> bool {
        if charge.owner.share == 100 && with_table!(self, charge.limit, |table, _algorithm| table.has_room(pending)) {
            return true;
        }
        self.make_room_slowly(charge, time, pending)
    }

    #[cold]
    fn make_room_slowly(&mut self, charge: &Charge, time: StoreTime, pending: usize) -> bool {
        if charge.owner.is_overflowing() {
            return true; // uses the slack of the table: growing for it would make room for the flood
        }
        let now = time.of(&charge.limit);
        self.try_room(charge, now, pending) || {
            self.reclaim(time);
            self.try_room(charge, now, pending)
        }
    }

    fn try_room(&mut self, charge: &Charge, now: Time, pending: usize) -> bool {
        let (owner, usage) = (charge.owner, &mut self.usage);
        with_table!(self, charge.limit, |table, _algorithm| {
            if !usage.may_own_more(owner) {
                table.sweep_step(now, |entry| usage.remove(entry));
                if !usage.may_own_more(owner) {
                    return false;
                }
            }
            if table.has_room(pending) {
                return true;
            }
            let before = table.bytes();
            if usage.bytes() - before + table.bytes_grown(pending) <= usage.budget {
                table.grow(now, pending, |entry| usage.remove(entry));
                usage.tables = usage.tables - before + table.bytes();
            } else {
                table.sweep_step(now, |entry| usage.remove(entry));
            }
            table.has_room(pending)
        })
    }
}

/// Decides a charge on the only bucket of its request.
#[inline]
fn take_in<A: Algorithm>(
    state: &mut A::State,
    algorithm: &A,
    charge: &Charge,
    now: Time,
    outcomes: &mut Outcomes,
) -> bool {
    let admits = algorithm.admits(state, now, &charge.ask);
    let passes = admits || !charge.is_enforced();
    let granted = match charge.effect(passes, admits) {
        None => 0,
        Some(effect) => algorithm.record(state, now, &charge.ask, effect),
    };
    outcomes.push(algorithm.view(state, now, &charge.ask, admits, granted));
    passes
}

#[inline]
fn record_in<S: State>(
    table: &mut BucketTable<S>,
    usage: &mut ShardUsage,
    charge: &Charge,
    place: Option<usize>,
    record: impl FnOnce(&mut S) -> u64,
    now: Time,
) -> u64 {
    // An earlier charge of the same request may have moved the entry while making room for its own.
    let place = place.filter(|place| table.get(*place, charge.bucket).is_some()).or_else(|| table.find(charge.bucket));
    if let Some((place, entry)) = place.and_then(|place| Some((place, table.get_mut(place, charge.bucket)?))) {
        let granted = usage.record(charge.owner, entry, record);
        if granted > 0 {
            table.mark_changed(place);
        }
        return granted;
    }
    let mut state = S::default();
    let granted = record(&mut state);
    if !state.is_fresh(now) {
        usage.add(charge.owner, &state);
        let before = table.bytes();
        let place = table.insert(charge.bucket, state, charge.owner.id);
        table.mark_changed(place);
        usage.tables = usage.tables - before + table.bytes();
    }
    granted
}

fn forget_in<S: State>(table: &mut BucketTable<S>, usage: &mut ShardUsage, bucket: Digest) {
    let Some(place) = table.find(bucket) else { return };
    if table.is_tracking() {
        // Stays until it was reported as unused; a sweep drops it after that.
        if let Some(entry) = table.get_mut(place, bucket) {
            entry.state = S::default();
        }
        return table.mark_changed(place);
    }
    if let Some(entry) = table.get(place, bucket) {
        usage.remove(entry);
    }
    table.remove(place);
}
