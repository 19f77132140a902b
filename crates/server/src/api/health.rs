//! `/ready`: may requests be sent here? A store that is away is no reason against it: decisions are made by policy, and a
//! load balancer that took all nodes out would turn a hiccup of the store into an outage.

use serde_json::json;

use super::refuse::say;
use super::{Shared, Surface};
use crate::Reply;
use crate::backend::Probed;
use crate::telemetry::ShardState;

/// Says whether this node is to be sent requests, and how its store is.
pub(super) async fn ready(shared: &Shared, surface: Surface, reply: &mut Reply) {
    if shared.drain.has_begun() {
        return say(503, "{\"ready\":false,\"reason\":\"draining\"}", reply);
    }
    let shards = shared.probe.look(shared.engine.store()).await;
    if shards.is_empty() {
        return say(200, "{\"ready\":true}", reply);
    }
    let degraded = shards.iter().any(|shard| shard.state != ShardState::Up);
    let shards = shards.iter().enumerate().map(|(number, shard)| {
        let Probed { address, state, error } = shard;
        let mut told = json!({ "shard": number, "state": state.name() });
        // Where servers are, and what they say, is for operators.
        if let (Surface::Admin, Some(told)) = (surface, told.as_object_mut()) {
            told.insert("address".to_owned(), address.as_str().into());
            told.extend(error.as_ref().map(|error| ("error".to_owned(), error.as_str().into())));
        }
        told
    });
    let told = json!({ "ready": true, "degraded": degraded, "store": shards.collect::<Vec<_>>() });
    say(200, &told.to_string(), reply);
}
