//! Recent decisions.

use serde_json::{Value, json};
use tollgate_service::DecisionId;
use tollgate_service::traffic::{DecisionPlace, DecisionQuestion, TrafficQuestion};

use super::shown::{self, ClientNames, ask};
use crate::call::AdminCall;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;

pub(super) async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let query = call.query();
    let most = query.number("limit").and_then(|most| usize::try_from(most).ok()).unwrap_or(100);
    let before = match query.text("before") {
        Some(id) => Some(place(call, read_id(id)?).await?),
        None => None,
    };
    let wanted = DecisionQuestion {
        client: query.owned("client"),
        rule: query.owned("rule"),
        is_allowed: query.flag("allowed"),
        before,
        most,
    };
    let (clients, fleet) = (ClientNames::of(call), ask(call, &TrafficQuestion::Decisions(wanted)).await?);
    let (found, has_more) = fleet.decisions(most);
    let next = found.last().filter(|_| has_more).map(|last| last.id.to_string());
    let decisions: Value = found.iter().map(|found| shown::decision(found, &clients)).collect();
    Ok(AdminResponse::json(&shown::with_nodes(call, json!({ "decisions": decisions, "next_before": next }), &fleet)))
}

pub(super) async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let fleet = ask(call, &TrafficQuestion::Decision(read_id(call.id())?)).await?;
    let (nodes, missing) = (fleet.nodes().join(", "), fleet.missing.join(", "));
    let found = fleet.decision().ok_or_else(|| {
        let missing = if missing.is_empty() { missing } else { format!(" ({missing} did not answer)") };
        let detail = format!(
            "No node that was asked has that decision: {nodes}{missing}. It is too old, or was one of many in a second. \
             The decision log of the node that made it has every decision."
        );
        AdminProblem::new(404, "no_such_decision", detail)
    })?;
    Ok(AdminResponse::json(&shown::decision(&found, &ClientNames::of(call))))
}

/// The place of the decision that a page begins behind. When it is gone, what was before it is gone too.
async fn place(call: &AdminCall<'_>, id: DecisionId) -> Result<DecisionPlace, AdminProblem> {
    let fleet = ask(call, &TrafficQuestion::Decision(id)).await?;
    let missing = fleet.missing.join(", ");
    match fleet.decision() {
        Some(found) => Ok(found.place()),
        None if missing.is_empty() => Ok(DecisionPlace::default()),
        None => {
            let detail = format!(
                "The decision before this page may be one of a node that did not answer: {missing}. Try again."
            );
            Err(AdminProblem::new(503, "nodes_missing", detail))
        }
    }
}

fn read_id(text: &str) -> Result<DecisionId, AdminProblem> {
    DecisionId::parse(text)
        .ok_or_else(|| AdminProblem::new(400, "bad_decision_id", "The id of a decision is sixteen hexadecimal digits."))
}
