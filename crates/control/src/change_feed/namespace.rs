//! The loaded rules and clients of one namespace.

use std::sync::Arc;

use tollgate_rules::{RuleFile, RuleSpec};
use tollgate_ruleset::Directory;

/// The content of one namespace.
#[derive(Clone, Debug)]
pub struct LoadedNamespace {
    /// Its settings, without rules, clients and overrides.
    pub settings: Arc<RuleFile>,
    /// Its rules, sorted by id; disabled rules have the mode off. Unchanged rules are shared with the previous
    /// generation, so that they are not compiled again.
    pub rules: Arc<Vec<Arc<RuleSpec>>>,
    /// Some rule replaces others by name: rules cannot be validated one by one.
    pub(super) has_replaces: bool,
    /// Clients and overrides.
    pub directory: Directory,
}

impl LoadedNamespace {
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
