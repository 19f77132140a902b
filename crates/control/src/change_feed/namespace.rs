//! The loaded rules and clients of one namespace.

use std::sync::Arc;

use tollgate_rules::{RuleFile, RuleSpec};
use tollgate_ruleset::Directory;

/// The content of one namespace.
#[derive(Clone, Debug)]
pub struct LoadedNamespace {
    /// Its settings and plans, without rules, clients and overrides.
    pub settings: Arc<RuleFile>,
    /// Its rules and those of its plans, sorted by id; disabled rules have the mode off. Unchanged rules are shared with the previous
    /// generation, so that they are not compiled again.
    pub rules: Arc<Vec<Arc<RuleSpec>>>,
    /// Some rule replaces others by name: rules cannot be validated one by one.
    pub(super) has_replaces: bool,
    /// Clients and overrides.
    pub directory: Directory,
}

impl LoadedNamespace {
    /// The rules that `before` does not share: new and changed ones.
    pub(super) fn changed_since<'a>(
        &'a self,
        before: Option<&'a LoadedNamespace>,
    ) -> impl Iterator<Item = &'a RuleSpec> {
        let mut before = before.map_or(&[][..], |before| &before.rules[..]).iter().peekable();
        let is_changed = move |rule: &&Arc<RuleSpec>| {
            while before.next_if(|old| name_of(old) < name_of(rule)).is_some() {}
            before.next_if(|old| Arc::ptr_eq(old, rule)).is_none()
        };
        self.rules.iter().filter(is_changed).map(|rule| &**rule)
    }

    /// Shares equal rules with the previous state, so that they are not compiled again.
    pub(super) fn share_unchanged(&mut self, before: &[Arc<RuleSpec>]) {
        let rules = Arc::make_mut(&mut self.rules);
        let mut before = before.iter().peekable();
        for rule in rules {
            while before.next_if(|old| name_of(old) < name_of(rule)).is_some() {}
            if let Some(old) = before.next_if(|old| name_of(old) == name_of(rule)).filter(|old| *old == rule) {
                *rule = old.clone();
            }
        }
    }
}

pub(super) fn name_of(rule: &RuleSpec) -> &str {
    rule.name.as_deref().unwrap_or_default()
}
