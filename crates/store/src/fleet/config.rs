//! The settings of a node among others.

use tollgate_core::Span;

use crate::MemoryConfig;

/// How a node shares buckets with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetConfig {
    /// How many nodes there are, where the shared store does not know. Default 1.
    pub nodes: u64,
    /// How long leased units may be spent after they were asked for: τ in the bound on what leases admit. Default 1 s.
    pub lease_ttl: Span,
    /// Buckets that may be leased at a time; the others are asked for one by one. Default 65,536.
    pub max_leases: usize,
    /// How often the shared store is told what was decided without it; 100 ms to 1 s. Default 250 ms.
    pub async_interval: Span,
    /// Buckets that may be decided without the shared store at a time; the others are asked for. Default 65,536.
    pub max_async: usize,
    /// How long a refusal is remembered at most, counted from before it was asked for: that much later do refunds and
    /// raised limits of other nodes count here. Zero remembers none. Default 100 ms.
    pub deny_cache_ttl: Span,
    /// Buckets that are remembered as refused. Default 65,536.
    pub max_denials: usize,
    /// How long the shared store may take to answer what [`upkeep`](crate::Fleet::upkeep) asks. Default 250 ms: nobody
    /// waits for it.
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
    /// The interval of telling, within its bounds.
    pub(super) fn interval(&self) -> Span {
        self.async_interval.clamp(Span::from_millis(100), Span::SECOND)
    }
}
