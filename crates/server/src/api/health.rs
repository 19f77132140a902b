//! `/ready`: may requests be sent here? A store that is away is no reason against it: decisions are made by policy, and a
//! load balancer that took all nodes out would turn a hiccup of the store into an outage.

use serde_json::json;

use super::refuse::say;
use super::{Shared, Surface};
use crate::Reply;
use crate::backend::Probed;
use crate::telemetry::ShardState;

/// Whether health checks that know only yes and no are told yes: not while a shared store has not been there since the
/// start, and not from the moment on that this node goes.
pub(crate) async fn is_serving(shared: &Shared) -> bool {
    !shared.drain.is_announced() && shared.probe.was_there(shared.engine.store()).await
}

/// Says whether this node is to be sent requests, and how its store is.
pub(super) async fn ready(shared: &Shared, surface: Surface, reply: &mut Reply) {
    if shared.drain.is_announced() {
        return say(503, "{\"ready\":false,\"reason\":\"draining\"}", reply);
    }
    let Some(shards) = shared.probe.look(shared.engine.store()).await else {
        return say(200, "{\"ready\":true}", reply);
    };
    let degraded = shards.is_empty() || shards.iter().any(|shard| shard.state != ShardState::Up);
    let told: Vec<String> = shards.iter().enumerate().map(|(number, shard)| told(number, shard, surface)).collect();
    let store = told.join(",");
    say(200, &format!("{{\"ready\":true,\"degraded\":{degraded},\"store\":[{store}]}}"), reply);
}

/// One server. Where it is, and why it does not answer, is for operators.
fn told(number: usize, shard: &Probed, surface: Surface) -> String {
    let Probed { address, state, error } = shard;
    let start = format!("{{\"shard\":{number},\"state\":\"{}\"", state.name());
    match (surface, error) {
        (Surface::Data, _) => format!("{start}}}"),
        (_, None) => format!("{start},\"address\":{}}}", json!(address)),
        (_, Some(error)) => format!("{start},\"address\":{},\"error\":{}}}", json!(address), json!(error)),
    }
}
