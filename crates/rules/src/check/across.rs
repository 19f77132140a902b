//! Checks between rules, clients, overrides and grants: names are unique, and references exist.

use std::collections::{BTreeMap, HashMap};

use super::rule_names::RuleNames;
use super::{LABEL_HELP, ProblemCollector, grant, is_label, limit, plan};
use crate::literal::{self, CROWD_MAX, CrowdedPattern};
use crate::position::SourcePosition;
use crate::problem::{Problem, quote};
use crate::spec::{OverrideSpec, RuleFile, RuleSpec};

/// Problems between rules, clients and overrides. The field of a problem starts with the entry that is refused, such as
/// `rules[2]`, so that a caller can leave that entry out.
pub fn across(file: &RuleFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !is_label(&file.namespace) {
        let message = format!("{} cannot be a namespace", quote(&file.namespace));
        problems.push(Problem::error("bad-name", SourcePosition::default(), "namespace", message).help(LABEL_HELP));
    }
    let mut names = RuleNames::of(file, &mut problems);
    replaced(file, &mut names, &mut problems);
    cycles(file, &names, &mut problems);
    problems.extend(crowded(file.rules.iter()));
    clients(file, &mut problems);
    plan::assignments(&file.plans, &file.clients, &mut problems);
    overrides(file, &mut names, &mut problems);
    grant::grants(file, &mut names, &mut problems);
    problems
}

/// The code of problems from [`crowded`].
pub const CROWDED: &str = "crowded-patterns";
pub(super) const CROWDED_HELP: &str = "give each pattern some text of its own, or write exact values in lists";

pub(super) const CYCLE: &str = "rules replace each other in a circle, so that none of them would limit anything";
pub(super) const CYCLE_HELP: &str =
    "let each rule replace only rules that do not, directly or through others, replace it";

/// One problem for each wildcard pattern beyond [`CROWD_MAX`] that share their literal text: a request is compared with
/// each of them.
pub fn crowded<'a>(rules: impl Iterator<Item = &'a RuleSpec> + Clone) -> Vec<Problem> {
    let crowds = literal::crowded(rules.clone());
    let mut problems = Vec::with_capacity(crowds.len());
    let (mut rules, mut crowds) = (rules.enumerate(), crowds.into_iter().peekable());
    // Crowded patterns are in rule order.
    while let (Some((place, rule)), true) = (rules.next(), crowds.peek().is_some()) {
        while let Some(crowd) = crowds.next_if(|crowd| crowd.rule == place) {
            let field = format!("rules[{place}].match.{}", crowd.field);
            problems.push(Problem::error(CROWDED, rule.at, field, crowd_message(&crowd)).help(CROWDED_HELP));
        }
    }
    problems
}

/// Number of patterns of a rule that [`crowded`] counts.
pub fn wildcards(rule: &RuleSpec) -> usize {
    literal::wildcards(rule).count()
}

pub(super) fn crowd_message(crowd: &CrowdedPattern) -> String {
    let (field, shared) = (&crowd.field, quote(&crowd.literal));
    format!("more than {CROWD_MAX} patterns of `{field}` have no text that tells them apart: they share {shared}")
}

/// Reports rules that replace each other in a cycle: none of them would limit anything.
fn cycles(file: &RuleFile, names: &RuleNames<'_>, problems: &mut Vec<Problem>) {
    // Removes rules that replace none of the rest; what remains is in a cycle or leads to one.
    let replaced = |index: usize| {
        let rule = file.rules.get(index);
        rule.into_iter().flat_map(|rule| &rule.replaces).filter_map(|name| names.find(name))
    };
    let mut open: Vec<usize> =
        (0..file.rules.len()).map(|index| replaced(index).filter(|other| *other != index).count()).collect();
    let mut replacers: HashMap<usize, Vec<usize>> = HashMap::new();
    for index in 0..file.rules.len() {
        replaced(index)
            .filter(|other| *other != index)
            .for_each(|other| replacers.entry(other).or_default().push(index));
    }
    let mut done: Vec<usize> =
        open.iter().enumerate().filter(|(_, left)| **left == 0).map(|(index, _)| index).collect();
    while let Some(index) = done.pop() {
        for replacer in replacers.remove(&index).unwrap_or_default() {
            if let Some(left) = open.get_mut(replacer) {
                *left -= 1;
                if *left == 0 {
                    done.push(replacer);
                }
            }
        }
    }
    let circular = open
        .iter()
        .enumerate()
        .find(|(_, left)| **left > 0)
        .and_then(|(index, _)| Some((index, file.rules.get(index)?)));
    if let Some((index, rule)) = circular {
        let problem = Problem::error("replaces-cycle", rule.at, format!("{}.replaces", file.path_of(index)), CYCLE);
        problems.push(problem.help(CYCLE_HELP));
    }
}

