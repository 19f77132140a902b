//! What rules leave to their file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::key::KeyBy;
use crate::spec::{Enforcement, OnFail, RuleFile, RuleSpec};

/// What rules of one source leave unsaid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults<'a> {
    pub(super) namespace: &'a str,
    pub(super) key_by: Option<&'a KeyBy>,
    pub(super) on_fail: Option<OnFail>,
    pub(super) file_name: Option<&'a Arc<str>>,
    /// Modes that hold instead of those of the rules, by name.
    pub(super) modes: Option<&'a BTreeMap<String, Enforcement>>,
}

impl<'a> Defaults<'a> {
    /// Those of a file, for its own rules.
    pub(super) fn of(file: &'a RuleFile) -> Defaults<'a> {
        let (key_by, on_fail, file_name) = (file.key_by.as_ref(), file.on_fail, file.file_name.as_ref());
        Defaults { key_by, on_fail, file_name, ..Defaults::beside(file) }
    }

    /// For rules beside a file, for which its defaults are not meant, but the switches are.
    pub(super) fn beside(file: &'a RuleFile) -> Defaults<'a> {
        Defaults { modes: Some(&file.modes), ..Defaults::none(&file.namespace) }
    }

    /// For rules that say all, or leave it to the defaults of the language.
    pub(super) fn none(namespace: &'a str) -> Defaults<'a> {
        Defaults { namespace, key_by: None, on_fail: None, file_name: None, modes: None }
    }

    /// The rule with its key; shared where it says its key itself.
    pub(super) fn fill(&self, spec: &Arc<RuleSpec>) -> Arc<RuleSpec> {
        match spec.key_by {
            Some(_) => spec.clone(),
            None => Arc::new(RuleSpec { key_by: Some(self.key()), ..RuleSpec::clone(spec) }),
        }
    }

    pub(super) fn key(&self) -> KeyBy {
        self.key_by.cloned().unwrap_or_else(KeyBy::client)
    }

    /// The file that a rule was read from, if it was.
    pub(super) fn file_name(&self, spec: &RuleSpec) -> Option<Arc<str>> {
        self.file_name.filter(|_| spec.at.line > 0).cloned()
    }

    pub(super) fn on_fail(&self, spec: &RuleSpec) -> OnFail {
        spec.on_fail.or(self.on_fail).unwrap_or(OnFail::Local)
    }
}
