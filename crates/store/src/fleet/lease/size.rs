//! How many units to ask for at once.
//!
//! Too few, and the shared store is asked too often; too many, and they lie here while another node refuses. So a batch
//! is what demand will use up soon, grows by doubling while demand does, and is bounded by what is fair: a part of what
//! is left, so that all nodes together never hold much of it.

use tollgate_core::{LeaseSize, Limit, Span};

/// A bucket found empty is not asked again sooner than this, where its units come back faster. The shared store would
/// have a unit or two again at once, but fetching them one by one is what leases are to avoid; nothing is lost, the
/// units gather in the bucket meanwhile.
pub(super) const EMPTY_BACKOFF: Span = Span::from_millis(25);

/// How long to leave a bucket alone that was found empty: until a unit has come back for each node, but no longer than
/// two paces. Nobody need be told where units come back slowly; then the state of the bucket says when.
pub(super) fn empty_backoff(limit: &Limit, nodes: u64) -> Span {
    match limit {
        Limit::Gcra(gcra) if gcra.interval() < EMPTY_BACKOFF => {
            Span::from_nanos(gcra.interval().nanos().saturating_mul(nodes))
                .clamp(EMPTY_BACKOFF, EMPTY_BACKOFF.plus(EMPTY_BACKOFF))
        }
        _ => Span::ZERO,
    }
}

/// A batch that will be spent within the lifetime of a lease is worth having up to this size, however slow demand is.
const SMALL: u64 = 32;

/// A batch beyond [`SMALL`] covers this much of the expected need.
const AHEAD: Span = Span::from_millis(100);

/// What bounds a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSizing {
    /// Units per second that are wanted.
    pub(super) rate: u64,
    /// The batch before; the next is at most twice as large.
    pub(super) last: u64,
    /// Units left in the bucket, as far as is known.
    pub(super) room: u64,
    /// Batches in a row that were granted in full.
    pub(super) full: u32,
    /// Nodes that may want them.
    pub(super) nodes: u64,
    /// Lifetime of a lease.
    pub(super) ttl: Span,
}

impl BatchSizing {
    /// Units to ask for, the present request's included; zero or one means that no lease is worth it.
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

    /// A half of this node's part of what is left. Of a bucket that is nearly empty, this node's part of what comes back
    /// between two asks; more while it is granted in full, because then others do not want theirs.
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

    /// Units wanted in that span.
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
        assert_eq!(need(4_000, 1_000, 800).batch(&limit, LeaseSize::Auto), 124, "what comes back in two paces");
        assert_eq!(need(4_000, 1_000, 2_400).batch(&limit, LeaseSize::Auto), 300);
        let slow = Limit::per_minute(60).unwrap();
        assert_eq!(need(4_000, 1_000, 3).batch(&slow, LeaseSize::Auto), 1, "the rest is for whoever comes");
    }

    #[test]
    fn keeps_the_bound_of_the_rule() {
        let limit = Limit::per_second(10_000).unwrap();
        let need = need(4_000, 1_000, 10_000);
        assert_eq!(need.batch(&limit, LeaseSize::Units(7)), 7);
        assert_eq!(need.batch(&limit, LeaseSize::Millis(20)), 80);
    }
}
