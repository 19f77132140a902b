//! Finds the rules that may match a request, without scanning all rules.
//!
//! Every rule is stored under the condition that the fewest other rules share (see [`crate::lookup`]). A request looks
//! up its own values. The results are candidates, whose conditions are checked afterwards: the index may return too
//! many, and never too few.
//!
//! The index of a namespace has two layers: a large base that generations share, and a small one for rules that
//! changed.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_rules::literal::{IndexChoice, LiteralCounts};
use tollgate_rules::pattern::{Matcher, Pattern};
use tollgate_rules::spec::Enforcement;

use super::attributes::{AttrId, Attributes};
use super::facts::RequestFacts;
use super::rule::{Rule, RuleId};
use crate::lookup::{NetworkIndex, RouteIndex, TextIndex};

/// Not in the base, or no longer in the set.
const NONE: u32 = u32::MAX;

/// The index of one namespace.
#[derive(Debug, Default)]
pub(super) struct LayeredIndex {
    base: Arc<Index>,
    /// Number of each rule in the base.
    numbers_in_base: Vec<u32>,
    /// Index in the namespace of each rule of the base; `None` if nothing moved.
    moved: Option<Vec<u32>>,
    /// Rules that the base does not have.
    recent: Option<Index>,
    /// Number of rules in `recent`.
    changes: usize,
    /// Number of rules in the base.
    base_len: usize,
}

impl LayeredIndex {
    /// Reuses the base of `before`; `numbers_in_base` has the number of each rule in it.
    pub(super) fn new(
        before: Option<&LayeredIndex>,
        rules: &[Rule],
        numbers_in_base: Vec<u32>,
        attributes: &Attributes,
    ) -> LayeredIndex {
        let numbered = rules.iter().zip(0..).filter(|(rule, _)| rule.spec.mode != Enforcement::Off);
        let Some(before) = before else {
            let numbers_in_base =
                rules.iter().zip(0..).map(|(rule, at)| if rule.spec.mode == Enforcement::Off { NONE } else { at });
            let (base, numbers_in_base) = (Arc::new(Index::build(numbered, attributes)), numbers_in_base.collect());
            return LayeredIndex { base, numbers_in_base, base_len: rules.len(), ..LayeredIndex::default() };
        };
        let mut moved = vec![NONE; before.base_len];
        for (number, at) in numbers_in_base.iter().zip(0..) {
            moved.get_mut(*number as usize).into_iter().for_each(|moved| *moved = at);
        }
        let is_recent = |(_, at): &(&Rule, u32)| numbers_in_base.get(*at as usize) == Some(&NONE);
        let recent: Vec<(&Rule, u32)> = numbered.filter(is_recent).collect();
        let changes = recent.len();
        let recent = (changes > 0).then(|| Index::build(recent.into_iter(), attributes));
        LayeredIndex {
            base: before.base.clone(),
            numbers_in_base,
            moved: Some(moved),
            recent,
            changes,
            base_len: before.base_len,
        }
    }

    /// Whether the base should be reused for a set of so many rules.
    pub(super) fn is_worthwhile(&self, rules: usize) -> bool {
        let most = (rules / 32).max(64);
        let gone = self.base_len.saturating_sub(rules);
        self.changes <= most && gone <= most
    }

    pub(super) fn number_of(&self, rule: usize) -> u32 {
        self.numbers_in_base.get(rule).copied().unwrap_or(NONE)
    }

    /// Adds candidates in rule order, without duplicates; `first` is the id of the namespace's first rule.
    #[inline]
    pub(super) fn find(&self, facts: &RequestFacts<'_>, first: usize, found: &mut Candidates) {
        self.base.find(facts, found);
        if let Some(moved) = &self.moved {
            found.retain(|id| {
                id.0 = moved.get(id.0 as usize).copied().unwrap_or(NONE);
                id.0 != NONE
            });
        }
        if let Some(recent) = &self.recent {
            recent.find(facts, found);
        }
        if found.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        if first > 0 {
            found.iter_mut().for_each(|id| *id = RuleId(id.0 + first as u32));
        }
    }
}

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
        let mut by_attribute: Vec<(&str, Vec<StoredPattern<'_>>)> = Vec::new();
        for (rule, number) in rules {
            match counts.choose(&rule.spec.matches) {
                IndexChoice::Always => index.always.push(RuleId(number)),
                IndexChoice::Attribute(name, matcher) => {
                    let entry = match by_attribute.iter().position(|(other, _)| *other == name) {
                        Some(at) => by_attribute.get_mut(at),
                        None => {
                            by_attribute.push((name, Vec::new()));
                            by_attribute.last_mut()
                        }
                    };
                    entry.into_iter().for_each(|(_, patterns)| patterns.extend(wanted(matcher, number)));
                }
                IndexChoice::Endpoint(endpoint) if endpoint.any.is_empty() => routes.push((None, number)),
                IndexChoice::Endpoint(endpoint) => {
                    routes.extend(endpoint.any.iter().map(|pattern| (Some(&pattern.path), number)));
                }
            }
        }
        index.routes = (!routes.is_empty()).then(|| RouteIndex::new(routes, &counts));
        index.attributes = by_attribute
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
