//! Rules of plans of the database: read here, changed with their plan.

use serde_json::Value;
use tollgate_control::record::{PlanRecord, PlanRuleRecord, plan_rules};

use crate::call::AdminCall;
use crate::problem::AdminProblem;
use crate::warnings;

/// The rules of the plans of these namespaces, without plans that a file hides.
pub(super) async fn all(
    call: &AdminCall<'_>,
    namespaces: Option<&[String]>,
) -> Result<Vec<PlanRuleRecord>, AdminProblem> {
    let Some(control) = &call.state.control else { return Ok(Vec::new()) };
    let mut plans = control.plans(namespaces).await?;
    let of_files = (call.state.node.file_plans)();
    let is_hidden = |plan: &PlanRecord| {
        of_files.iter().any(|other| other.namespace == plan.namespace && other.plan_id == plan.plan_id)
    };
    plans.retain(|plan| !is_hidden(plan));
    Ok(plan_rules(&plans))
}

/// The rule with this id.
pub(super) async fn find(call: &AdminCall<'_>, id: &str) -> Result<Option<PlanRuleRecord>, AdminProblem> {
    if !id.contains('.') {
        return Ok(None); // the names of these rules begin with their plan
    }
    let rules = all(call, Some(&[call.namespace().to_owned()])).await?;
    Ok(rules.into_iter().find(|rule| rule.rule_id == id))
}

/// A rule as responses show it.
pub(super) fn shown(rule: &PlanRuleRecord) -> Value {
    let mut json = rule.json();
    warnings::add(&mut json, warnings::of_record(&rule.warnings()));
    let location = format!("plan {}", rule.plan);
    if let Value::Object(members) = &mut json {
        members.extend(
            [("source", "database"), ("location", &location)].map(|(name, text)| (name.to_owned(), text.into())),
        );
    }
    json
}
