//! What a node did alone, and what it asked for.

/// Figures of a [`Fleet`](crate::Fleet) since its start; sums over parts that are read one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetStats {
    /// Buckets under lease, or about to be.
    pub leases: usize,
    /// Units held in advance at this moment.
    pub lease_held: u64,
    /// Units granted in batches, those included that the asking request used at once.
    pub lease_granted: u64,
    /// Of those, units spent.
    pub lease_spent: u64,
    /// Of those, units that came back unspent: given back, or refilled by time before they expired.
    pub lease_returned: u64,
    /// Of those, units lost to everybody: their window ended, or the store did not take them back.
    pub lease_stranded: u64,
    /// Charges decided by a lease, refusals included.
    pub by_lease: u64,
    /// Requests refused by what was remembered.
    pub by_deny_cache: u64,
    /// Charges decided by what this node knows, the store being told behind.
    pub by_async: u64,
    /// Charges decided by this node's share.
    pub by_local: u64,
    /// Calls of the shared store, those of upkeep included.
    pub inner_calls: u64,
    /// Units decided here that the store does not know of yet.
    pub async_pending: u64,
    /// Units that found their bucket beyond its limit when the store was told of them: the error of deciding alone.
    pub async_excess: u64,
    /// Buckets remembered as refused.
    pub deny_entries: usize,
}
