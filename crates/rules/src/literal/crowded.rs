//! Bounds the number of wildcard patterns that share their literal, and must be compared one by one.

use std::collections::{HashMap, HashSet};

use super::Literal;
use super::counts::{IndexChoice, LiteralCounts, PATHS};
use crate::glob::Glob;
use crate::pattern::Pattern;
use crate::route::Tail;
use crate::spec::RuleSpec;

/// Largest number of different wildcard patterns under one literal: a request is compared with each.
pub const CROWD_MAX: usize = 512;

/// A pattern beyond the bound.
#[derive(Debug)]
pub struct CrowdedPattern {
    /// Index of the rule.
    pub rule: usize,
    /// The attribute, or `endpoint`.
    pub field: String,
    /// The shared literal.
    pub literal: String,
}

/// Every wildcard pattern beyond [`CROWD_MAX`] under one literal. This bounds the cost of finding the rules of a
/// request.
pub fn crowded<'a>(rules: impl Iterator<Item = &'a RuleSpec> + Clone) -> Vec<CrowdedPattern> {
    if rules.clone().flat_map(wildcards).nth(CROWD_MAX).is_none() {
        return Vec::new();
    }
    let counts = LiteralCounts::of(rules.clone().map(|rule| &rule.matches));
    let mut crowds: HashMap<(&'a str, Literal<'a>), HashSet<Wildcard<'a>>> = HashMap::new();
    let mut found = Vec::new();
    for (rule, spec) in rules.enumerate() {
        let mut join = |name: &'a str, literal: Literal<'a>, wildcard| {
            let crowd = crowds.entry((name, literal.clone())).or_default();
            if crowd.len() < CROWD_MAX || crowd.contains(&wildcard) {
                crowd.insert(wildcard);
                return;
            }
            let field = if name == PATHS { "endpoint" } else { name };
            found.push(CrowdedPattern { rule, field: field.to_owned(), literal: literal.shown() });
        };
        match counts.choose(&spec.matches) {
            IndexChoice::Always => {}
            IndexChoice::Attribute(name, matcher) => {
                for pattern in &matcher.any {
                    if let (Pattern::Glob(glob), Some(literal)) = (pattern, counts.literal(name, pattern)) {
                        join(name, literal, Wildcard::Text(glob));
                    }
                }
            }
            IndexChoice::Endpoint(endpoint) => {
                for pattern in &endpoint.any {
                    if let Some(literal) = counts.path_literal(&pattern.path) {
                        join(PATHS, literal, Wildcard::Path(pattern.path.as_str()));
                    }
                }
            }
        }
    }
    found
}

#[derive(PartialEq, Eq, Hash)]
enum Wildcard<'a> {
    Text(&'a Glob),
    Path(&'a str),
}

/// One item for each pattern of the rule with stars beside other text.
pub fn wildcards(rule: &RuleSpec) -> impl Iterator<Item = ()> + '_ {
    let texts = rule.matches.attributes.iter().flat_map(|(_, matcher)| &matcher.any);
    let texts = texts.filter(|pattern| matches!(pattern, Pattern::Glob(_))).map(|_| ());
    let paths = rule.matches.endpoint.iter().flat_map(|endpoint| &endpoint.any);
    texts.chain(paths.filter(|pattern| matches!(pattern.path.tail, Tail::Glob(_))).map(|_| ()))
}
