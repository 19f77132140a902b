//! Decision time and wall time as functions of the monotonic clock: pure arithmetic over readings that callers pass.
//!
//! Decision time is the monotonic time plus an offset. The offset changes in two ways only: it grows by the length of a
//! suspend, which is time that really passed, and it slews towards the wall clock after that was set. A [`Segment`]
//! describes both. A reader computes with one segment and starts over if another was published in the meantime, so
//! consecutive readers never see time step back.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;
use tollgate_core::{Span, Time};

/// Decision time slews by one part in this many of the elapsed time: 488 parts per million, as slow as the kernel slews
/// its clocks, so that neither a rate nor a reported wait is off by more than that.
const SLEW: i64 = 2048;

/// Differences below this are measurement noise, not steps: 10 ms.
const NOISE: i64 = 10_000_000;

/// A new segment starts to slew after this delay, when all readers have seen it: 100 ms.
const NOTICE: i64 = 100_000_000;

/// A reading of all clocks of the system.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockReading {
    /// The monotonic clock, after the others were read.
    pub(super) monotonic: Span,
    /// How long the reading took: the error between its parts.
    pub(super) spread: Span,
    pub(super) wall: Time,
    /// How long the machine was suspended since boot.
    pub(super) asleep: Span,
}

/// Maps monotonic time to decision time, from some moment on. All in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segment {
    /// The monotonic time at which slewing starts.
    start: i64,
    /// Decision time minus monotonic time, before slewing.
    offset: i64,
    /// How far the wall was ahead of decision time at the start: the total to slew.
    ahead: i64,
}

impl Segment {
    /// The amount slewed after `elapsed`, one part in `divisor`.
    #[inline]
    fn slewed(self, elapsed: i64, divisor: i64) -> i64 {
        let most = elapsed.max(0) / divisor;
        self.ahead.clamp(-most, most)
    }

    #[inline]
    fn now(self, monotonic: i64) -> i64 {
        let unslewed = monotonic.saturating_add(self.offset);
        if self.ahead == 0 {
            return unslewed;
        }
        unslewed.saturating_add(self.slewed(monotonic.saturating_sub(self.start), SLEW))
    }

    /// The wall time at which decision time is `now`. Decision time runs one part in [`SLEW`] faster or slower.
    #[inline]
    fn wall_at(self, now: i64) -> i64 {
        if self.ahead == 0 {
            return now;
        }
        let elapsed = now.saturating_sub(self.start.saturating_add(self.offset));
        now.saturating_add(self.ahead - self.slewed(elapsed, SLEW + self.ahead.signum()))
    }

    /// The segment after this reading, or `None` if this segment still matches it.
    fn after(self, reading: &ClockReading, slept: i64) -> Option<Segment> {
        let monotonic = nanos(reading.monotonic);
        let now = self.now(monotonic);
        let known = self.wall_at(now);
        let (step, noise) = (nanos_of(reading.wall) - known, NOISE.saturating_add(nanos(reading.spread)));
        if step.abs() <= noise && slept == 0 {
            return None;
        }
        // Readers of this segment may run ahead until they see the next one, if it slews forward: start from there.
        let reached = now.max(self.now(monotonic.saturating_add(NOTICE)).saturating_sub(NOTICE)).saturating_add(slept);
        let wall = if step.abs() <= noise { known } else { nanos_of(reading.wall) };
        let ahead = wall.saturating_sub(reached);
        Some(Segment {
            start: monotonic.saturating_add(NOTICE),
            offset: reached.saturating_sub(monotonic),
            ahead: if ahead.abs() <= noise { 0 } else { ahead },
        })
    }
}

/// The current segment, for any number of readers, which never wait.
#[derive(Debug)]
pub(super) struct Timeline {
    /// The number of segments so far; its parity selects the slot of the current one.
    count: AtomicUsize,
    slots: [SegmentSlot; 2],
    /// The monotonic time of the next reading of the system's clocks.
    next_look: AtomicU64,
    /// How long the machine had been suspended at the last reading; locked by the thread that publishes.
    asleep: Mutex<Span>,
    look_every: Span,
}

