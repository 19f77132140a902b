//! Counts literals, to store each rule under the condition that the fewest others share.

use std::collections::HashMap;

use super::{Literal, Literals, of_path, of_pattern};
use crate::address::Cidr;
use crate::endpoint::EndpointMatcher;
use crate::pattern::{Matcher, Pattern};
use crate::route::{PathPattern, Tail};
use crate::spec::MatchSpec;

/// Number of conditions that contain each literal.
#[derive(Debug, Default)]
pub struct LiteralCounts<'a> {
    literals: HashMap<(&'a str, Literal<'a>), usize>,
    networks: HashMap<(&'a str, Cidr), usize>,
    routes: HashMap<&'a str, usize>,
    rules: usize,
}

/// The condition under which a rule is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexChoice<'a> {
    /// None: the rule has no condition.
    Always,
    /// One of its attributes.
    Attribute(&'a str, &'a Matcher),
    /// Its endpoint.
    Endpoint(&'a EndpointMatcher),
}

/// Name under which paths are counted; no attribute has an empty name.
pub(super) const PATHS: &str = "";

impl<'a> LiteralCounts<'a> {
    /// Counts all conditions.
    pub fn of(all: impl IntoIterator<Item = &'a MatchSpec>) -> LiteralCounts<'a> {
        let mut counts = LiteralCounts::default();
        for matches in all {
            counts.rules += 1;
            for (name, matcher) in &matches.attributes {
                counts.add_patterns(name, &matcher.any);
            }
            let endpoints = matches.endpoint.iter().flat_map(|endpoint| &endpoint.any);
            counts.add_paths(endpoints.map(|pattern| &pattern.path));
        }
        counts
    }

    /// Counts the patterns of one list.
    pub fn of_list(patterns: &'a [Pattern]) -> LiteralCounts<'a> {
        let mut counts = LiteralCounts { rules: patterns.len(), ..LiteralCounts::default() };
        counts.add_patterns(PATHS, patterns);
        counts
    }

    /// Counts the paths of one list.
    pub fn of_paths(paths: impl Iterator<Item = &'a PathPattern>) -> LiteralCounts<'a> {
        let mut counts = LiteralCounts::default();
        counts.add_paths(paths);
        counts
    }

    fn add_patterns(&mut self, name: &'a str, patterns: &'a [Pattern]) {
        for pattern in patterns {
            if let Pattern::Cidr(cidr) = pattern {
                *self.networks.entry((name, *cidr)).or_default() += 1;
            }
            for literal in of_pattern(pattern) {
                *self.literals.entry((name, literal)).or_default() += 1;
            }
        }
    }

    fn add_paths(&mut self, paths: impl Iterator<Item = &'a PathPattern>) {
        for path in paths {
            *self.routes.entry(path.as_str()).or_default() += 1;
            for literal in of_path(path) {
                *self.literals.entry((PATHS, literal)).or_default() += 1;
            }
        }
    }

    /// The condition of a rule that the fewest others share.
    pub fn choose(&self, matches: &'a MatchSpec) -> IndexChoice<'a> {
        let by_attribute = matches
            .attributes
            .iter()
            .map(|(name, matcher)| (self.sharers(name, matcher), IndexChoice::Attribute(name, matcher)))
            .min_by_key(|(sharers, _)| *sharers);
        let by_endpoint =
            matches.endpoint.as_ref().map(|endpoint| (self.path_sharers(endpoint), IndexChoice::Endpoint(endpoint)));
        match (by_attribute, by_endpoint) {
            (Some((shared, attribute)), Some((sharing, _))) if shared <= sharing => attribute,
            (_, Some((_, endpoint))) => endpoint,
            (Some((_, attribute)), None) => attribute,
            (None, None) => IndexChoice::Always,
        }
    }

    /// The literal to store a pattern under; `None` if any text may match.
    pub fn literal(&self, name: &'a str, pattern: &'a Pattern) -> Option<Literal<'a>> {
        self.rarest(name, of_pattern(pattern)).map(|(_, literal)| literal)
    }

    /// The literal of a pattern counted by [`of_list`](Self::of_list).
    pub fn list_literal(&self, pattern: &'a Pattern) -> Option<Literal<'a>> {
        self.literal(PATHS, pattern)
    }

    /// The literal of a path pattern.
    pub fn path_literal(&self, path: &'a PathPattern) -> Option<Literal<'a>> {
        self.rarest(PATHS, of_path(path)).map(|(_, literal)| literal)
    }

    fn rarest(&self, name: &'a str, literals: Literals<'a>) -> Option<(usize, Literal<'a>)> {
        let counted = literals.into_iter().map(|literal| {
            let key = (name, literal);
            (self.literals.get(&key).copied().unwrap_or(1), key.1)
        });
        counted.min_by(|(one, first), (other, second)| (one, first.rank()).cmp(&(other, second.rank())))
    }

    /// Number of rules that are found together with one stored under this condition; a condition that cannot be looked
    /// up is found by every request.
    fn sharers(&self, name: &'a str, matcher: &'a Matcher) -> usize {
        let shared = |pattern: &'a Pattern| match pattern {
            Pattern::Cidr(cidr) => self.networks.get(&(name, *cidr)).copied().unwrap_or(1),
            pattern => self.rarest(name, of_pattern(pattern)).map_or(self.rules, |(count, _)| count),
        };
        matcher.any.iter().map(shared).max().unwrap_or(self.rules)
    }

    fn path_sharers(&self, endpoint: &'a EndpointMatcher) -> usize {
        let shared = |path: &'a PathPattern| match path.tail {
            Tail::Glob(_) => self.rarest(PATHS, of_path(path)).map_or(self.rules, |(count, _)| count),
            Tail::Rest if path.segments.is_empty() => self.rules,
            _ => self.routes.get(path.as_str()).copied().unwrap_or(1),
        };
        endpoint.any.iter().map(|pattern| shared(&pattern.path)).max().unwrap_or(self.rules)
    }
}
