//! Finds unchanged rules of the previous set, which the next one shares.

use std::sync::Arc;

use tollgate_rules::spec::{OnFail, RuleSpec};

use super::attributes::Attributes;
use super::input::CompileOptions;
use super::layers::LayeredIndex;
use super::rule::{Rule, RuleBody};
use super::{CompiledNamespace, RuleSet};

/// A namespace of the previous set.
pub(super) struct PreviousNamespace<'a> {
    namespace: Option<&'a CompiledNamespace>,
    rules: &'a [Rule],
    /// Index of the next rule among those sorted by name.
    next: usize,
}

/// A rule to share, and its number in the index.
type ReusedRule = (Arc<RuleBody>, u32);

impl<'a> PreviousNamespace<'a> {
    /// Empty if secret or seed differ, or if so much changed that the index should be rebuilt, which also drops
    /// attributes that no rule uses any more.
    pub(super) fn of(
        previous: Option<&'a RuleSet>,
        name: &str,
        options: &CompileOptions,
        rules: usize,
    ) -> PreviousNamespace<'a> {
        let previous = previous.filter(|set| set.secret == options.secret && set.seed == options.seed);
        let found = previous.and_then(|set| Some((set, set.namespaces.get(name)?)));
        let found = found.filter(|(_, namespace)| namespace.domain.is_none() && namespace.index.is_worthwhile(rules));
        match found {
            Some((set, namespace)) => PreviousNamespace {
                namespace: Some(namespace),
                rules: set.rules.get(namespace.rules.clone()).unwrap_or_default(),
                next: namespace.own,
            },
            None => PreviousNamespace { namespace: None, rules: &[], next: 0 },
        }
    }

    /// The attributes to continue with; numbers stay the same.
    pub(super) fn attributes(&self) -> Attributes {
        self.namespace.map_or_else(Attributes::new, |namespace| namespace.attributes.clone())
    }

    pub(super) fn index(&self) -> Option<&'a LayeredIndex> {
        self.namespace.map(|namespace| &namespace.index)
    }

    /// The equal rule at the same index of the file.
    pub(super) fn at(&self, place: usize, spec: &RuleSpec, on_fail: OnFail) -> Option<ReusedRule> {
        let own = self.namespace.map_or(0, |namespace| namespace.own);
        let rule = self.rules.get(place).filter(|_| place < own)?;
        (*rule.spec == *spec && rule.on_fail == on_fail).then(|| self.known(place, rule))
    }

    /// The rule with the same shared spec. Must be called in the order of names.
    pub(super) fn named(&mut self, spec: &Arc<RuleSpec>) -> Option<ReusedRule> {
        while let Some(rule) = self.rules.get(self.next) {
            if Arc::ptr_eq(&rule.spec, spec) {
                self.next += 1;
                return Some(self.known(self.next - 1, rule));
            }
            if Some(rule.name.as_str()) >= spec.name.as_deref() {
                return None;
            }
            self.next += 1;
        }
        None
    }

    fn known(&self, place: usize, rule: &Rule) -> ReusedRule {
        (rule.body.clone(), self.namespace.map_or(u32::MAX, |namespace| namespace.index.place_of(place)))
    }
}
