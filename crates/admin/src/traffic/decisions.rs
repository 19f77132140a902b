//! Recent decisions.

use serde_json::{Value, json};
use tollgate_service::DecisionId;
use tollgate_service::traffic::{ClientQuestion, DecisionQuestion};

use super::shown::{self, ClientNames, monitor, scope};
use crate::call::AdminCall;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;

pub(super) fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (traffic, scope, clients) = (monitor(call)?, scope(call), ClientNames::of(call));
    let shown = |client: &str| clients.shown(client);
    let query = call.query();
    let question = DecisionQuestion {
        client: query.text("client").map(|text| ClientQuestion { text, shown: &shown }),
        rule: query.text("rule"),
        is_allowed: query.flag("allowed"),
        before: query.text("before").map(read_id).transpose()?,
    };
    let most = query.number("limit").and_then(|most| usize::try_from(most).ok()).unwrap_or(100);
    let found = traffic.decisions(&scope, question, most);
    let next = found.last().filter(|_| found.len() == most).map(|last| last.id.to_string());
    let decisions: Value = found.iter().map(|found| shown::decision(found, traffic.node(), &clients)).collect();
    Ok(AdminResponse::json(&json!({ "decisions": decisions, "next_before": next })))
}

pub(super) fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (traffic, scope, clients) = (monitor(call)?, scope(call), ClientNames::of(call));
    let found = traffic.decision(&scope, read_id(call.id())?).ok_or_else(|| {
        let detail = "This node does not have that decision: it was made by another node, is too old, or was one of many in \
                      a second. The decision log of the node that made it has every decision.";
        AdminProblem::new(404, "no_such_decision", detail)
    })?;
    Ok(AdminResponse::json(&shown::decision(&found, traffic.node(), &clients)))
}

fn read_id(text: &str) -> Result<DecisionId, AdminProblem> {
    DecisionId::parse(text)
        .ok_or_else(|| AdminProblem::new(400, "bad_decision_id", "The id of a decision is sixteen hexadecimal digits."))
}