#[derive(Debug, Default)]
struct SegmentSlot {
    start: AtomicU64,
    offset: AtomicU64,
    ahead: AtomicU64,
}

impl Timeline {
    /// Decision time starts at the wall time of the first reading.
    pub(super) fn new(first: ClockReading, look_every: Span) -> Timeline {
        let monotonic = nanos(first.monotonic);
        let timeline = Timeline {
            count: AtomicUsize::new(0),
            slots: Default::default(),
            next_look: AtomicU64::new(first.monotonic.plus(look_every).nanos()),
            asleep: Mutex::new(first.asleep),
            look_every,
        };
        timeline.slots[0].set(Segment { start: monotonic, offset: nanos_of(first.wall) - monotonic, ahead: 0 });
        timeline
    }

    /// Decision time, by a fresh `read` of the monotonic clock. Calls `look` when a reading of the system's clocks is
    /// due.
    #[inline]
    pub(super) fn now(&self, read: impl Fn() -> Span, look: impl Fn() -> ClockReading) -> Time {
        let mut may_look = true; // once per call: a reading may take longer than the interval
        loop {
            let count = self.count.load(Ordering::Acquire);
            let segment = self.slot(count).get();
            let monotonic = read();
            if monotonic.nanos() >= self.next_look.load(Ordering::Relaxed) && may_look {
                may_look = false;
                self.refresh(&look);
            } else if self.is_still(count) {
                return time(segment.now(nanos(monotonic)));
            }
        }
    }

    /// The wall time at which decision time is `now`.
    #[inline]
    pub(super) fn wall_at(&self, now: Time) -> Time {
        loop {
            let count = self.count.load(Ordering::Acquire);
            let segment = self.slot(count).get();
            if self.is_still(count) {
                return time(segment.wall_at(nanos_of(now)));
            }
        }
    }

    /// True if the segment with this number is still current: the values read before are consistent.
    #[inline]
    fn is_still(&self, count: usize) -> bool {
        fence(Ordering::Acquire);
        self.count.load(Ordering::Relaxed) == count
    }

    /// Reads the system's clocks, unless another thread is doing so.
    #[cold]
    fn refresh(&self, look: impl Fn() -> ClockReading) {
        let Some(mut asleep) = self.asleep.try_lock() else { return };
        let reading = look();
        self.next_look.store(reading.monotonic.plus(self.look_every).nanos(), Ordering::Relaxed);
        let slept = nanos(reading.asleep.minus(*asleep));
        let slept = if slept > NOISE.saturating_add(nanos(reading.spread)) { slept } else { 0 };
        let count = self.count.load(Ordering::Relaxed);
        let Some(next) = self.slot(count).get().after(&reading, slept) else { return };
        if slept > 0 {
            *asleep = reading.asleep;
        }
        fence(Ordering::Release); // a reader that sees the new values also sees the count that made this slot free
        self.slot(count.wrapping_add(1)).set(next);
        self.count.store(count.wrapping_add(1), Ordering::Release);
    }

    #[inline]
    fn slot(&self, count: usize) -> &SegmentSlot {
        let [even, odd] = &self.slots;
        if count.is_multiple_of(2) { even } else { odd }
    }
}

impl SegmentSlot {
    #[inline]
    fn get(&self) -> Segment {
        let read = |part: &AtomicU64| part.load(Ordering::Relaxed).cast_signed();
        Segment { start: read(&self.start), offset: read(&self.offset), ahead: read(&self.ahead) }
    }

    fn set(&self, segment: Segment) {
        let Segment { start, offset, ahead } = segment;
        for (part, value) in [(&self.start, start), (&self.offset, offset), (&self.ahead, ahead)] {
            part.store(value.cast_unsigned(), Ordering::Relaxed);
        }
    }
}

#[inline]
fn nanos(span: Span) -> i64 {
    span.nanos().min(i64::MAX as u64).cast_signed()
}

#[inline]
fn nanos_of(time: Time) -> i64 {
    time.nanos().min(i64::MAX as u64).cast_signed()
}

#[inline]
fn time(nanos: i64) -> Time {
    Time::from_nanos(nanos.max(0).cast_unsigned())
}

#[cfg(test)]
mod tests;
