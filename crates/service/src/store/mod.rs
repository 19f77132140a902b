//! Where this server's buckets live: in its own memory, or in servers that all nodes of a fleet share.
//!
//! The only place that knows which. Two alternatives that are both known make an enum, not a trait object: the path of a
//! decision in memory stays free of boxes.

mod figures;
mod inspect;
mod probe;
mod rules_check;
mod secret_check;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use tollgate_core::{Charge, Clock, Receipt, Span};
use tollgate_rules::ruleset::RuleSet;
use tollgate_store::{Fleet, Memory, MemoryConfig, MemoryStats, Outcomes, Store, StoreError, Taken};
use tollgate_store_redis::{ChangeListener, RedisStore};

pub use inspect::{Inspection, inspect};
pub use probe::{ProbedShard, StoreProbe};
pub use rules_check::{DifferingNodes, RulesCheck};
pub use secret_check::{SecretAgreement, SecretCheck};

use tollgate_telemetry::StoreFigures;

/// The store of a server.
#[derive(Debug)]
pub enum ConfiguredStore {
    /// This process's memory: nobody shares it.
    Memory(Memory),
    /// Redis or Valkey.
    Shared(Box<FleetNode>),
}

/// This node of a fleet.
pub struct FleetNode {
    /// The servers that all nodes share, with what this one may decide by itself in front.
    pub fleet: Fleet<RedisStore>,
    /// Whether the others use the same secret.
    pub secret_check: SecretCheck,
    /// Whether the others use the same rules.
    pub rules_check: RulesCheck,
    /// The clock of the store.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for FleetNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetNode")
            .field("fleet", &self.fleet)
            .field("secret_check", &self.secret_check)
            .finish_non_exhaustive()
    }
}

impl ConfiguredStore {
    /// Buckets in this process, in at most so many bytes.
    pub fn in_memory(max_memory: u64, clock: Arc<dyn Clock>) -> ConfiguredStore {
        ConfiguredStore::Memory(Memory::with_clock(memory_config(max_memory), clock))
    }

    /// Does a little of what has to be done now and then; worth calling every 50 ms.
    pub async fn upkeep(&self) {
        if let ConfiguredStore::Shared(node) = self {
            node.fleet.upkeep().await;
        }
    }

    /// Refills leases in the background; never returns.
    pub async fn run_refills(&self) -> Infallible {
        match self {
            ConfiguredStore::Shared(node) => node.fleet.run_refills().await,
            ConfiguredStore::Memory(_) => std::future::pending().await,
        }
    }

    /// Sees to it that nodes that start later find the secret of this one, although the store may have lost it, and
    /// that all of them use the same. If they do not, they and we do not count together.
    pub async fn check_secret(&self) -> SecretAgreement {
        match self {
            ConfiguredStore::Memory(_) => SecretAgreement::Together,
            ConfiguredStore::Shared(node) => node.secret_check.check(node.fleet.inner(), &*node.clock).await,
        }
    }

    /// Compares the rules of this generation with those of the other nodes; worth calling every second.
    pub async fn compare_rules(&self, generation: u64, rules: &RuleSet) -> DifferingNodes {
        match self {
            ConfiguredStore::Memory(_) => DifferingNodes::default(),
            ConfiguredStore::Shared(node) => {
                let fingerprint = || rules_check::fingerprint(rules);
                node.rules_check.compare(node.fleet.inner(), &*node.clock, generation, fingerprint).await
            }
        }
    }

    /// Tells the other nodes that share the store that rules have changed.
    pub async fn notify_changed(&self) {
        if let ConfiguredStore::Shared(node) = self {
            node.fleet.inner().notify_changed().await;
        }
    }

    /// Hears when another node notifies of changed rules; `None` if the store is in memory.
    pub fn change_listener(&self) -> Option<ChangeListener<'_>> {
        match self {
            ConfiguredStore::Memory(_) => None,
            ConfiguredStore::Shared(node) => Some(node.fleet.inner().change_listener()),
        }
    }

    /// Drops a few buckets that equal unused ones; worth calling every second.
    pub fn sweep(&self) {
        if let ConfiguredStore::Memory(memory) = self {
            memory.sweep();
        }
    }

    /// Gives back what this node holds for itself, and says goodbye.
    pub async fn close(&self) {
        if let ConfiguredStore::Shared(node) = self {
            node.fleet.close().await;
            node.fleet.inner().close().await;
        }
    }

    /// What the memory holds.
    pub fn memory(&self) -> Option<MemoryStats> {
        match self {
            ConfiguredStore::Memory(memory) => Some(memory.stats()),
            ConfiguredStore::Shared(_) => None,
        }
    }

    /// What a shared store tells.
    pub fn figures(&self) -> Option<StoreFigures> {
        match self {
            ConfiguredStore::Memory(_) => None,
            ConfiguredStore::Shared(node) => {
                Some(figures::of(&node.fleet, node.secret_check.agreement(), node.rules_check.differing()))
            }
        }
    }
}

/// The configuration of the store in memory, with at most so many bytes.
pub fn memory_config(max_memory: u64) -> MemoryConfig {
    MemoryConfig { max_memory: usize::try_from(max_memory).unwrap_or(usize::MAX), ..MemoryConfig::default() }
}

impl Store for ConfiguredStore {
    async fn take(&self, charges: &[Charge], within: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        match self {
            ConfiguredStore::Memory(memory) => Ok(memory.take_now(charges, outcomes)),
            ConfiguredStore::Shared(node) => node.fleet.take(charges, within, outcomes).await,
        }
    }

    #[inline]
    fn try_take(&self, charges: &[Charge], outcomes: &mut Outcomes) -> Option<Taken> {
        match self {
            ConfiguredStore::Memory(memory) => Some(memory.take_now(charges, outcomes)),
            ConfiguredStore::Shared(node) => node.fleet.try_take(charges, outcomes),
        }
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        match self {
            ConfiguredStore::Memory(memory) => Ok(memory.give_back_now(receipts)),
            ConfiguredStore::Shared(node) => node.fleet.give_back(receipts).await,
        }
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        match self {
            ConfiguredStore::Memory(memory) => {
                memory.forget_now(buckets);
                Ok(())
            }
            ConfiguredStore::Shared(node) => node.fleet.forget(buckets).await,
        }
    }

    #[inline]
    fn is_shared(&self) -> bool {
        matches!(self, ConfiguredStore::Shared(_))
    }

    fn nodes(&self) -> Option<u64> {
        match self {
            ConfiguredStore::Memory(_) => None,
            ConfiguredStore::Shared(node) => node.fleet.nodes(),
        }
    }
}
