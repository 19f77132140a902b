//! The settings of a node of a fleet.

use tollgate_core::Span;

use crate::MemoryConfig;

/// How a node shares buckets with other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetConfig {
    /// The number of nodes, if the shared store does not know it. Default 1.
    pub nodes: u64,
    /// How long leased units may be spent after the call that obtained them: τ in the bound of leases. Default 1 s.
    pub lease_ttl: Span,
    /// Buckets that may be leased at a time; others need a call per decision. Default 65,536.
    pub max_leases: usize,
    /// How often charges of async buckets are reported to the shared store; 100 ms to 1 s. Default 250 ms.
    pub async_interval: Span,
    /// Async buckets at a time; others need a call per decision. Default 65,536.
    pub max_async: usize,
    /// How long a refusal is remembered, measured from before the call: the delay until refunds and raised limits of
    /// other nodes take effect on this node. Zero disables the deny cache. Default 100 ms.
    pub deny_cache_ttl: Span,
    /// Entries of the deny cache. Default 65,536.
    pub max_denials: usize,
    /// How long a call of [`upkeep`](crate::Fleet::upkeep) may take. Default 250 ms: no request waits for it.
    pub within: Span,
    /// Memory for this node's static shares.
    pub local: MemoryConfig,
}

impl Default for FleetConfig {
    fn default() -> Self {
        FleetConfig {
            nodes: 1,
            lease_ttl: Span::SECOND,
            max_leases: 1 << 16,
            async_interval: Span::from_millis(250),
            max_async: 1 << 16,
            deny_cache_ttl: Span::from_millis(100),
            max_denials: 1 << 16,
            within: Span::from_millis(250),
            local: MemoryConfig { max_memory: 64 << 20, ..MemoryConfig::default() },
        }
    }
}

impl FleetConfig {
    /// The interval of reports, within its bounds.
    pub(super) fn interval(&self) -> Span {
        self.async_interval.clamp(Span::from_millis(100), Span::SECOND)
    }
}
