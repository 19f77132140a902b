//! The size of a batch.
//!
//! Too small a batch costs too many calls; too large a batch holds units that another node needs. So a batch is what
//! demand will use soon, at most doubles, and is bounded by a fair share of what is left, so that all nodes together
//! never hold much of a bucket.

use tollgate_core::{LeaseSize, Limit, Span};

/// A bucket that was found empty is not asked for at least this long, if its units are returned faster. The store would
/// have a unit or two again at once, but fetching single units is what leases avoid; no unit is lost, because they
/// accumulate in the bucket.
pub(super) const EMPTY_BACKOFF: Span = Span::from_millis(25);

/// How long a bucket that was found empty is not asked: until one unit per node has been returned, at most twice
/// [`EMPTY_BACKOFF`]. Zero if units are returned slowly: the state of the bucket then gives the time.
pub(super) fn empty_backoff(limit: &Limit, nodes: u64) -> Span {
    match limit {
        Limit::Gcra(gcra) if gcra.interval() < EMPTY_BACKOFF => {
            Span::from_nanos(gcra.interval().nanos().saturating_mul(nodes))
                .clamp(EMPTY_BACKOFF, EMPTY_BACKOFF.plus(EMPTY_BACKOFF))
        }
        _ => Span::ZERO,
    }
}

/// Batches up to this size are asked for even if demand is slow, if they are spent within the lifetime of a lease.
const SMALL: u64 = 32;

/// Batches larger than [`SMALL`] cover the expected demand of this span.
const AHEAD: Span = Span::from_millis(100);

/// What determines the size of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSizing {
    /// Demand in units per second.
    pub(super) rate: u64,
    /// The previous batch; the next is at most twice as large.
    pub(super) last: u64,
    /// Units left in the bucket, as far as is known.
    pub(super) room: u64,
    /// Batches in a row that were granted in full.
    pub(super) full: u32,
    /// Nodes that share the bucket.
    pub(super) nodes: u64,
    /// Lifetime of a lease.
    pub(super) ttl: Span,
}

impl BatchSizing {
    /// Units to ask for, including those of the current request; zero or one means that a lease is not worthwhile.
    pub(super) fn batch(&self, limit: &Limit, bound: LeaseSize) -> u64 {
        let soon = self.over(self.ttl);
        let wanted = soon.min(self.over(AHEAD).max(SMALL)).min(self.last.saturating_mul(2).max(2));
        let bounded = match bound {
            LeaseSize::Auto => wanted,
            LeaseSize::Units(units) => wanted.min(u64::from(units)),
            LeaseSize::Millis(millis) => wanted.min(self.over(Span::from_millis(u64::from(millis)))),
        };
        bounded.min(self.fair(limit))
    }

    /// Half of this node's share of what is left. For a nearly empty bucket: this node's share of the units returned
    /// between two calls; more while batches are granted in full, because other nodes then leave theirs.
    fn fair(&self, limit: &Limit) -> u64 {
        let nodes = self.nodes.max(1);
        let left = self.room / nodes.saturating_mul(2);
        let back = match limit {
            Limit::Gcra(gcra) if gcra.interval() < EMPTY_BACKOFF => {
                EMPTY_BACKOFF.nanos() / gcra.interval().nanos().max(1) / nodes
            }
            _ => return left.max(1),
        };
        left.max(back.max(1) << self.full.min(4))
    }

    /// Units expected in that span.
    fn over(&self, span: Span) -> u64 {
        let units = u128::from(self.rate) * u128::from(span.nanos()) / u128::from(Span::SECOND.nanos());
        u64::try_from(units).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(rate: u64, last: u64, room: u64) -> BatchSizing {
        BatchSizing { rate, last, room, full: 1, nodes: 4, ttl: Span::SECOND }
    }

    #[test]
    fn follows_demand_and_doubles_at_most() {
        let limit = Limit::per_second(10_000).unwrap();
        let batch = |rate, last| need(rate, last, 10_000).batch(&limit, LeaseSize::Auto);
        assert_eq!(batch(4_000, 0), 2);
        assert_eq!(batch(4_000, 64), 128);
        assert_eq!(batch(4_000, 1_000), 400, "a tenth of a second");
        assert_eq!(batch(100, 1_000), 32, "few, but spent soon");
        assert_eq!(batch(4, 1_000), 4, "a second of four per second");
        assert_eq!(batch(1, 1_000), 1, "cold");
    }

    #[test]
    fn takes_a_fair_part_of_what_is_left() {
        let limit = Limit::per_second(10_000).unwrap();
        assert_eq!(need(4_000, 1_000, 800).batch(&limit, LeaseSize::Auto), 124, "units returned in two backoffs");
        assert_eq!(need(4_000, 1_000, 2_400).batch(&limit, LeaseSize::Auto), 300);
        let slow = Limit::per_minute(60).unwrap();
        assert_eq!(need(4_000, 1_000, 3).batch(&slow, LeaseSize::Auto), 1, "the rest is for other nodes");
    }

    #[test]
    fn keeps_the_bound_of_the_rule() {
        let limit = Limit::per_second(10_000).unwrap();
        let need = need(4_000, 1_000, 10_000);
        assert_eq!(need.batch(&limit, LeaseSize::Units(7)), 7);
        assert_eq!(need.batch(&limit, LeaseSize::Millis(20)), 80);
    }
}
