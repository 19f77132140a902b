//! Whether the store is reachable. An unreachable store is no reason to refuse traffic: decisions are made by policy,
//! and a load balancer that took all nodes out would turn a hiccup of the store into an outage.

use serde_json::json;
use tollgate_telemetry::ShardState;

use crate::service::Service;
use crate::store::ProbedShard;

/// How much detail a health document has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthDetail {
    /// For callers: states only.
    States,
    /// For operators: addresses and errors too.
    Addresses,
}

impl Service {
    /// True if a shared store has answered since the start, or the store is in memory.
    pub async fn store_was_reachable(&self) -> bool {
        self.probe.was_reachable(self.engine.store()).await
    }

    /// Notes whether the store has decided anything yet.
    pub fn note_store(&self) {
        self.probe.note_reachable(self.engine.store());
    }

    /// The JSON document of `/ready` for a node that is not draining.
    pub async fn store_health(&self, detail: HealthDetail) -> String {
        let Some(shards) = self.probe.probe(self.engine.store()).await else {
            return "{\"ready\":true}".to_owned();
        };
        let degraded = shards.is_empty() || shards.iter().any(|shard| shard.state != ShardState::Up);
        let shards = shards.iter().enumerate().map(|(number, shard)| shard_json(number, shard, detail));
        let store = shards.collect::<Vec<String>>().join(",");
        format!("{{\"ready\":true,\"degraded\":{degraded},\"store\":[{store}]}}")
    }
}

fn shard_json(number: usize, shard: &ProbedShard, detail: HealthDetail) -> String {
    let ProbedShard { address, state, error } = shard;
    let start = format!("{{\"shard\":{number},\"state\":\"{}\"", state.name());
    match (detail, error) {
        (HealthDetail::States, _) => format!("{start}}}"),
        (_, None) => format!("{start},\"address\":{}}}", json!(address)),
        (_, Some(error)) => format!("{start},\"address\":{},\"error\":{}}}", json!(address), json!(error)),
    }
}
