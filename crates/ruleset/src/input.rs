//! Input of the compiler.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate_core::Secret;
use tollgate_rules::envoy::EnvoyDomain;
use tollgate_rules::spec::{Enforcement, RuleFile, RuleSpec};

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
    pub fn for_test() -> CompileOptions {
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