fn replaced(file: &RuleFile, names: &mut RuleNames<'_>, problems: &mut Vec<Problem>) {
    for (index, rule) in file.rules.iter().enumerate() {
        for (at, other) in rule.replaces.iter().enumerate() {
            let mut add = |message, help: String| {
                // A single name may be written without a list; its position is found either way.
                let field = format!("{}.replaces[{at}]", file.path_of(index));
                problems.push(Problem::error("unknown-rule", rule.at, field, message).help(help));
            };
            if rule.name.as_ref() == Some(other) {
                add(
                    format!("the rule {} replaces itself", quote(other)),
                    "name other rules, or use `mode: off`".to_owned(),
                );
            } else if names.find(other).is_none() {
                add(format!("there is no rule with the name {}", quote(other)), names.suggest(other));
            }
        }
    }
}

fn clients(file: &RuleFile, problems: &mut Vec<Problem>) {
    let mut seen = HashMap::new();
    for (index, client) in file.clients.iter().enumerate().filter(|(_, client)| !client.client_key.is_empty()) {
        if seen.insert(client.client_key.as_str(), index).is_some() {
            let field = format!("clients[{index}].client_key");
            let message = format!("the client {} is there twice", quote(&client.client_key));
            problems.push(Problem::error("duplicate-name", client.at, field, message).help("keep one of them"));
        }
    }
}

fn overrides(file: &RuleFile, names: &mut RuleNames<'_>, problems: &mut Vec<Problem>) {
    let mut seen: HashMap<(&str, &str), Periods> = HashMap::new();
    for (index, change) in file.overrides.iter().enumerate().filter(|(_, change)| !change.rule.is_empty()) {
        let mut found = ProblemCollector { root: format!("overrides[{index}]"), at: change.at, problems: Vec::new() };
        let rules: Vec<usize> = names.overridden(&change.rule).to_vec();
        if rules.is_empty() && !change.is_of_every_rule() {
            let message = format!("there is no rule with the name {}", quote(&change.rule));
            found.add("unknown-rule", "rule", message, &names.suggest(&change.rule));
        }
        for rule in rules.into_iter().filter_map(|rule| file.rules.get(rule)) {
            if found.problems.is_empty() {
                limit::check_change(change, rule, &mut found);
            }
        }
        if !take_period(seen.entry((&change.client_key, &change.rule)).or_default(), change) {
            let message = format!("{} has two overrides of {} at once", quote(&change.client_key), quote(&change.rule));
            found.add("duplicate-name", "", message, "keep one, or give them periods that do not overlap");
        }
        problems.append(&mut found.problems);
    }
}

/// Periods that do not overlap: end by start.
type Periods = BTreeMap<u64, u64>;

/// Adds the period of an override; `false` if it overlaps another. Only a neighbour can overlap.
fn take_period(periods: &mut Periods, change: &OverrideSpec) -> bool {
    let (from, until) = (change.valid_from_ns.unwrap_or(0), change.valid_until_ns.unwrap_or(u64::MAX));
    if from >= until {
        return true; // an empty period is reported elsewhere
    }
    let is_free = periods.range(..until).next_back().is_none_or(|(_, end)| *end <= from);
    if is_free {
        periods.insert(from, until);
    }
    is_free
}
