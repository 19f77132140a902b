//! The index of a namespace in two layers: a large base that generations share, and a small one for rules that changed.

use std::sync::Arc;

use tollgate_rules::spec::Enforcement;

use super::attributes::Attributes;
use super::facts::RequestFacts;
use super::index::{Candidates, Index};
use super::rule::{Rule, RuleId};

/// Not in the base, or no longer in the set.
const NONE: u32 = u32::MAX;

/// The index of one namespace.
#[derive(Debug, Default)]
pub(super) struct LayeredIndex {
    base: Arc<Index>,
    /// Number of each rule in the base.
    places: Vec<u32>,
    /// Index in the namespace of each rule of the base; `None` if nothing moved.
    moved: Option<Vec<u32>>,
    /// Rules that the base does not have.
    recent: Option<Index>,
    /// Number of rules in `recent`.
    changes: usize,
    /// Number of rules in the base.
    numbers: usize,
}

impl LayeredIndex {
    /// Reuses the base of `before`; `places` has the number of each rule in it.
    pub(super) fn new(
        before: Option<&LayeredIndex>,
        rules: &[Rule],
        places: Vec<u32>,
        attributes: &Attributes,
    ) -> LayeredIndex {
        let numbered = rules.iter().zip(0..).filter(|(rule, _)| rule.spec.mode != Enforcement::Off);
        let Some(before) = before else {
            let places =
                rules.iter().zip(0..).map(|(rule, at)| if rule.spec.mode == Enforcement::Off { NONE } else { at });
            let (base, places) = (Arc::new(Index::build(numbered, attributes)), places.collect());
            return LayeredIndex { base, places, numbers: rules.len(), ..LayeredIndex::default() };
        };
        let mut moved = vec![NONE; before.numbers];
        for (place, at) in places.iter().zip(0..) {
            moved.get_mut(*place as usize).into_iter().for_each(|moved| *moved = at);
        }
        let is_recent = |(_, at): &(&Rule, u32)| places.get(*at as usize) == Some(&NONE);
        let recent: Vec<(&Rule, u32)> = numbered.filter(is_recent).collect();
        let changes = recent.len();
        let recent = (changes > 0).then(|| Index::build(recent.into_iter(), attributes));
        LayeredIndex { base: before.base.clone(), places, moved: Some(moved), recent, changes, numbers: before.numbers }
    }

    /// Whether the base should be reused for a set of so many rules.
    pub(super) fn is_worthwhile(&self, rules: usize) -> bool {
        let most = (rules / 32).max(64);
        let gone = self.numbers.saturating_sub(rules);
        self.changes <= most && gone <= most
    }

    pub(super) fn place_of(&self, rule: usize) -> u32 {
        self.places.get(rule).copied().unwrap_or(NONE)
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
