//! What every algorithm does, in the three steps that all-or-nothing needs.

use crate::{Ask, Outcome, Span, Time};

/// A limit over one bucket. Pure: the same state, time and ask give the same answer on every machine.
///
/// Implementors promise, for any sequence of times (also backwards), costs and changed limits:
/// no panic, no wrap, no float; `Peek` and cost 0 never change a state; a clock that steps back locks a bucket for no
/// longer than a small multiple of its own period, and the wait they report holds.
pub trait Algorithm {
    /// What a bucket remembers. Its default is a bucket nobody has used.
    type State: State;

    /// Would the ask pass? Changes nothing.
    fn admits(&self, state: &Self::State, now: Time, ask: &Ask) -> bool;

    /// Writes the effect that was decided over all buckets of the request; answers how many units were recorded.
    fn record(&self, state: &mut Self::State, now: Time, ask: &Ask, effect: Effect) -> u64;

    /// What the caller is told, from the state as it now is, after `granted` units were recorded.
    fn view(&self, state: &Self::State, now: Time, ask: &Ask, allowed: bool, granted: u64) -> Outcome;

    /// Gives `units` back, never above full. With the `stamp` of the charge only what that charge still owes: units
    /// that time has already returned are not handed out twice. Answers what was given back, in units rounded down.
    fn refund(&self, state: &mut Self::State, now: Time, units: u64, stamp: Option<Time>) -> u64;
}

/// What becomes of an ask once all buckets of the request were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// All agreed: record the cost.
    Charge,
    /// Record the cost although somebody refused (forced usage, `count_denied`).
    Force,
    /// Somebody refused: record nothing, but store a bound that a backward clock step made necessary. Left out, the
    /// bound would move along with the clock and the bucket would stay locked while every answer promised otherwise.
    Refuse,
}

/// What a bucket remembers.
pub trait State: Default {
    /// True if no sequence of requests from `now` on could tell this bucket from an unused one: only then may a store
    /// drop it.
    fn is_fresh(&self, now: Time) -> bool;

    /// Whether the state holds memory outside itself.
    const ON_HEAP: bool = false;

    /// Bytes held outside the state itself.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Tells the state that its store is full: it must not take more memory, and may forget detail, never usage.
    fn confine(&mut self, _confined: bool) {}
}

/// A span rounded up into 32 bits (26 of mantissa, 6 of shift): how long a state outlives its window, at half the
/// bytes. Too long by at most a 2^-25th, never too short, so a bucket is never dropped early.
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
