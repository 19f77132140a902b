//! Checks plans: names, what they extend, and the rules in them.

use std::collections::HashMap;

use super::name::{RULE_NAME_MAX, is_rule_name};
use super::{ProblemCollector, rule};
use crate::nearest::nearest;
use crate::plan::{DEPTH_MAX, chain, rule_name};
use crate::problem::{Problem, quote};
use crate::spec::{ClientSpec, PLAN, PlanSpec};

/// The code of assignments to plans that do not exist.
pub const UNKNOWN_PLAN: &str = "unknown-plan";

/// Problems of the plans of a file, apart from those between rules.
pub fn plans(plans: &[PlanSpec]) -> Vec<Problem> {
    let mut problems: Vec<Problem> =
        plans.iter().flat_map(|spec| plan(spec, &format!("plans.{}", spec.name))).collect();
    problems.extend(plans.iter().filter_map(|plan| extended(plans, plan)));
    let mut defaults = plans.iter().filter(|plan| plan.is_default);
    let first = defaults.next();
    for second in defaults {
        let first = first.map_or("", |plan| &plan.name);
        let message = format!("{} and {} are both the default plan", quote(first), quote(&second.name));
        let problem = Problem::error("duplicate-default", second.at, format!("plans.{}.default", second.name), message);
        problems.push(problem.help("clients without a plan have one plan: keep `default: true` in one of them"));
    }
    problems
}

/// Problems of one plan by itself; `root` is its path, empty for a plan alone.
pub(crate) fn plan(plan: &PlanSpec, root: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (number, limit) in plan.limits.iter().enumerate() {
        let dot = if root.is_empty() { "" } else { "." };
        let path = format!("{root}{dot}limits[{number}]");
        // A plan may refuse everything: it is not for every request.
        problems.extend(rule(limit, path.clone(), true));
        let mut found = ProblemCollector { root: path, at: limit.at, problems: Vec::new() };
        if limit.matches.attributes.iter().any(|(name, _)| name == PLAN) {
            let message = "a rule of a plan has a condition on `plan`".to_owned();
            found.add("misplaced-field", "match.plan", message, "remove it: the rule is for the plans that have it");
        }
        if let Some(name) = limit.name.as_deref().filter(|name| is_rule_name(name)) {
            let full = rule_name(&plan.name, name);
            if full.len() > RULE_NAME_MAX {
                let message = format!("{} is longer than {RULE_NAME_MAX} characters", quote(&full));
                found.add("bad-name", "name", message, "shorten it: plan and rule make one name");
            }
            let first = *seen.entry(name.to_ascii_lowercase()).or_insert(name);
            if !std::ptr::eq(first, name) {
                let message = format!("two rules of the plan have the name {}", quote(name));
                found.add("duplicate-name", "name", message, "give one of them another name; case does not count");
            }
        }
        problems.append(&mut found.problems);
    }
    problems
}

/// Whether what a plan extends exists, has an end, and is not too deep.
fn extended(plans: &[PlanSpec], plan: &PlanSpec) -> Option<Problem> {
    let parent = plan.extends.as_deref()?;
    let problem =
        |code, message: String| Problem::error(code, plan.at, format!("plans.{}.extends", plan.name), message);
    if plans.iter().all(|other| other.name != parent) {
        let message = format!("there is no plan with the name {}", quote(parent));
        return Some(problem(UNKNOWN_PLAN, message).help(suggest(plans, parent)));
    }
    let chain = chain(plans, &plan.name);
    let last = chain.last().and_then(|last| last.extends.as_deref());
    if let Some(again) = last.filter(|last| chain.iter().any(|other| other.name == *last)) {
        let names: Vec<&str> = chain.iter().map(|plan| plan.name.as_str()).chain([again]).collect();
        let message = format!("plans extend each other in a circle: {}", names.join(" -> "));
        return Some(problem("plan-cycle", message).help("let a plan extend only plans that do not extend it"));
    }
    (chain.len() > DEPTH_MAX).then(|| {
        problem("plan-depth", format!("{} is more than {DEPTH_MAX} plans deep", quote(&plan.name)))
            .help("repeat the rules of the first plans in a later one")
    })
}

/// Clients whose plan does not exist. A file without plans may name plans of a database.
pub(super) fn assignments(plans: &[PlanSpec], clients: &[ClientSpec], problems: &mut Vec<Problem>) {
    if plans.is_empty() {
        return;
    }
    let known: HashMap<&str, ()> = plans.iter().map(|plan| (plan.name.as_str(), ())).collect();
    for (index, client) in clients.iter().enumerate() {
        let steps = client.plan.iter().flat_map(|schedule| schedule.steps());
        for (number, (_, plan)) in steps.enumerate().filter(|(_, (_, plan))| !known.contains_key(plan)) {
            let field = format!("clients[{index}].plan[{number}].plan");
            let message = format!("there is no plan with the name {}", quote(plan));
            problems.push(Problem::error(UNKNOWN_PLAN, client.at, field, message).help(suggest(plans, plan)));
        }
    }
}

fn suggest(plans: &[PlanSpec], name: &str) -> String {
    let names = || plans.iter().map(|plan| plan.name.as_str());
    match nearest(name, names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("plans: {}", names().take(8).collect::<Vec<_>>().join(", ")),
    }
}
