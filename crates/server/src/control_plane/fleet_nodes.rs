//! The nodes of the fleet: what this one tells of itself, and what the others told.

use std::sync::Arc;

use tollgate_admin::{FleetNodeList, FleetNodeStatus, ModeSwitch, NodeSnapshot, NodeStatus, StoreServer};
use tollgate_control::Instant;
use tollgate_control::change_feed::ChangeFeed;
use tollgate_core::{Clock, Time};
use tollgate_engine::Engine;
use tollgate_service::store::{ConfiguredStore, FleetStatuses};
use tollgate_store_redis::NodeReport;
use tollgate_telemetry::ShardFigures;

use super::status;

/// Knows this node and the others.
#[derive(Clone)]
pub(crate) struct FleetNodeSource {
    pub(super) feed: Option<Arc<ChangeFeed>>,
    pub(super) engine: Arc<Engine<ConfiguredStore>>,
    pub(super) mode_switch: Arc<ModeSwitch>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) name: String,
    pub(super) started_at: Instant,
}

impl FleetNodeSource {
    /// Tells the other nodes of this one and reads what they told; call it every second.
    pub(crate) async fn exchange(&self) {
        self.engine.store().exchange_statuses(|| self.snapshot().text()).await;
    }

    /// All nodes, as this one knows them.
    pub(super) fn nodes(&self) -> FleetNodeList {
        let FleetStatuses { read_at, own, nodes } = self.engine.store().fleet_statuses().unwrap_or_default();
        let own = FleetNodeStatus {
            node_id: if own.is_empty() { self.name.clone() } else { own },
            is_self: true,
            seen_at: Instant::from(self.clock.wall()),
            is_missing: false,
            has_other_rules: false,
            snapshot: self.snapshot(),
        };
        let other_rules = self.engine.store().figures().map(|figures| figures.other_rules).unwrap_or_default();
        let other = |report: &NodeReport| FleetNodeStatus {
            node_id: report.node.clone(),
            is_self: false,
            seen_at: Instant::from(read_at.unwrap_or(Time::ZERO).before(report.age)),
            is_missing: report.is_missing(),
            has_other_rules: other_rules.contains(&report.node),
            snapshot: NodeSnapshot::read(&report.report),
        };
        let others = nodes.iter().map(other);
        let nodes = std::iter::once(own).chain(others).collect();
        FleetNodeList { read_at: read_at.map(Instant::from), nodes }.without_predecessors()
    }

    fn snapshot(&self) -> NodeSnapshot {
        let own = status(self.feed.as_deref(), self.engine.rules().number, self.name.clone());
        let NodeStatus { node, serving, generation, database, .. } = own;
        NodeSnapshot {
            node,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: Some(self.started_at),
            serving,
            generation,
            mode: Some(self.mode_switch.setting().mode),
            database: database.name(),
            store: servers(&self.engine),
        }
    }
}

/// The servers of a shared store, as the breakers of this node see them.
pub(super) fn servers(engine: &Engine<ConfiguredStore>) -> Vec<StoreServer> {
    let server = |shard: ShardFigures| StoreServer { address: shard.address, state: shard.state.name() };
    engine.store().figures().into_iter().flat_map(|figures| figures.shards).map(server).collect()
}
