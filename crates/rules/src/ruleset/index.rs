//! Finds the rules that may match, without looking at those that cannot.
//!
//! Every rule is filed once, under the one of its conditions that the fewest other rules share: an exact value, a
//! prefix, a network, a route. A request asks only for what it carries. What is found is a candidate; all of a rule's
//! conditions are checked afterwards, so the index may be generous but never forgetful.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::attributes::AttrId;
use super::facts::Facts;
use super::routes::Routes;
use super::rule::{Conditions, Rule, RuleId};
use crate::endpoint::EndpointPattern;
use crate::pattern::{Matcher, Pattern};
use crate::quick::QuickMap;
use crate::route::Tail;

/// Rules by what they ask for.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Rules that ask for nothing.
    always: Vec<RuleId>,
    attributes: Vec<Shelf>,
    routes: Option<Routes>,
}

/// Rules filed under one attribute.
#[derive(Debug)]
struct Shelf {
    id: AttrId,
    exact: QuickMap<String, Vec<RuleId>>,
    /// By length: a value is cut to each length that occurs, and looked up.
    prefixes: Vec<(usize, QuickMap<String, Vec<RuleId>>)>,
    networks: Vec<(u8, QuickMap<u128, Vec<RuleId>>)>,
    /// Rules content with any value, or with a form that cannot be looked up.
    present: Vec<RuleId>,
}

/// Candidates in the order of the rules, each once.
pub(super) type Candidates = SmallVec<[RuleId; 32]>;

impl Index {
    pub(super) fn build<'a>(rules: impl Iterator<Item = &'a Rule> + Clone) -> Index {
        let census = Census::of(rules.clone());
        let mut index = Index::default();
        for rule in rules {
            index.file(rule, &census);
        }
        index
    }

    #[inline]
    pub(super) fn find(&self, facts: &Facts<'_>, found: &mut Candidates) {
        add(found, &self.always);
        for shelf in &self.attributes {
            shelf.find(facts, found);
        }
        if let (Some(routes), Some((_, path))) = (&self.routes, facts.endpoint()) {
            routes.find(path, found);
        }
        if found.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
    }

    fn file(&mut self, rule: &Rule, census: &Census) {
        let endpoint = rule.conditions.endpoint.as_ref();
        let by_attribute = rule.conditions.attributes.iter().min_by_key(|(id, matcher)| census.sharers(*id, matcher));
        let by_route = endpoint.map(|endpoint| census.route_sharers(&endpoint.any));
        match (by_attribute, by_route) {
            (Some((id, matcher)), route) if route.is_none_or(|route| census.sharers(*id, matcher) <= route) => {
                self.shelf(*id).file(matcher, rule.id);
            }
            (_, Some(_)) => {
                let patterns = endpoint.map(|endpoint| endpoint.any.as_slice()).unwrap_or_default();
                self.routes.get_or_insert_default().file(patterns, rule.id);
            }
            _ => self.always.push(rule.id),
        }
    }

    fn shelf(&mut self, id: AttrId) -> &mut Shelf {
        let place = match self.attributes.iter().position(|shelf| shelf.id == id) {
            Some(place) => place,
            None => {
                self.attributes.push(Shelf::new(id));
                self.attributes.len() - 1
            }
        };
        #[expect(clippy::indexing_slicing, reason = "the place was just found or made")]
        &mut self.attributes[place]
    }
}

/// Adds the rules of one place; most places have none, or one.
#[inline]
pub(super) fn add(found: &mut Candidates, rules: &[RuleId]) {
    for rule in rules {
        found.push(*rule);
    }
}

impl Shelf {
    fn new(id: AttrId) -> Shelf {
        Shelf { id, exact: QuickMap::default(), prefixes: Vec::new(), networks: Vec::new(), present: Vec::new() }
    }

