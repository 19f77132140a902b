//! The configured store: this process's memory, or servers that all nodes of a fleet share.
//!
//! An enum rather than a trait object: a decision in memory needs no boxed future.

mod figures;
mod inspect;
mod node_statuses;
mod probe;
mod rules_check;
mod secret_check;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use tollgate_core::{Charge, Clock, Receipt, Span};
use tollgate_ruleset::RuleSet;
use tollgate_store::{Fleet, Memory, MemoryConfig, MemoryStats, Outcomes, Store, StoreError, Taken};
use tollgate_store_redis::{ChangeListener, RedisStore};

pub use inspect::{Inspection, inspect};
pub use node_statuses::{FleetStatuses, NodeStatuses};
pub use probe::{ProbedShard, StoreProbe};
pub use rules_check::{DifferingNodes, RulesCheck};
pub use secret_check::{SecretAgreement, SecretCheck};

use tollgate_telemetry::StoreFigures;

/// The store of a server.
#[derive(Debug)]
pub enum ConfiguredStore {
    /// This process's memory, not shared.
    Memory(Memory),
    /// Redis or Valkey.
    Shared(Box<FleetNode>),
}

/// This node of a fleet.
pub struct FleetNode {
    /// The shared servers, with the leases and caches of this node in front.
    pub fleet: Fleet<RedisStore>,
    /// Checks that the other nodes use the same secret.
    pub secret_check: SecretCheck,
    /// Checks that the other nodes use the same rules.
    pub rules_check: RulesCheck,
    /// What the nodes tell of themselves.
    pub node_statuses: NodeStatuses,
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

    /// The store in this process; `None` for a shared one.
    pub fn in_process(&self) -> Option<&Memory> {
        match self {
            ConfiguredStore::Memory(memory) => Some(memory),
            ConfiguredStore::Shared(_) => None,
        }
    }

    /// Maintains leases and reports local counts; call it every 50 ms.
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

    /// Restores the secret of the fleet if the store lost it, and compares it with those of the other nodes. Nodes with
    /// different secrets do not share counts.
    pub async fn check_secret(&self) -> SecretAgreement {
        match self {
            ConfiguredStore::Memory(_) => SecretAgreement::Together,
            ConfiguredStore::Shared(node) => node.secret_check.check(node.fleet.inner(), &*node.clock).await,
        }
    }

    /// Compares the rules of this generation with those of the other nodes; call it every second.
    pub async fn compare_rules(&self, generation: u64, rules: &RuleSet) -> DifferingNodes {
        match self {
            ConfiguredStore::Memory(_) => DifferingNodes::default(),
            ConfiguredStore::Shared(node) => {
                let fingerprint = || rules_check::fingerprint(rules);
                node.rules_check.compare(node.fleet.inner(), &*node.clock, generation, fingerprint).await
            }
        }
    }

    /// Publishes what this node tells of itself, if the store is shared and it is time; call it every second.
    pub async fn exchange_statuses(&self, own: impl FnOnce() -> String) {
        if let ConfiguredStore::Shared(node) = self {
            node.node_statuses.exchange(node.fleet.inner(), &*node.clock, own).await;
        }
    }

    /// What the nodes of the fleet told of themselves; `None` if the store is in memory.
    pub fn fleet_statuses(&self) -> Option<FleetStatuses> {
        match self {
            ConfiguredStore::Memory(_) => None,
            ConfiguredStore::Shared(node) => Some(node.node_statuses.known()),
        }
    }

    /// Notifies the other nodes of changed rules.
    pub async fn notify_changed(&self) {
        if let ConfiguredStore::Shared(node) = self {
            node.fleet.inner().notify_changed().await;
        }
    }

    /// Listens for rule changes of other nodes; `None` if the store is in memory.
    pub fn change_listener(&self) -> Option<ChangeListener<'_>> {
        match self {
            ConfiguredStore::Memory(_) => None,
            ConfiguredStore::Shared(node) => Some(node.fleet.inner().change_listener()),
        }
    }

    /// Drops a few buckets that are indistinguishable from fresh ones; call it every second.
    pub fn sweep(&self) {
        if let ConfiguredStore::Memory(memory) = self {
            memory.sweep();
        }
    }

    /// Returns the leases of this node and leaves the fleet.
    pub async fn close(&self) {
        if let ConfiguredStore::Shared(node) = self {
            node.fleet.close().await;
            node.node_statuses.withdraw(node.fleet.inner()).await;
            node.fleet.inner().close().await;
        }
    }

    /// Statistics of the store in memory.
    pub fn memory(&self) -> Option<MemoryStats> {
        match self {
            ConfiguredStore::Memory(memory) => Some(memory.stats()),
            ConfiguredStore::Shared(_) => None,
        }
    }

    /// Figures of the shared store.
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
