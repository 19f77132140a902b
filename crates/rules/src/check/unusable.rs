//! Finds the rules to leave out so that the others have no problems between them.
//!
//! [`across`](super::across) only reports problems. SQL can break any number of rows at once, so the work here is
//! linear: each rule that is left out, and each name in `replaces`, is visited once. Only crowded patterns are counted
//! repeatedly, a bounded number of times.

use std::collections::{BTreeMap, HashMap};

use super::across;
use crate::literal;
use crate::problem::{Problem, quote};
use crate::spec::{RuleFile, RuleSpec};

/// How often crowded patterns are counted: leaving rules out changes which literal of a pattern is the rarest.
const COUNTS_MAX: usize = 16;

/// Codes of problems between rules that are valid by themselves.
pub const CROSS_RULE_CODES: [&str; 4] = [UNKNOWN, "duplicate-name", "replaces-cycle", across::CROWDED];

/// Indices of the rules to leave out, each with its problem. The other rules have no problems between them.
pub fn unusable_rules(file: &RuleFile) -> BTreeMap<usize, Problem> {
    let mut search = UnusableSearch::new(&file.rules);
    search.names();
    search.cycles();
    search.crowds();
    search.found
}

struct UnusableSearch<'a> {
    rules: &'a [RuleSpec],
    found: BTreeMap<usize, Problem>,
    /// The first rule of each name.
    names: HashMap<&'a str, usize>,
    /// The rules that replace the rule at an index.
    replacers: HashMap<usize, Vec<usize>>,
    /// Rules and names visited; tests bound it.
    visits: usize,
}

impl<'a> UnusableSearch<'a> {
    fn new(rules: &'a [RuleSpec]) -> UnusableSearch<'a> {
        let (found, names, replacers) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        UnusableSearch { rules, found, names, replacers, visits: 0 }
    }

    /// Finds duplicate names, and names in `replaces` that no rule has.
    fn names(&mut self) {
        let mut duplicates = Vec::new();
        for (place, rule) in self.rules.iter().enumerate() {
            self.visits += 1;
            let Some(name) = rule.name.as_deref() else { continue };
            match self.names.get(name) {
                Some(_) => duplicates.push((place, name)),
                None => drop(self.names.insert(name, place)),
            }
        }
        let mut unknown = Vec::new();
        for (place, rule) in self.rules.iter().enumerate() {
            for name in &rule.replaces {
                self.visits += 1;
                match self.names.get(name.as_str()) {
                    Some(other) if *other != place => self.replacers.entry(*other).or_default().push(place),
                    Some(_) => unknown.push((place, format!("the rule {} replaces itself", quote(name)))),
                    None => unknown.push((place, format!("there is no rule with the name {}", quote(name)))),
                }
            }
        }
        for (place, name) in duplicates {
            self.leave_out(place, "duplicate-name", format!("two rules have the name {}", quote(name)));
        }
        for (place, message) in unknown {
            self.leave_out(place, UNKNOWN, message);
        }
    }

    /// Finds rules that replace each other in a cycle. Leaves one of them out, and with it the rules that replace it.
    fn cycles(&mut self) {
        let targets = |place: usize| {
            let names = self.rules.get(place).into_iter().flat_map(|rule| &rule.replaces);
            names.filter_map(|name| self.names.get(name.as_str())).copied().filter(move |other| *other != place)
        };
        // Removes rules that replace none of the rest.
        let left = (0..self.rules.len()).filter(|place| !self.found.contains_key(place));
        let mut open: BTreeMap<usize, usize> = left.map(|place| (place, targets(place).count())).collect();
        let mut done: Vec<usize> = open.iter().filter(|(_, count)| **count == 0).map(|(place, _)| *place).collect();
        while let Some(place) = done.pop() {
            open.remove(&place);
            for replacer in self.replacers.get(&place).into_iter().flatten() {
                self.visits += 1;
                let Some(count) = open.get_mut(replacer) else { continue };
                *count -= 1;
                if *count == 0 {
                    done.push(*replacer);
                }
            }
        }
        // Leaving one out also leaves out all that lead to it, so the next one that remains is in another cycle.
        for place in open.into_keys() {
            self.visits += 1;
            if !self.found.contains_key(&place) {
                self.leave_out(place, "replaces-cycle", across::CYCLE.to_owned());
            }
        }
    }

    /// Finds crowded patterns.
    fn crowds(&mut self) {
        for count in 1.. {
            let left: Vec<usize> = (0..self.rules.len()).filter(|place| !self.found.contains_key(place)).collect();
            self.visits += left.len();
            let crowds = literal::crowded(left.iter().filter_map(|place| self.rules.get(*place)));
            if crowds.is_empty() {
                return;
            }
            for crowd in crowds {
                let Some(place) = left.get(crowd.rule) else { continue };
                self.leave_out(*place, across::CROWDED, across::crowd_message(&crowd));
            }
            if count == COUNTS_MAX {
                break;
            }
        }
        // Crafted to stay crowded: leave out every rule with a wildcard.
        for place in 0..self.rules.len() {
            if self.rules.get(place).is_some_and(|rule| across::wildcards(rule) > 0) {
                self.leave_out(place, across::CROWDED, "the set has too many patterns that are alike".to_owned());
            }
        }
    }

    /// Leaves out a rule and all that replace it, directly or through others.
    fn leave_out(&mut self, place: usize, code: &'static str, message: String) {
        let mut next = vec![(place, code, message)];
        while let Some((place, code, message)) = next.pop() {
            let Some(rule) = self.rules.get(place).filter(|_| !self.found.contains_key(&place)) else { continue };
            let field = format!("rules[{place}]");
            self.found.insert(place, Problem::error(code, rule.at, field, message).help(help_for(code)));
            let replacers = self.replacers.get(&place).into_iter().flatten();
            for replacer in replacers {
                self.visits += 1;
                let name = quote(rule.name.as_deref().unwrap_or_default());
                let message = format!("the rule {name}, which it replaces, cannot be used itself");
                next.push((*replacer, UNKNOWN, message));
            }
        }
    }
}

const UNKNOWN: &str = "unknown-rule";

fn help_for(code: &str) -> &'static str {
    match code {
        "duplicate-name" => "give one of them another name",
        "replaces-cycle" => across::CYCLE_HELP,
        across::CROWDED => across::CROWDED_HELP,
        _ => "name rules of this namespace that can be used, or none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: usize, replaces: &[usize]) -> RuleSpec {
        let named = |number: usize| format!("r{number:06}");
        let replaces = replaces.iter().copied().map(named).collect();
        RuleSpec { name: Some(named(name)), replaces, ..RuleSpec::default() }
    }

