//! Input of the compiler, and the defaults of its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate_core::Secret;
use tollgate_rules::envoy::EnvoyDomain;
use tollgate_rules::key::KeyBy;
use tollgate_rules::spec::{Enforcement, OnFail, RuleFile, RuleSpec};

use crate::directory::Directory;

/// Options of the compiler.
#[derive(Clone, Copy, Debug)]
pub struct CompileOptions {
    /// The key of all digests; nodes that share buckets must share it.
    pub secret: Secret,
    /// Seed of soft limits, so that deployments differ.
    pub seed: u64,
}

impl CompileOptions {
    /// Fixed options, for tests and for tools without stored state.
    pub fn reproducible() -> CompileOptions {
        CompileOptions { secret: Secret::new(*b"tollgate testing"), seed: 0 }
    }
}

/// Rules and directories of one namespace.
#[derive(Clone, Copy, Debug)]
pub struct NamespaceRules<'a> {
    /// The file: its rules, and its clients and overrides, which are looked up first.
    pub file: &'a RuleFile,
    /// Further rules, sorted by name; the defaults of the file do not apply. Rules shared with the previous set are not
    /// compiled again.
    pub rules: &'a [Arc<RuleSpec>],
    /// Further clients and overrides, in order of precedence.
    pub directories: &'a [Directory],
}

/// A domain of Envoy files and its directories.
#[derive(Clone, Copy, Debug)]
pub struct DomainRules<'a> {
    /// The domain.
    pub domain: &'a EnvoyDomain,
    /// Overrides of its rules, in order of precedence.
    pub directories: &'a [Directory],
    /// Modes set by an operator, by name of the rule; they replace those of the file.
    pub modes: &'a BTreeMap<String, Enforcement>,
}

/// Defaults for the rules of one source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults<'a> {
    pub(super) namespace: &'a str,
    pub(super) key_by: Option<&'a KeyBy>,
    pub(super) on_fail: Option<OnFail>,
    pub(super) file_name: Option<&'a Arc<str>>,
    /// Modes set by an operator, by name of the rule.
    pub(super) modes: Option<&'a BTreeMap<String, Enforcement>>,
}

impl<'a> Defaults<'a> {
    /// Defaults for the rules of a file.
    pub(super) fn of(file: &'a RuleFile) -> Defaults<'a> {
        let (key_by, on_fail, file_name) = (file.key_by.as_ref(), file.on_fail, file.file_name.as_ref());
        Defaults { key_by, on_fail, file_name, ..Defaults::beside(file) }
    }

    /// For rules from another source in the namespace of a file: its defaults do not apply, the operator's modes do.
    pub(super) fn beside(file: &'a RuleFile) -> Defaults<'a> {
        Defaults { modes: Some(&file.modes), ..Defaults::none(&file.namespace) }
    }

    /// Defaults of the language only.
    pub(super) fn none(namespace: &'a str) -> Defaults<'a> {
        Defaults { namespace, key_by: None, on_fail: None, file_name: None, modes: None }
    }

    /// The rule with `key_by` set; shared if it has one.
    pub(super) fn fill(&self, spec: &Arc<RuleSpec>) -> Arc<RuleSpec> {
        match spec.key_by {
            Some(_) => spec.clone(),
            None => Arc::new(RuleSpec { key_by: Some(self.key()), ..RuleSpec::clone(spec) }),
        }
    }

    pub(super) fn key(&self) -> KeyBy {
        self.key_by.cloned().unwrap_or_else(KeyBy::client)
    }

    /// The file that a rule was read from, if any.
    pub(super) fn file_name(&self, spec: &RuleSpec) -> Option<Arc<str>> {
        self.file_name.filter(|_| spec.at.line > 0).cloned()
    }

    pub(super) fn on_fail(&self, spec: &RuleSpec) -> OnFail {
        spec.on_fail.or(self.on_fail).unwrap_or(OnFail::Local)
    }
}
