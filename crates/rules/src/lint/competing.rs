//! Finds the rules that a rule must be compared with, by the values in its conditions: comparing all pairs takes
//! minutes.

use std::cell::Cell;
use std::collections::HashMap;

use crate::key::KeyBy;
use crate::pattern::Pattern;
use crate::spec::{Enforcement, MatchSpec, RuleFile, RuleSpec};

/// Largest number of comparisons in one file. Rules without an exact value, such as globs, have no anchor and are
/// compared with each other: 10,000 of them would take minutes, and servers lint at start-up.
pub(super) const COMPARISONS_MAX: u64 = 2_000_000;

/// Rules that can keep others from deciding.
pub(super) struct CompetingRules<'a> {
    default_key: Option<&'a KeyBy>,
    /// Rules that exempt from others.
    exempting: Vec<&'a RuleSpec>,
    /// Rules that count, by key and anchor, in file order.
    counting: HashMap<(Option<&'a KeyBy>, Anchor<'a>), Vec<Numbered<'a>>>,
    /// Comparisons so far, including those beyond the bound.
    compared: Cell<u64>,
}

/// A rule and its index in the file.
type Numbered<'a> = (usize, &'a RuleSpec);

/// A value that a condition requires: a rule can only include rules that require it too. `None` if no condition has an
/// exact value.
type Anchor<'a> = Option<(&'a str, &'a str)>;

impl<'a> CompetingRules<'a> {
    pub(super) fn of(file: &'a RuleFile) -> Self {
        let mut competing = Self {
            default_key: file.key_by.as_ref(),
            exempting: Vec::new(),
            counting: HashMap::new(),
            compared: Cell::new(0),
        };
        for (number, rule) in file.rules.iter().enumerate().filter(|(_, rule)| rule.mode == Enforcement::Enforce) {
            if rule.unlimited || !rule.replaces.is_empty() {
                competing.exempting.push(rule);
            }
            if !rule.unlimited && rule.soft.is_none() {
                for anchor in anchors(&rule.matches) {
                    competing.counting.entry((competing.key_of(rule), anchor)).or_default().push((number, rule));
                }
            }
        }
        competing
    }

    fn key_of(&self, rule: &'a RuleSpec) -> Option<&'a KeyBy> {
        rule.key_by.as_ref().or(self.default_key)
    }

    /// The first exempting rule that `exempts` accepts.
    pub(super) fn exempting(&self, exempts: impl Fn(&RuleSpec) -> bool) -> Option<&'a RuleSpec> {
        self.exempting.iter().copied().take_while(|_| self.may_compare()).find(|by| exempts(by))
    }

    fn may_compare(&self) -> bool {
        self.compared.set(self.compared.get() + 1);
        !self.is_exhausted()
    }

    /// Whether the bound was reached, and some rules were not compared.
    pub(super) fn is_exhausted(&self) -> bool {
        self.compared.get() > COMPARISONS_MAX
    }

    /// The first rule that `wanted` accepts, among those with the key of `rule` whose conditions may include its own.
    pub(super) fn find(&self, rule: &'a RuleSpec, wanted: impl Fn(usize, &RuleSpec) -> bool) -> Option<&'a RuleSpec> {
        let lists = met(&rule.matches).filter_map(|anchor| self.counting.get(&(self.key_of(rule), anchor)));
        let found = lists
            .filter_map(|list| list.iter().take_while(|_| self.may_compare()).find(|(number, by)| wanted(*number, by)));
        found.min_by_key(|(number, _)| *number).map(|(_, by)| *by)
    }
}

/// The anchors of these conditions: every rule that they include has one of them.
fn anchors(matches: &MatchSpec) -> Vec<Anchor<'_>> {
    for (name, matcher) in &matches.attributes {
        let values: Option<Vec<&str>> = matcher.any.iter().map(exact).collect();
        if let Some(values) = values.filter(|values| !values.is_empty()) {
            return values.into_iter().map(|value| Some((name.as_str(), value))).collect();
        }
    }
    vec![endpoint_anchor(matches)]
}

/// The anchors under which rules that include these conditions may be filed.
fn met(matches: &MatchSpec) -> impl Iterator<Item = Anchor<'_>> {
    let first =
        matches.attributes.iter().filter_map(|(name, matcher)| Some((name.as_str(), exact(matcher.any.first()?)?)));
    first.map(Some).chain([None]).chain(endpoint_anchor(matches).map(Some))
}

fn endpoint_anchor(matches: &MatchSpec) -> Anchor<'_> {
    let endpoint = matches.endpoint.as_ref().filter(|endpoint| !endpoint.is_any())?;
    Some(("endpoint", endpoint.any.first()?.path.as_str()))
}

fn exact(pattern: &Pattern) -> Option<&str> {
    match pattern {
        Pattern::Exact(value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::includes;
    use super::*;

    #[test]
    fn including_rules_are_found_by_anchor() {
        let conditions = [
            "",
            "tier: a",
            "tier: b",
            "tier: [a, b]",
            "tier: [a, '!b']",
            "tier: 'a*'",
            "tier: '*'",
            "tier: '!a'",
            "endpoint: /x",
            "endpoint: [/x, /y]",
            "endpoint: '*'",
            "endpoint: '!/x'",
            "tier: a, endpoint: /x",
            "tier: [b, a], org: o",
            "org: o, tier: a",
            "org: '*', tier: [a, b], endpoint: [/y, /x]",
            "ip: 10.0.0.0/8",
        ];
        let rule = |matches| format!("  - {{ match: {{ {matches} }}, limit: {{ requests: 1, window: 1s }} }}\n");
        let text = format!("rules:\n{}", conditions.map(rule).concat());
        let rules = crate::read("rules.yaml", &text).unwrap_or_else(|report| panic!("{report}")).rules;
        let mut included = 0;
        for (outer, inner) in rules.iter().flat_map(|outer| rules.iter().map(move |inner| (outer, inner))) {
            let found = anchors(&outer.matches).iter().any(|anchor| met(&inner.matches).any(|own| own == *anchor));
            assert!(found || !includes(&outer.matches, &inner.matches), "{outer:?}\n{inner:?}");
            included += usize::from(includes(&outer.matches, &inner.matches));
        }
        assert!(included > 50, "{included}");
    }

    /// Counts instead of times: a file of globs has 9 million pairs, and some are not compared.
    #[test]
    fn comparisons_are_bounded_with_one_warning() {
        let rule = |number: usize| {
            format!("  - {{ match: {{ user_id: 'a{number}*z' }}, limit: {{ requests: 1, window: 1s }} }}\n")
        };
        let read = |count: usize| {
            let text = format!("key_by: user_id\nrules:\n{}", (0..count).map(rule).collect::<String>());
            crate::read("rules.yaml", &text).unwrap_or_else(|report| panic!("{report}"))
        };
        for (count, told) in [(1_000, 0), (3_001, 1)] {
            let file = read(count);
            let (found, _) = super::super::lint(&file).into_parts();
            assert_eq!(found.iter().filter(|problem| problem.code == "not-compared").count(), told, "{count} rules");
            let (competing, compared) = (CompetingRules::of(&file), Cell::new(0_u64));
            for rule in &file.rules {
                let _ = competing.find(rule, |_, _| {
                    compared.set(compared.get() + 1);
                    false
                });
            }
            assert!(compared.get() <= COMPARISONS_MAX && compared.get() >= 1_000_000, "{}", compared.get());
        }
    }
}
