//! The operation that a charge performs on its bucket.

use std::fmt;

/// One operation on one bucket.
///
/// | ask | rate limits | [`Concurrency`](crate::Concurrency) |
/// |---|---|---|
/// | `Consume(n)` | record n if n fits; 0 reads | reads |
/// | `UpTo(n)` | record as much of n as fits, at least one | reads |
/// | `Force(n)` | record n even if it does not fit; debt is capped | reads |
/// | `Peek(n)` | read whether n would fit | reads |
/// | `Hold(id)` | as `Consume(1)` | take a slot, or renew the one `id` holds |
/// | `Renew(id)` | reads | renew the slot, if `id` still holds it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Record the cost, only if it fits.
    Consume(u64),
    /// Record as many units as fit, at most this many: how a node obtains a lease.
    UpTo(u64),
    /// Record the cost even if it does not fit: usage reported after the fact.
    Force(u64),
    /// Read whether the cost would fit. Changes nothing.
    Peek(u64),
    /// Take a concurrency slot under this id.
    Hold(SlotId),
    /// Renew a slot that is still held; an expired one is not taken again.
    Renew(SlotId),
}

impl Ask {
    /// The cost for a rate limit.
    pub const fn cost(&self) -> u64 {
        match *self {
            Ask::Consume(n) | Ask::UpTo(n) | Ask::Force(n) | Ask::Peek(n) => n,
            Ask::Hold(_) => 1,
            Ask::Renew(_) => 0,
        }
    }

    /// The smallest cost that satisfies the ask: one unit is enough for a lease.
    pub const fn least(&self) -> u64 {
        match *self {
            Ask::UpTo(n) => {
                if n == 0 {
                    0
                } else {
                    1
                }
            }
            _ => self.cost(),
        }
    }

    /// The same ask at `factor` times the cost; slots have no cost.
    pub const fn times(self, factor: u64) -> Ask {
        match self {
            Ask::Consume(n) => Ask::Consume(n.saturating_mul(factor)),
            Ask::UpTo(n) => Ask::UpTo(n.saturating_mul(factor)),
            Ask::Force(n) => Ask::Force(n.saturating_mul(factor)),
            Ask::Peek(n) => Ask::Peek(n.saturating_mul(factor)),
            slot => slot,
        }
    }

    /// Both asks combined, where that is equivalent: a decision may name a bucket only once.
    pub const fn join(self, other: Ask) -> Option<Ask> {
        Some(match (self, other) {
            (Ask::Consume(a), Ask::Consume(b)) => Ask::Consume(a.saturating_add(b)),
            (Ask::UpTo(a), Ask::UpTo(b)) => Ask::UpTo(a.saturating_add(b)),
            (Ask::Force(a), Ask::Force(b)) => Ask::Force(a.saturating_add(b)),
            (Ask::Peek(a), Ask::Peek(b)) => Ask::Peek(a.saturating_add(b)),
            _ => return None,
        })
    }

    /// True if the ask may change a bucket.
    pub const fn writes(&self) -> bool {
        match *self {
            Ask::Consume(n) | Ask::UpTo(n) | Ask::Force(n) => n > 0,
            Ask::Hold(_) | Ask::Renew(_) => true,
            Ask::Peek(_) => false,
        }
    }
}

/// The holder of one slot. Sixteen random bytes, so that callers cannot release slots of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u128);

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotId({self})")
    }
}
