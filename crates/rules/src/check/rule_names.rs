//! Names of rules, and what a misspelt one may mean.

use std::collections::HashMap;

use crate::nearest::nearest;
use crate::problem::{Problem, quote};
use crate::spec::RuleFile;

/// The names of a file, and the number of suggestions left: each suggestion compares all names.
pub(super) struct RuleNames<'a> {
    index: HashMap<&'a str, usize>,
    /// Rules by their name within plans.
    of_plans: HashMap<&'a str, Vec<usize>>,
    suggestions: usize,
}

impl<'a> RuleNames<'a> {
    /// Reports names that two rules have.
    pub(super) fn of(file: &'a RuleFile, problems: &mut Vec<Problem>) -> RuleNames<'a> {
        let mut names = HashMap::new();
        for (index, rule) in file.rules.iter().enumerate() {
            let Some(name) = rule.name.as_deref() else { continue };
            if let Some(first) = names.insert(name, index).and_then(|first| file.rules.get(first)) {
                let message = match rule.at.line {
                    0 => format!("two rules have the name {}", quote(name)),
                    line => format!("two rules have the name {}, on lines {} and {line}", quote(name), first.at.line),
                };
                let problem =
                    Problem::error("duplicate-name", rule.at, format!("{}.name", file.path_of(index)), message);
                problems.push(problem.help("give one of them another name"));
            }
        }
        let mut of_plans: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, rule) in file.rules.iter().enumerate() {
            if let Some(origin) = &rule.plan {
                of_plans.entry(&origin.name).or_default().push(index);
            }
        }
        RuleNames { index: names, of_plans, suggestions: crate::Report::SHOWN }
    }

    /// The index of the rule with that name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// The rules that an override or grant names: one by its name, or all that have this name within plans.
    pub(super) fn overridden(&self, name: &str) -> &[usize] {
        match self.index.get(name) {
            Some(index) => std::slice::from_ref(index),
            None => self.of_plans.get(name).map_or(&[], Vec::as_slice),
        }
    }

    pub(super) fn suggest(&mut self, name: &str) -> String {
        if self.suggestions == 0 {
            return "name a rule of this file".to_owned();
        }
        self.suggestions -= 1;
        let mut all: Vec<&str> = self.index.keys().copied().collect();
        all.sort_unstable();
        match nearest(name, all.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if all.is_empty() => "there is no rule with a name here".to_owned(),
            None => format!("rules with a name: {}", all.get(..all.len().min(8)).unwrap_or_default().join(", ")),
        }
    }
}
