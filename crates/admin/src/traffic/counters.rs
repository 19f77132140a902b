//! Resets what a client has used.

use serde_json::json;
use tollgate_service::traffic::CounterReset;

use super::preview::body_namespace;
use crate::body_fields::BodyFields;
use crate::call::AdminCall;
use crate::json;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;

pub(super) async fn reset(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let mut fields =
        BodyFields::of(json::object(call.body)?, &["namespace", "client", "rule", "endpoint", "tier", "reason"]);
    let namespace = body_namespace(call, &mut fields)?;
    let client = fields.required_text("client", "the key of the client, such as user:42");
    let (rule, endpoint, tier) = (fields.text("rule"), fields.text("endpoint"), fields.text("tier"));
    let reason = fields.text("reason");
    fields.rest()?;
    let asked = CounterReset {
        namespace: &namespace,
        client: &client,
        rule: rule.as_deref(),
        endpoint: endpoint.as_deref(),
        tier: tier.as_deref(),
    };
    let counters = call.state.service.counters_of(&asked);
    if counters.rules.is_empty() {
        return Err(AdminProblem::not_found(
            "rule that applies to that client (give its endpoint or tier, if rules ask for them)",
        ));
    }
    // The audit has it before anything is forgotten.
    let shown = call.state.key_hashing.of(&client);
    call.control()?.record_reset(&namespace, &shown, rule.as_deref(), reason.as_deref(), &call.author()).await?;
    call.state.service.reset_counters(&counters).await.map_err(|error| {
        AdminProblem::new(503, "store_unavailable", format!("The store did not answer: {error}. Try again."))
    })?;
    let rules = &counters.rules;
    Ok(AdminResponse::json(&json!({ "namespace": namespace, "client": call.mask().key(&client), "rules": rules })))
}
