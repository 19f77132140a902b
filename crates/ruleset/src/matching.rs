//! Which rules apply to a request: candidates from an index, whose conditions are then checked, without those from which
//! another rule exempts; and the key of the bucket that each has for it.
//!
//! Every rule is stored under the condition that the fewest other rules share (see [`crate::lookup`]). A request looks
//! up its own values. The results are candidates: the index may return too many, and never too few.
//!
//! The index of a namespace has two layers: a large base that generations share, and a small one for rules that
//! changed.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::KeyHasher;
use tollgate_rules::literal::{IndexChoice, LiteralCounts};
use tollgate_rules::path::PathCase;
use tollgate_rules::pattern::{Matcher, Pattern};
use tollgate_rules::spec::{Enforcement, Missing};

use super::attributes::{AttrId, Attributes};
use super::facts::RequestFacts;
use super::rule::{Conditions, Rule, RuleId};
use crate::lookup::{IndexedEndpoint, IndexedMatcher, LowercasePath, NetworkIndex, RouteIndex, TextIndex};

/// Precedes the value of a fallback attribute: `client_key` if `api_key` is absent. No length is as large.
const BORROWED: u64 = u64::MAX - 1;

/// Precedes a client key that is an address, in canonical form.
const ADDRESS: u64 = u64::MAX - 2;

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

/// Matching rules that exempt the request from others.
///
/// Only a rule that applies can exempt: omitting a key part must not bypass the rules that it replaces. `replaces`
/// comes first, and a replaced rule replaces no other; files with a cycle are rejected. Then unlimited rules without
/// `replaces` exempt from all limited rules.
pub(super) struct Exemptions<'a> {
    by: SmallVec<[&'a Rule; 4]>,
}

impl<'a> Exemptions<'a> {
    /// A shadow rule exempts from nothing: it must not change decisions.
    pub(super) fn of(matched: &[&'a Rule], applies: impl Fn(&Rule) -> bool) -> Exemptions<'a> {
        let exempts = |rule: &&&Rule| rule.is_enforced() && (rule.spec.unlimited || !rule.replaces.is_empty());
        Exemptions { by: matched.iter().filter(exempts).filter(|rule| applies(rule)).copied().collect() }
    }

    /// The rule that exempts from `rule`.
    pub(super) fn by(&self, rule: &Rule) -> Option<&'a Rule> {
        let blanket = |by: &&&Rule| by.replaces.is_empty() && !rule.spec.unlimited && self.replaced_by(by).is_none();
        self.replaced_by(rule).or_else(|| self.by.iter().find(blanket).copied())
    }

    fn replaced_by(&self, rule: &Rule) -> Option<&'a Rule> {
        let replaces = |by: &&&Rule| by.replaces.contains(&rule.id) && self.replaced_by(by).is_none();
        self.by.iter().find(replaces).copied()
    }

    pub(super) fn covers(&self, rule: &Rule) -> bool {
        !self.by.is_empty() && self.by(rule).is_some()
    }
}

impl Conditions {
    #[inline]
    pub(super) fn hold(&self, facts: &RequestFacts<'_>) -> bool {
        self.attributes.iter().all(|(id, matcher)| attribute_holds(*id, matcher, facts))
            && self.endpoint.as_ref().is_none_or(|endpoint| endpoint_holds(endpoint, facts))
    }
}

/// An absent attribute matches no condition, not even `*` or a negation.
pub(super) fn attribute_holds(id: AttrId, matcher: &IndexedMatcher, facts: &RequestFacts<'_>) -> bool {
    match id {
        AttrId::IP => facts.ip().is_some_and(|bits| matcher.matches_address(bits)),
        _ => facts.value(id).is_some_and(|value| matcher.matches(value)),
    }
}

pub(super) fn endpoint_holds(matcher: &IndexedEndpoint, facts: &RequestFacts<'_>) -> bool {
    facts.endpoint().is_some_and(|(method, path)| matcher.matches(method, path))
}

impl Rule {
    /// The bucket's digest before sharding; `None` if a key part is missing and the rule skips such requests.
    #[inline]
    pub(super) fn key(&self, facts: &RequestFacts<'_>) -> Option<KeyHasher> {
        let mut hasher = self.hasher;
        for part in &self.key {
            match part_of(part, facts) {
                Some((id, borrowed)) => {
                    if borrowed {
                        hasher.word(BORROWED);
                    }
                    if part.len() > 1 {
                        hasher.word(id.index() as u64);
                    }
                    self.absorb(&mut hasher, id, facts);
                }
                None if self.spec.missing == Missing::Share => hasher.missing(),
                None => return None,
            }
        }
        Some(hasher)
    }

