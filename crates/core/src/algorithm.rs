//! The interface of all algorithms: three steps, so that a request is charged to all its buckets or to none.

use crate::{Ask, Outcome, Span, Time};

/// A limit over one bucket. Pure: the same state, time and ask give the same result on every machine.
///
/// Implementors promise, for any sequence of times (also backwards), costs and changed limits: no panic, no overflow,
/// no float; `Peek` and cost 0 never change a state; a clock that steps back locks a bucket for at most a small
/// multiple of its period; the reported wait is sufficient.
pub trait Algorithm {
    /// The state of a bucket. Its default is an unused bucket.
    type State: State;

    /// True if the ask would pass. Changes nothing.
    fn admits(&self, state: &Self::State, now: Time, ask: &Ask) -> bool;

    /// Writes the effect that was decided over all buckets of the request. Returns the number of units recorded.
    fn record(&self, state: &mut Self::State, now: Time, ask: &Ask, effect: Effect) -> u64;

    /// The outcome for the caller, from the state after `granted` units were recorded.
    fn view(&self, state: &Self::State, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome;

    /// Gives `units` back, never above full. With the `stamp` of the charge, only what that charge still owes: units
    /// that time has already returned are not returned twice. Returns the units given back, rounded down.
    fn refund(&self, state: &mut Self::State, now: Time, units: u64, stamp: Option<Time>) -> u64;
}

/// What happens to an ask once all buckets of the request were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// All buckets admit it: record the cost.
    Charge,
    /// Record the cost although a bucket refused (forced usage, `count_denied`).
    Force,
    /// A bucket refused: record no cost, but store the bound that a backward clock step made necessary. Without that
    /// the bound would move with the clock, and the bucket would stay locked longer than every outcome promised.
    Refuse,
}

/// The state of a bucket.
pub trait State: Default {
    /// True if indistinguishable from an unused bucket, for every sequence of requests from `now` on. Only then may a
    /// store drop it.
    fn is_fresh(&self, now: Time) -> bool;

    /// True if the state holds memory on the heap.
    const ON_HEAP: bool = false;

    /// True if usage must survive a restart: a store can report which of these states changed.
    const IS_DURABLE: bool = false;

    /// Bytes held on the heap.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Sets whether the store is full. A confined state must not grow; it may lose detail, never usage.
    fn confine(&mut self, _confined: bool) {}
}

/// A span rounded up into 32 bits (26 of mantissa, 6 of shift): how long a state outlives its window, in half the
/// bytes. At most a 2^-25th too long and never too short, so no bucket is dropped early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactSpan(u32);

impl CompactSpan {
    const MANTISSA_BITS: u32 = 26;

    pub(crate) const fn of(span: Span) -> CompactSpan {
        let nanos = span.nanos();
        let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(Self::MANTISSA_BITS - 1);
        let mantissa = nanos.div_ceil(1 << shift) as u32; // below 2^26 by the choice of shift
        CompactSpan(shift << Self::MANTISSA_BITS | mantissa)
    }

    pub(crate) const fn span(self) -> Span {
        let shift = self.0 >> Self::MANTISSA_BITS;
        Span::from_nanos(((self.0 & ((1 << Self::MANTISSA_BITS) - 1)) as u64) << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_span_is_never_shorter_and_hardly_longer() {
        for nanos in [0, 1, 1_000_000, (1 << 25) - 1, 1 << 25, (1 << 26) - 1, 86_400_000_000_000, i64::MAX as u64] {
            let kept = CompactSpan::of(Span::from_nanos(nanos)).span().nanos();
            assert!(kept >= nanos, "{nanos} came back as {kept}");
            assert!(kept - nanos <= nanos >> 24, "{nanos} came back as {kept}");
        }
    }
}