    /// The indices left out, and the number of visits.
    fn search(rules: Vec<RuleSpec>) -> (Vec<(usize, &'static str)>, usize) {
        let mut file = RuleFile { rules, ..RuleFile::default() };
        let mut search = UnusableSearch::new(&file.rules);
        search.names();
        search.cycles();
        search.crowds();
        let (found, visits) = (search.found, search.visits);
        let mut place = 0..;
        file.rules.retain(|_| !place.next().is_some_and(|place| found.contains_key(&place)));
        assert_eq!(across::across(&file).iter().map(|problem| problem.code).collect::<Vec<_>>(), [""; 0]);
        (found.into_iter().map(|(place, problem)| (place, problem.code)).collect(), visits)
    }

    #[test]
    fn only_what_does_not_go_with_the_rest_is_left_out() {
        let rules = vec![
            rule(0, &[]),
            rule(1, &[0]),
            rule(2, &[900]),
            rule(3, &[2, 0]),
            rule(4, &[5]),
            rule(5, &[6]),
            rule(6, &[5]),
            rule(7, &[7]),
            rule(0, &[]),
        ];
        let (found, _) = search(rules);
        let unknown = "unknown-rule";
        let expected = [(2, unknown), (3, unknown), (4, "replaces-cycle"), (5, "replaces-cycle"), (6, unknown)];
        assert_eq!(found, [&expected[..], &[(7, unknown), (8, "duplicate-name")]].concat());
    }

    /// An earlier version left out one rule per pass over all rules.
    #[test]
    fn many_bad_rules_cost_what_each_of_them_costs() {
        const MANY: usize = 20_000;
        let unknown = (0..MANY).map(|n| rule(n, &[MANY + n])).collect();
        let chain = (0..MANY).map(|n| rule(n, &[n + 1])).collect();
        let pairs = (0..MANY).map(|n| rule(n, &[n ^ 1])).collect();
        let ring = (0..MANY).map(|n| rule(n, &[(n + 1) % MANY])).collect();
        for (kind, rules) in [("unknown", unknown), ("chain", chain), ("pairs", pairs), ("ring", ring)] {
            let (found, visits) = search(rules);
            assert_eq!(found.len(), MANY, "{kind}");
            assert!(visits <= 6 * MANY, "{kind}: {visits} visits at {MANY} rules");
        }
    }

    #[test]
    fn crowds_are_counted_a_few_times() {
        const MANY: usize = 4_096;
        let crowded = |number: usize| {
            let text: String = (0..12).map(|bit| if number >> bit & 1 == 1 { "*a" } else { "*b" }).collect();
            let yaml = format!("rules: [{{ name: r{number}, match: {{ org: '{text}*' }}, unlimited: true }}]");
            crate::read("rules.yaml", &yaml).unwrap().rules.remove(0)
        };
        let (found, visits) = search((0..MANY).map(crowded).collect());
        assert!(found.len() >= MANY - 2 * literal::CROWD_MAX, "{}", found.len());
        assert!(found.iter().all(|(_, code)| *code == across::CROWDED), "{:?}", found.first());
        assert!(visits <= (COUNTS_MAX + 2) * MANY, "{visits} visits at {MANY} rules");
    }
}
