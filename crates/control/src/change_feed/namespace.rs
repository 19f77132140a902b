//! The rules and clients of one namespace, as they were read.

use std::sync::Arc;

use tollgate_rules::{Directory, RuleFile, RuleSpec};

/// What the database says of one namespace.
#[derive(Clone, Debug)]
pub struct LoadedNamespace {
    /// Its settings; rules, clients and overrides are elsewhere.
    pub settings: Arc<RuleFile>,
    /// Its rules in the order of their ids; disabled ones are off. Those that did not change are shared with the
    /// generation before, so that they need not be compiled again.
    pub rules: Arc<Vec<Arc<RuleSpec>>>,
    /// Some rule replaces others by name: no rule can be judged alone.
    pub(super) has_replaces: bool,
    /// What is known of clients, and what is different for them.
    pub directory: Directory,
}

impl LoadedNamespace {
    /// Shares rules that say the same as before, which need not be compiled again.
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
