//! What a charge asks of its bucket.

use std::fmt;

/// One question to one bucket.
///
/// | ask | rate limits | [`Concurrency`](crate::Concurrency) |
/// |---|---|---|
/// | `Consume(n)` | record n if n fits; 0 reads | reads |
/// | `UpTo(n)` | record as much of n as fits, at least one | reads |
/// | `Force(n)` | record n whatever the answer; debt is capped | reads |
/// | `Peek(n)` | would n fit? changes nothing | reads |
/// | `Hold(id)` | as `Consume(1)` | take a slot, or renew the one `id` holds |
/// | `Renew(id)` | reads | renew the slot, if `id` still holds it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Record the cost, only if it fits.
    Consume(u64),
    /// Record as many units as fit, at most this many: how a node takes a lease.
    UpTo(u64),
    /// Record the cost whatever the answer: usage reported after the fact.
    Force(u64),
    /// Would the cost fit? Changes nothing.
    Peek(u64),
    /// Take a slot of concurrency under this id.
    Hold(SlotId),
    /// Keep a slot that is still held; a lost one is not taken anew.
    Renew(SlotId),
}

impl Ask {
    /// What a rate limit weighs the ask with.
    pub const fn cost(&self) -> u64 {
        match *self {
            Ask::Consume(n) | Ask::UpTo(n) | Ask::Force(n) | Ask::Peek(n) => n,
            Ask::Hold(_) => 1,
            Ask::Renew(_) => 0,
        }
    }

    /// The smallest cost that satisfies the ask: a lease is content with one unit.
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

    /// The same ask at `factor` times the cost; slots have none.
    pub const fn times(self, factor: u64) -> Ask {
        match self {
            Ask::Consume(n) => Ask::Consume(n.saturating_mul(factor)),
            Ask::UpTo(n) => Ask::UpTo(n.saturating_mul(factor)),
            Ask::Force(n) => Ask::Force(n.saturating_mul(factor)),
            Ask::Peek(n) => Ask::Peek(n.saturating_mul(factor)),
            slot => slot,
        }
    }

    /// Both asks as one, where that means the same; a bucket can be asked only once per decision.
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

/// Names one holder of one slot. Sixteen random bytes, so that nobody can release what is not theirs.
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
