//! How the nodes of a fleet share a bucket.

/// What a node may decide by itself, and what it must ask for. A store that nobody else uses treats all alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Every decision is the shared store's.
    #[default]
    Exact,
    /// Units are taken from the shared store in advance, and spent by this node alone.
    Leased(LeaseSize),
    /// Decided by what this node knows; what it charged is told to the shared store behind.
    Async,
    /// This node's static share of the limit; the shared store is never asked.
    Local,
}

/// The largest lease that a node may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseSize {
    /// As demand and limit suggest.
    #[default]
    Auto,
    /// At most this many units.
    Units(u32),
    /// At most what this many milliseconds are expected to need.
    Millis(u32),
}

/// Who answered for a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// The bucket itself.
    #[default]
    Bucket,
    /// The rule's overflow bucket: the store had no room for one of the caller's own.
    Overflow,
    /// Units taken in advance.
    Lease,
    /// What this node knows of the bucket; the store learns of it behind.
    Async,
    /// This node's static share.
    Local,
}
