//! Lists the nodes of the fleet: each with version, rules, database, store and mode, and when it was last heard of.

use serde_json::{Value, json};

use super::access::NamespaceScope;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, ResponseContent, Tag};
use super::fleet_nodes::{FleetNodeList, FleetNodeStatus};
use super::response::AdminResponse;

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[AdminEndpoint {
    detail: "Nodes that share a store tell each other of themselves every three seconds. A node that was not heard of for \
             twenty seconds is `missing`; one that stopped in good order is not listed. Without a shared store this node \
             is the only one.",
    scope: NamespaceScope::Nothing,
    responses: &[(200, ResponseContent::Json("NodeList"))],
    ..AdminEndpoint::get("/v1/nodes", "listNodes", Tag::Server, "The nodes of the fleet", |call| {
        Box::pin(async move { Ok(list(call)) })
    })
}];

fn list(call: &AdminCall<'_>) -> AdminResponse {
    let FleetNodeList { read_at, nodes } = (call.state.node.nodes)();
    AdminResponse::json(&json!({
        "read_at": read_at.map(|at| at.to_string()),
        "nodes": nodes.iter().map(show).collect::<Value>(),
    }))
}

fn show(status: &FleetNodeStatus) -> Value {
    let FleetNodeStatus { node_id, is_self, seen_at, is_missing, has_other_rules, snapshot } = status;
    let mut shown = json!({
        "node_id": node_id,
        "is_self": is_self,
        "seen_at": seen_at.to_string(),
        "missing": is_missing,
        "other_rules": has_other_rules,
    });
    if let (Value::Object(shown), Value::Object(told)) = (&mut shown, snapshot.json()) {
        shown.extend(told);
    }
    shown
}
