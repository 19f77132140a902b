//! Penalties: who is refused altogether until when; and lifting them.

use serde_json::{Value, json};
use tollgate_control::{BegunPenalty, PenaltyFilter};
use tollgate_service::mask::Mask;
use tollgate_service::penalties::bucket_of;
use tollgate_service::violations::is_digest;

use super::access::NamespaceScope;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, HttpMethod, ResponseContent, Tag};
use super::parameter::{CURSOR, LIMIT, text};
use super::problem::AdminProblem;
use super::response::AdminResponse;

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "Those that have not ended. Nodes write them a second after they begin.",
        scope: NamespaceScope::Namespaces,
        query: &[text("client_key", "Of this client."), text("rule_id", "By this rule."), LIMIT, CURSOR],
        responses: &[(200, ResponseContent::Json("PenaltyList"))],
        ..AdminEndpoint::get("/v1/penalties", "listPenalties", Tag::Penalties, "List penalties", |call| {
            Box::pin(list(call))
        })
    },
    AdminEndpoint {
        detail: "The client may ask again at once, and its next penalty is its first again. Other nodes may remember the \
                 penalty for as long as `deny_cache_ttl`. A penalty with a `node` is in the memory of that node: other nodes \
                 answer 409 (`held_by_another_node`), and lift nothing.",
        responses: &[(204, ResponseContent::Nothing)],
        ..AdminEndpoint::change(
            HttpMethod::Delete,
            "/v1/penalties/{penalty_id}",
            "liftPenalty",
            Tag::Penalties,
            "Lift a penalty",
            |call| Box::pin(lift(call)),
        )
    },
];

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "penalties": [], "next_cursor": null })));
    }
    let query = call.query();
    let filter = PenaltyFilter {
        namespaces: call.namespaces(),
        client_keys: query.text("client_key").map(|key| call.state.key_hashing.names(key)),
        rule_id: query.text("rule_id").map(str::to_owned),
    };
    let listing = call.control()?.penalties(&filter, call.state.now(), &call.page()?).await?;
    let mask = call.mask();
    let penalties: Value = listing.entries.iter().map(|penalty| show(penalty, &mask)).collect();
    Ok(AdminResponse::json(&json!({ "penalties": penalties, "next_cursor": call.cursor(listing.next.as_deref()) })))
}

async fn lift(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let penalties = call.control()?.penalties_of(call.namespace(), call.id(), call.state.now()).await?;
    let holder = &call.state.penalty_holder;
    let (ours, others): (Vec<_>, Vec<_>) = penalties.into_iter().partition(|penalty| holder.may_lift(penalty));
    if ours.is_empty() {
        return Err(held_elsewhere(&others));
    }
    for penalty in ours {
        let Some(bucket) = bucket_of(&penalty) else { continue };
        let in_force = call.state.service.lift_penalty(&bucket).await.map_err(|error| {
            let detail = format!("The store did not answer, and the penalty may be in force: {error}. Try again.");
            AdminProblem::new(503, "store_unavailable", detail)
        })?;
        if !in_force && !penalty.node.is_empty() {
            return Err(held_by_a_namesake(&penalty));
        }
        call.control()?.lift_penalty(&penalty, &call.author()).await?;
    }
    Ok(AdminResponse::nothing(204))
}

fn held_elsewhere(penalties: &[BegunPenalty]) -> AdminProblem {
    let nodes: Vec<&str> = penalties.iter().map(|penalty| penalty.node.as_str()).collect();
    let detail = match nodes.iter().any(|node| node.is_empty()) {
        true => {
            "The nodes that share a store have this penalty, and this node does not use that store: ask one of them."
                .to_owned()
        }
        false => format!(
            "This penalty is in the memory of {}, and this node cannot lift it: send the request to that node.",
            nodes.join(" and of ")
        ),
    };
    AdminProblem::new(409, "held_by_another_node", detail)
}

fn held_by_a_namesake(penalty: &BegunPenalty) -> AdminProblem {
    let detail = format!(
        "This node is {0} and does not have this penalty: another process is {0} too. Give each node a name of its own (--node), \
         and send the request to the other one.",
        penalty.node
    );
    AdminProblem::new(409, "held_by_another_node", detail)
}

fn show(penalty: &BegunPenalty, mask: &Mask<'_>) -> Value {
    let mut shown = penalty.json();
    let key = &penalty.client_key;
    if let Some(client) = shown.get_mut("client_key").filter(|_| !is_digest(key)) {
        *client = mask.key(key).into();
    }
    shown
}
