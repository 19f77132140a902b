//! Plans in exports and imports.

use serde_json::{Value, json};
use tollgate_control::record::{PlanDraft, PlanRecord};
use tollgate_rules::plan::rule_name;
use tollgate_rules::yaml::YamlNode;
use tollgate_rules::{PlanSchedule, RuleFile, datetime, document};

use super::tree;

/// The plans of a file, with its defaults written into each rule.
pub(super) fn drafts(file: &RuleFile, root: &YamlNode) -> Vec<(String, PlanDraft)> {
    let plans = file.plans.iter().zip(document::plans_of(root)).map(|(plan, (_, tree))| {
        let limits = document::limits_of(tree).iter().map(|limit| document::explicit(limit, file));
        let draft = PlanDraft {
            extends: plan.extends.clone(),
            is_default: plan.is_default,
            limits: limits.map(|limit| Value::Object(tree::to_object(&limit))).collect(),
            description: plan.description.clone().unwrap_or_default(),
        };
        (plan.name.clone(), draft)
    });
    plans.collect()
}

/// A plan as a rules file has it.
pub(super) fn tree(plan: &PlanRecord) -> YamlNode {
    let PlanDraft { extends, is_default, limits, description } = &plan.draft;
    let mut entries = Vec::new();
    entries.extend((!description.is_empty()).then(|| ("description", YamlNode::text(description))));
    entries.extend(extends.as_ref().map(|extends| ("extends", YamlNode::text(extends))));
    entries.extend(is_default.then(|| ("default", YamlNode::plain(true))));
    entries.push(("limits", YamlNode::list(limits.iter().map(tree::of_json))));
    YamlNode::map(entries)
}

/// The names by which overrides refer to the rules of a plan.
pub(super) fn rule_names(plan: &PlanRecord) -> impl Iterator<Item = String> {
    let names = plan.draft.limits.iter().filter_map(|limit| limit.get("name")?.as_str());
    names.flat_map(|name| [name.to_owned(), rule_name(&plan.plan_id, name)])
}

/// The plans of a client as the API has them: a name, or steps with their instants.
pub(super) fn steps(schedule: &PlanSchedule) -> Value {
    if !schedule.is_dated() {
        return schedule.as_str().into();
    }
    let step = |(from_ns, plan): (u64, &str)| match from_ns {
        0 => Value::from(plan),
        from_ns => json!({ "plan": plan, "from": datetime::display(from_ns) }),
    };
    schedule.steps().map(step).collect()
}
