//! The rules of one generation, by the numbers that its decisions use.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_analytics::{RuleIndex, Traffic};
use tollgate_core::Limit;
use tollgate_ruleset::{RuleBody, RuleId, RuleSet};

/// Stands for every namespace that has no rules: callers can name any.
const OTHER: &str = "__other__";

/// The rules of one generation.
pub(super) struct GenerationRules {
    pub(super) number: u64,
    rules: Vec<Arc<RuleBody>>,
    /// Their indexes in the traffic, once they decided something.
    indexes: Vec<Option<RuleIndex>>,
    namespaces: HashMap<String, Option<RuleIndex>>,
}

impl GenerationRules {
    pub(super) fn new(number: u64, rules: &RuleSet) -> GenerationRules {
        let rules: Vec<Arc<RuleBody>> = rules.rules().iter().map(|rule| rule.body().clone()).collect();
        let mut namespaces: HashMap<String, Option<RuleIndex>> =
            rules.iter().map(|rule| (rule.namespace.clone(), None)).collect();
        namespaces.entry("default".to_owned()).or_default();
        GenerationRules { number, indexes: vec![None; rules.len()], rules, namespaces }
    }

    /// No rules.
    pub(super) fn none() -> GenerationRules {
        GenerationRules::new(0, &RuleSet::empty())
    }

    /// The rule of a namespace by its name.
    pub(super) fn named(&self, namespace: &str, name: &str) -> Option<&Arc<RuleBody>> {
        self.rules.iter().find(|rule| rule.namespace == namespace && rule.name == name)
    }

    /// The index of a rule in the traffic.
    pub(super) fn index(&mut self, id: RuleId, traffic: &mut Traffic) -> Option<RuleIndex> {
        let place = id.0 as usize;
        let (rule, index) = (self.rules.get(place)?, self.indexes.get_mut(place)?);
        Some(*index.get_or_insert_with(|| traffic.rule(&rule.namespace, &rule.name)))
    }

    /// The index of a namespace as a whole.
    pub(super) fn namespace(&mut self, name: &str, traffic: &mut Traffic) -> RuleIndex {
        match self.namespaces.get_mut(name) {
            Some(index) => *index.get_or_insert_with(|| traffic.rule(name, "")),
            None => traffic.rule(OTHER, ""),
        }
    }

    /// True if there is such a rule, or such a namespace.
    pub(super) fn has(&self, namespace: &str, rule: &str) -> bool {
        namespace == OTHER
            || (rule.is_empty() && self.namespaces.contains_key(namespace))
            || self.named(namespace, rule).is_some()
    }

    /// Forgets the indexes, which are no longer valid.
    pub(super) fn forget_indexes(&mut self) {
        self.indexes.fill(None);
        self.namespaces.values_mut().for_each(|index| *index = None);
    }
}

/// The units per window of a rule as written.
pub(super) fn own_limit(rule: &RuleBody) -> Option<u64> {
    rule.limit.as_ref().map(Limit::requests)
}
