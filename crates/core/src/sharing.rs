//! How the nodes of a fleet share a bucket.

/// What a node may decide without the shared store. A store that is not shared treats all values alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The shared store makes every decision.
    #[default]
    Exact,
    /// The node takes units from the shared store in advance and spends them locally.
    Leased(LeaseSize),
    /// The node decides by its own copy of the bucket and reports its charges to the shared store afterwards.
    Async,
    /// The node enforces its static share of the limit; the shared store is never called.
    Local,
}

/// The largest lease that a node may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseSize {
    /// Sized by demand and limit.
    #[default]
    Auto,
    /// At most this many units.
    Units(u32),
    /// At most the expected demand of this many milliseconds.
    Millis(u32),
}

/// What answered for a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// The bucket itself.
    #[default]
    Bucket,
    /// The rule's overflow bucket: the store had no room for another bucket.
    Overflow,
    /// A lease: units taken in advance.
    Lease,
    /// This node's copy of the bucket; the charge is reported to the store afterwards.
    Async,
    /// This node's static share of the limit.
    Local,
}