    /// The identity of the bucket's owner: namespace and first part of the key, so that a store can keep all buckets of
    /// one client together. Global rules have the namespace only. Shards of a hot bucket have different identities, so
    /// that they are stored apart.
    pub(super) fn identity(&self, facts: &RequestFacts<'_>, shard: Option<u64>) -> u32 {
        let mut hasher = self.identity;
        if let Some((id, _)) = self.key.first().and_then(|part| part_of(part, facts)) {
            hasher.word(id.index() as u64);
            self.absorb(&mut hasher, id, facts);
        }
        if let Some(shard) = shard {
            hasher.word(shard);
        }
        let [bits, _] = hasher.finish().0;
        bits as u32
    }

    fn absorb(&self, hasher: &mut KeyHasher, id: AttrId, facts: &RequestFacts<'_>) {
        match id {
            AttrId::IP => {
                let key = facts.ip_key().map_or(0, |key| key.bits());
                hasher.part(&key.to_be_bytes());
            }
            AttrId::ENDPOINT => self.absorb_endpoint(hasher, facts),
            AttrId::CLIENT_KEY if let Some(key) = facts.client_ip() => {
                hasher.word(ADDRESS);
                hasher.part(&key.bits().to_be_bytes());
            }
            _ => hasher.part(facts.value(id).unwrap_or_default().as_bytes()),
        }
    }

    /// Absorbs the path, with `{id}` for parameters. The method is absorbed only if the pattern has methods: otherwise
    /// every invented method would have its own bucket.
    fn absorb_endpoint(&self, hasher: &mut KeyHasher, facts: &RequestFacts<'_>) {
        let Some((method, path)) = facts.endpoint() else { return hasher.missing() };
        let pattern = self.conditions.endpoint.as_ref().and_then(|matcher| matcher.pattern_of(method, path));
        match pattern {
            Some(pattern) => {
                match method {
                    Some(method) if !pattern.methods.is_empty() => hasher.part(method.as_bytes()),
                    _ => hasher.missing(),
                }
                let path = pattern.path.template_of(path);
                match pattern.path.case {
                    PathCase::Sensitive => hasher.part(path.as_bytes()),
                    PathCase::Insensitive => hasher.part(LowercasePath::of(&path).as_str().as_bytes()),
                }
            }
            None => {
                hasher.missing();
                hasher.part(path.as_bytes());
            }
        }
    }

    /// A key part for display.
    pub(super) fn key_text(&self, id: AttrId, facts: &RequestFacts<'_>) -> String {
        match id {
            AttrId::IP => facts.ip_key().map(|key| key.to_string()).unwrap_or_default(),
            AttrId::ENDPOINT => {
                let (method, path) = facts.endpoint().unwrap_or((None, ""));
                match self.conditions.endpoint.as_ref().and_then(|matcher| matcher.pattern_of(method, path)) {
                    Some(pattern) => pattern.path.template_of(path).into_owned(),
                    None => path.to_owned(),
                }
            }
            _ => facts.value(id).unwrap_or_default().to_owned(),
        }
    }
}

/// The attribute that fills a key part: the first one present, else the client key (then `true`) if one of them falls
/// back to it.
pub(super) fn part_of(part: &[AttrId], facts: &RequestFacts<'_>) -> Option<(AttrId, bool)> {
    // Among alternatives an empty value counts as absent: an empty header must not hide the next alternative.
    let filled = |id: &&AttrId| present(**id, facts) && (part.len() == 1 || facts.value(**id) != Some(""));
    if let Some(id) = part.iter().find(filled) {
        return Some((*id, false));
    }
    let borrows = part.iter().any(|id| id.falls_back()) && facts.has(AttrId::CLIENT_KEY);
    borrows.then_some((AttrId::CLIENT_KEY, true))
}

fn present(id: AttrId, facts: &RequestFacts<'_>) -> bool {
    match id {
        AttrId::IP => facts.ip().is_some(),
        AttrId::ENDPOINT => facts.endpoint().is_some(),
        _ => facts.has(id),
    }
}
