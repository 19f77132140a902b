//! Finds the rules that may match a request, without scanning all rules.
//!
//! Every rule is stored under the condition that the fewest other rules share (see [`crate::lookup`]). A request looks
//! up its own values. The results are candidates, whose conditions are checked afterwards: the index may return too
//! many, and never too few.

use smallvec::SmallVec;
use tollgate_rules::literal::{IndexChoice, LiteralCounts};
use tollgate_rules::pattern::{Matcher, Pattern};

use super::attributes::{AttrId, Attributes};
use super::facts::RequestFacts;
use super::rule::{Rule, RuleId};
use crate::lookup::{NetworkIndex, RouteIndex, TextIndex};

/// Rules by condition.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Rules without conditions.
    always: Vec<RuleId>,
    attributes: Vec<(AttrId, ValueIndex)>,
    routes: Option<RouteIndex>,
}

/// Rules stored under one attribute.
#[derive(Debug)]
enum ValueIndex {
    Texts(Box<TextIndex>),
    Networks(NetworkIndex),
}

/// Rules that may match.
pub(super) type Candidates = SmallVec<[RuleId; 32]>;

impl Index {
    /// Indexes rules by their numbers.
    pub(super) fn build<'a>(rules: impl Iterator<Item = (&'a Rule, u32)> + Clone, attributes: &Attributes) -> Index {
        let counts = LiteralCounts::of(rules.clone().map(|(rule, _)| &rule.spec.matches));
        let mut index = Index::default();
        let mut routes = Vec::new();
        let mut shelves: Vec<(&str, Vec<StoredPattern<'_>>)> = Vec::new();
        for (rule, number) in rules {
            match counts.choose(&rule.spec.matches) {
                IndexChoice::Always => index.always.push(RuleId(number)),
                IndexChoice::Attribute(name, matcher) => {
                    let shelf = match shelves.iter().position(|(other, _)| *other == name) {
                        Some(place) => shelves.get_mut(place),
                        None => {
                            shelves.push((name, Vec::new()));
                            shelves.last_mut()
                        }
                    };
                    shelf.into_iter().for_each(|(_, patterns)| patterns.extend(wanted(matcher, number)));
                }
                IndexChoice::Endpoint(endpoint) if endpoint.any.is_empty() => routes.push((None, number)),
                IndexChoice::Endpoint(endpoint) => {
                    routes.extend(endpoint.any.iter().map(|pattern| (Some(&pattern.path), number)));
                }
            }
        }
        index.routes = (!routes.is_empty()).then(|| RouteIndex::new(routes, &counts));
        index.attributes = shelves
            .into_iter()
            .filter_map(|(name, patterns)| Some((attributes.find(name)?, ValueIndex::new(name, patterns, &counts))))
            .collect();
        index
    }

    /// Adds candidates; may add duplicates.
    #[inline]
    pub(super) fn find(&self, facts: &RequestFacts<'_>, found: &mut Candidates) {
        found.extend_from_slice(&self.always);
        let mut add = |id| found.push(RuleId(id));
        for (id, values) in &self.attributes {
            match values {
                ValueIndex::Texts(texts) => {
                    if let Some(value) = facts.value(*id) {
                        texts.find(value, &mut add);
                    }
                }
                ValueIndex::Networks(networks) => {
                    if let Some(bits) = facts.ip() {
                        networks.find(bits, &mut add);
                    }
                }
            }
        }
        if let (Some(routes), Some((_, path))) = (&self.routes, facts.endpoint()) {
            routes.find(path, &mut add);
        }
    }
}

/// A pattern and the rule stored under it; `None` if any value matches.
type StoredPattern<'a> = (Option<&'a Pattern>, u32);

/// The patterns of which one must match; `None` if any value matches.
fn wanted(matcher: &Matcher, rule: u32) -> impl Iterator<Item = StoredPattern<'_>> {
    let present = matcher.any.is_empty().then_some((None, rule));
    matcher.any.iter().map(move |pattern| (Some(pattern), rule)).chain(present)
}

impl ValueIndex {
    fn new<'a>(name: &'a str, patterns: Vec<StoredPattern<'a>>, counts: &LiteralCounts<'a>) -> ValueIndex {
        if name == "ip" {
            let network = |(pattern, rule): StoredPattern<'_>| match pattern {
                Some(Pattern::Cidr(cidr)) => (Some(*cidr), rule),
                _ => (None, rule),
            };
            return ValueIndex::Networks(NetworkIndex::new(patterns.into_iter().map(network)));
        }
        let text =
            |(pattern, rule): StoredPattern<'a>| (pattern.and_then(|pattern| counts.literal(name, pattern)), rule);
        ValueIndex::Texts(Box::new(TextIndex::new(patterns.into_iter().map(text))))
    }
}
