//! Statistics of a node.

/// Statistics of a [`Fleet`](crate::Fleet) since its start; sums over shards that are read one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetStats {
    /// Leased buckets, including those that wait for their first units.
    pub leases: usize,
    /// Units held in advance now.
    pub lease_held: u64,
    /// Units granted in batches, including those that the requesting decision used.
    pub lease_granted: u64,
    /// Batches in which they were granted.
    pub lease_grants: u64,
    /// Of those, units spent.
    pub lease_spent: u64,
    /// Of those, units returned unspent: given back, or returned by time before they expired.
    pub lease_returned: u64,
    /// Of those, units lost: their window ended, or the store did not accept them.
    pub lease_stranded: u64,
    /// Charges decided by a lease, refusals included.
    pub by_lease: u64,
    /// Requests refused by the deny cache.
    pub by_deny_cache: u64,
    /// Charges decided by this node's copy of an async bucket.
    pub by_async: u64,
    /// Charges decided by this node's static share of a limit.
    pub by_local: u64,
    /// Calls of the shared store, including those of upkeep and refills.
    pub inner_calls: u64,
    /// Units of async buckets that were not reported to the store yet.
    pub async_pending: u64,
    /// Units that exceeded the limit when they were reported to the store: the error of async buckets.
    pub async_excess: u64,
    /// Entries of the deny cache.
    pub deny_entries: usize,
}