    fn file(&mut self, matcher: &Matcher, rule: RuleId) {
        if matcher.any.is_empty() {
            self.present.push(rule);
        }
        for pattern in &matcher.any {
            match pattern {
                Pattern::Exact(value) => self.exact.entry(value.clone()).or_default().push(rule),
                Pattern::Prefix(prefix) => {
                    drawer(&mut self.prefixes, prefix.len()).entry(prefix.clone()).or_default().push(rule);
                }
                Pattern::Cidr(cidr) => {
                    drawer(&mut self.networks, cidr.prefix_len).entry(cidr.addr).or_default().push(rule);
                }
                Pattern::Glob(glob) if !glob.prefix.is_empty() => {
                    drawer(&mut self.prefixes, glob.prefix.len()).entry(glob.prefix.clone()).or_default().push(rule);
                }
                Pattern::Glob(_) | Pattern::Any => self.present.push(rule),
            }
        }
    }

    #[inline]
    fn find(&self, facts: &Facts<'_>, found: &mut Candidates) {
        if self.id == AttrId::IP {
            return self.find_address(facts, found);
        }
        let Some(value) = facts.value(self.id) else { return };
        add(found, &self.present);
        if !self.exact.is_empty()
            && let Some(rules) = self.exact.get(value)
        {
            add(found, rules);
        }
        for (length, prefixes) in &self.prefixes {
            if let Some(rules) = value.get(..*length).and_then(|prefix| prefixes.get(prefix)) {
                add(found, rules);
            }
        }
    }

    fn find_address(&self, facts: &Facts<'_>, found: &mut Candidates) {
        let Some(bits) = facts.ip() else { return };
        add(found, &self.present);
        for (length, networks) in &self.networks {
            let mask = u128::MAX.checked_shl(128 - u32::from(*length)).unwrap_or(0);
            if let Some(rules) = networks.get(&(bits & mask)) {
                add(found, rules);
            }
        }
    }
}

fn drawer<L: PartialEq, K>(
    drawers: &mut Vec<(L, QuickMap<K, Vec<RuleId>>)>,
    length: L,
) -> &mut QuickMap<K, Vec<RuleId>> {
    let place = match drawers.iter().position(|(other, _)| *other == length) {
        Some(place) => place,
        None => {
            drawers.push((length, QuickMap::default()));
            drawers.len() - 1
        }
    };
    #[expect(clippy::indexing_slicing, reason = "the place was just found or made")]
    &mut drawers[place].1
}

/// How many rules ask for the same thing: what makes a condition worth filing under.
#[derive(Default)]
struct Census<'a> {
    patterns: HashMap<(AttrId, &'a Pattern), usize>,
    routes: HashMap<&'a str, usize>,
    rules: usize,
}

impl<'a> Census<'a> {
    fn of(rules: impl Iterator<Item = &'a Rule>) -> Census<'a> {
        let mut census = Census::default();
        for rule in rules {
            let Conditions { attributes, endpoint } = &rule.conditions;
            census.rules += 1;
            for (id, matcher) in attributes {
                for pattern in &matcher.any {
                    *census.patterns.entry((*id, pattern)).or_default() += 1;
                }
            }
            for pattern in endpoint.iter().flat_map(|endpoint| &endpoint.any) {
                *census.routes.entry(pattern.path.as_str()).or_default() += 1;
            }
        }
        census
    }

    /// Rules found along with one filed here. What cannot be looked up is found by everybody.
    fn sharers(&self, id: AttrId, matcher: &Matcher) -> usize {
        let shared = |pattern: &Pattern| match pattern {
            Pattern::Glob(glob) if glob.prefix.is_empty() => self.rules,
            Pattern::Any => self.rules,
            pattern => self.patterns.get(&(id, pattern)).copied().unwrap_or(1),
        };
        matcher.any.iter().map(shared).max().unwrap_or(self.rules)
    }

    fn route_sharers(&self, patterns: &[EndpointPattern]) -> usize {
        let shared =
            |pattern: &EndpointPattern| match pattern.path.segments.is_empty() && pattern.path.tail != Tail::End {
                true => self.rules,
                false => self.routes.get(pattern.path.as_str()).copied().unwrap_or(1),
            };
        patterns.iter().map(shared).max().unwrap_or(self.rules)
    }
}
