//! Reads one rule of any source, and lets all nodes read the database anew.

use serde_json::json;

use super::file_rules::{in_file, show_file};
use super::mode::RuleModes;
use super::plan_rules;
use super::resource::RuleResource;
use crate::call::AdminCall;
use crate::problem::AdminProblem;
use crate::resource::Resource;
use crate::response::AdminResponse;

pub(super) async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let switches = RuleModes::read(call).await?;
    if let Some(rule) = in_file(call, call.id()) {
        return Ok(AdminResponse::json(&call.mask().value(switches.show(show_file(&rule)))));
    }
    if let Some(rule) = plan_rules::find(call, call.id()).await? {
        let shown = switches.show(plan_rules::shown(&rule));
        return Ok(AdminResponse::json(&call.mask().value(shown)).version(rule.version));
    }
    let record = RuleResource::find(call.control()?, call.namespace(), call.id()).await?;
    let shown = switches.show(RuleResource::shown(record.json()));
    Ok(AdminResponse::json(&call.mask().value(shown)).version(record.version))
}

/// Makes all nodes reload everything.
pub(super) async fn refresh(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let generation = call.control()?.refresh(&call.author()).await?;
    (call.state.node.notify_nodes)();
    Ok(AdminResponse::json(&json!({ "generation": generation })).status(202))
}
