//! Turns plans into ordinary rules with a condition on the attribute `plan`.
//!
//! A rule that several plans have, because they extend each other, becomes one rule that lists them all; a rule that a
//! plan replaces becomes a rule of its own. Nothing downstream knows plans: the index, the metrics and the stores see
//! rules.

use std::collections::HashMap;

use crate::pattern::{Matcher, Pattern};
use crate::spec::{PLAN, PlanOrigin, PlanSpec, RuleSpec};

/// Longest chain of plans that extend each other.
pub const DEPTH_MAX: usize = 8;
/// Largest number of plans of a namespace.
pub const PLANS_MAX: usize = 1_000;
/// Largest number of rules that one plan contains, inherited ones aside.
pub const LIMITS_MAX: usize = 256;
/// Longest name of a plan.
pub const PLAN_NAME_MAX: usize = 32;

/// Whether a text can be the name of a plan. It has no `.`, which separates it from the name of a rule.
pub fn is_plan_name(name: &str) -> bool {
    (1..=PLAN_NAME_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// What [`is_plan_name`] accepts, in words.
pub const PLAN_NAME_HELP: &str = "use 1 to 32 letters, digits, `_` and `-`, such as `pro`";

/// The name of a plan's rule in its namespace: `pro.requests`.
pub fn rule_name(plan: &str, rule: &str) -> String {
    format!("{plan}.{rule}")
}

/// A rule of a plan: the plan that contains it, which may be one that the plan extends, and the rule.
pub type PlanRule<'a> = (&'a PlanSpec, &'a RuleSpec);

/// The rules that a plan has, its own first, then inherited ones that it does not replace. Unnamed rules, which no valid
/// plan has, are left out.
pub fn rules_of<'a>(plans: &'a [PlanSpec], name: &str) -> Vec<PlanRule<'a>> {
    let mut found: HashMap<&str, ()> = HashMap::new();
    let mut rules = Vec::new();
    for plan in chain(plans, name) {
        for limit in &plan.limits {
            if let Some(name) = limit.name.as_deref()
                && found.insert(name, ()).is_none()
            {
                rules.push((plan, limit));
            }
        }
    }
    rules
}

/// A plan, the plan that it extends, and so on. Ends where a plan is unknown or comes a second time.
pub(crate) fn chain<'a>(plans: &'a [PlanSpec], name: &str) -> Vec<&'a PlanSpec> {
    let mut chain: Vec<&PlanSpec> = Vec::new();
    let mut next = Some(name.to_owned());
    while let Some(plan) = next.take().and_then(|name| plans.iter().find(|plan| plan.name == name)) {
        if chain.len() > DEPTH_MAX || chain.iter().any(|other| std::ptr::eq(*other, plan)) {
            break;
        }
        chain.push(plan);
        next.clone_from(&plan.extends);
    }
    chain
}

/// The rules of all plans, in the order of the plans and of their rules.
///
/// ```
/// let text = "plans:
///   free: { limits: [{ name: calls, limit: { requests: 10, window: 1m } }] }
///   pro: { extends: free }
/// ";
/// let file = tollgate_rules::read("rules.yaml", text).unwrap();
/// assert_eq!(file.rules[0].name.as_deref(), Some("free.calls"));
/// assert_eq!(file.rules[0].matches.attributes[0].1.any.len(), 2, "free and pro");
/// ```
pub fn expand(plans: &[PlanSpec]) -> Vec<RuleSpec> {
    let mut holders = Holders::default();
    for plan in plans {
        for (from, limit) in rules_of(plans, &plan.name) {
            holders.add(limit.name.as_deref().unwrap_or_default(), &from.name, &plan.name);
        }
    }
    let limits = plans.iter().flat_map(|plan| plan.limits.iter().map(move |limit| (plan, limit)));
    limits.filter_map(|(plan, limit)| expanded(&plan.name, limit, &holders)).collect()
}

/// The plans that have each rule.
#[derive(Default)]
struct Holders<'a> {
    /// By name of a rule within plans: the plans that contain such a rule, each with the plans that have it.
    by_name: HashMap<&'a str, Vec<(&'a str, Vec<&'a str>)>>,
}

impl<'a> Holders<'a> {
    fn add(&mut self, name: &'a str, from: &'a str, plan: &'a str) {
        let all = self.by_name.entry(name).or_default();
        match all.iter_mut().find(|(other, _)| *other == from) {
            Some((_, plans)) => plans.push(plan),
            None => all.push((from, vec![plan])),
        }
    }

    fn named(&self, name: &str) -> &[(&'a str, Vec<&'a str>)] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The rules that a plan's rule replaces: `other` is the name of a rule within the same plans, or else of any rule.
    fn replaced(&self, other: &str, held_by: &[&str]) -> Vec<String> {
        let shares = |plans: &[&str]| plans.iter().any(|plan| held_by.contains(plan));
        let within = self.named(other).iter().filter(|(_, plans)| shares(plans));
        let names: Vec<String> = within.map(|(plan, _)| rule_name(plan, other)).collect();
        if names.is_empty() { vec![other.to_owned()] } else { names }
    }
}

/// The rule of a plan as a rule of the namespace; `None` if it has no name.
fn expanded(plan: &str, limit: &RuleSpec, holders: &Holders<'_>) -> Option<RuleSpec> {
    let name = limit.name.as_deref()?;
    let (_, held_by) = holders.named(name).iter().find(|(from, _)| *from == plan)?;
    let any = held_by.iter().map(|plan| Pattern::Exact((*plan).to_owned())).collect();
    let mut rule = limit.clone();
    rule.matches.attributes.insert(0, (PLAN.to_owned(), Matcher { any, none: Vec::new() }));
    rule.replaces = limit.replaces.iter().flat_map(|other| holders.replaced(other, held_by)).collect();
    rule.name = Some(rule_name(plan, name));
    rule.plan = Some(Box::new(PlanOrigin { plan: plan.to_owned(), name: name.to_owned() }));
    Some(rule)
}

#[cfg(test)]
mod tests;
