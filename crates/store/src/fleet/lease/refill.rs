//! Refilling a lease: when to ask the store for more units, and for how many.
//!
//! A lease below its low-water mark is refilled while requests go on spending what is left. One refill is under way at
//! a time. A bucket that was found empty is left alone for a moment, and so is a store that failed.

use tollgate_core::{LeaseSize, Limit, Span, Time};

use super::demand::Demand;
use super::size::{BatchSizing, EMPTY_BACKOFF, empty_backoff};
use crate::fleet::mirror::Observation;

/// After a failed refill the store is not asked for this long, while units last.
const RETRY_AFTER: Span = Span::from_millis(100);

/// Batches smaller than this have no low-water mark: the request that finds the lease empty asks.
const SMALL_BATCH: u64 = 8;

/// What a lease knows about its refills.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RefillState {
    /// The size of the last batch.
    batch_size: u64,
    /// Below this many units, more are asked for: twice what is spent while an answer travels.
    low_water: u64,
    /// Batches in a row that were granted in full.
    full_batches: u32,
    /// The store is being asked for units.
    in_flight: bool,
    /// The bucket was found empty: it is not asked before this.
    backoff_until: Time,
    /// A refill failed: the next one does not start before this.
    retry_at: Time,
}

/// The share of a bucket that a batch may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchBounds<'a> {
    pub(super) limit: &'a Limit,
    pub(super) size: LeaseSize,
    /// Units left in the bucket, as far as is known.
    pub(super) room: u64,
    pub(super) nodes: u64,
    pub(super) ttl: Span,
}

impl RefillState {
    /// True if a lease with `left` units should be refilled.
    #[inline]
    pub(super) fn is_due(&self, left: u64, now: Time) -> bool {
        left < self.low_water && self.may_ask(now) && now >= self.retry_at
    }

    /// True if the store may be asked about the bucket: no request is asking, and the bucket was not found empty just
    /// now.
    #[inline]
    pub(super) fn may_ask(&self, now: Time) -> bool {
        !self.in_flight && now >= self.backoff_until
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// How long the bucket is still left alone.
    #[inline]
    pub(super) fn backoff(&self, now: Time) -> Span {
        self.backoff_until.since(now)
    }

    pub(super) fn start(&mut self) {
        self.in_flight = true;
    }

    /// Starts the refill of a lease that ran out. Where the bucket was found empty before, other requests wait for what
    /// this one finds.
    pub(super) fn start_empty(&mut self, now: Time) {
        if self.backoff_until > Time::ZERO {
            self.backoff_until = now.after(EMPTY_BACKOFF);
        }
        self.in_flight = true;
    }

    /// Units to ask for at once.
    pub(super) fn batch(&self, demand: &Demand, now: Time, bounds: &BatchBounds<'_>) -> u64 {
        let BatchBounds { limit, size, room, nodes, ttl } = *bounds;
        let (rate, last, full) = (demand.rate(now), self.batch_size, self.full_batches);
        BatchSizing { rate, last, room, full, nodes, ttl }.batch(limit, size)
    }

    /// The store answered. The batch itself is [learnt](RefillState::learn_batch) separately: another rule may have
    /// refused the request that asked for it.
    pub(super) fn complete(&mut self) {
        self.in_flight = false;
        self.backoff_until = Time::ZERO;
    }

    /// Learns from a batch of `asked` units; `is_dry` if fewer were granted.
    pub(super) fn learn_batch(&mut self, asked: u64, is_dry: bool, demand: &Demand, seen: &Observation) {
        self.batch_size = asked;
        self.low_water = match asked {
            0..SMALL_BATCH => 0,
            _ => demand.over(seen.received.since(seen.sent)).saturating_mul(2).clamp(asked / 4, asked / 2),
        };
        self.full_batches = if is_dry { 0 } else { self.full_batches.saturating_add(1) };
    }

    /// The bucket was found empty.
    pub(super) fn back_off(&mut self, limit: &Limit, nodes: u64, seen: &Observation) {
        self.backoff_until = seen.sent.after(empty_backoff(limit, nodes));
    }

    /// The refill got no answer: another request may ask, after a while if the store failed.
    pub(super) fn abandon(&mut self, now: Time, failed: bool) {
        self.complete();
        if failed {
            self.retry_at = now.after(RETRY_AFTER);
        }
    }

    /// Units were given back to the bucket: it need not be empty any more.
    pub(super) fn end_backoff(&mut self) {
        self.backoff_until = Time::ZERO;
    }

    /// The lease was emptied: its next batch starts small.
    pub(super) fn reset(&mut self) {
        (self.low_water, self.full_batches) = (0, 0);
    }
}
