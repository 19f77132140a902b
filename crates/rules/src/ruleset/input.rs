//! What a set of rules is compiled from.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate_core::Secret;

use crate::directory::Directory;
use crate::envoy::EnvoyDomain;
use crate::spec::{Enforcement, RuleFile, RuleSpec};

/// What compiling needs besides the files.
#[derive(Clone, Copy, Debug)]
pub struct CompileOptions {
    /// The key of all digests. Nodes that share buckets share it.
    pub secret: Secret,
    /// Makes the lots of soft limits differ between deployments.
    pub seed: u64,
}

impl CompileOptions {
    /// Fixed options, for tests and for tools that keep nothing.
    pub fn for_test() -> CompileOptions {
        CompileOptions { secret: Secret::new(*b"tollgate testing"), seed: 0 }
    }
}

/// The rules of one namespace, and who is looked up where.
#[derive(Clone, Copy, Debug)]
pub struct NamespaceRules<'a> {
    /// Its rules, and clients and overrides of its own, which come first.
    pub file: &'a RuleFile,
    /// Further rules, sorted by name; the defaults of the file are not meant for them. Those that are shared with the
    /// set before are not compiled again.
    pub rules: &'a [Arc<RuleSpec>],
    /// Further clients and overrides, in the order in which they are asked about one identity.
    pub directories: &'a [Directory],
}

/// A domain of Envoy's files, and who is looked up where.
#[derive(Clone, Copy, Debug)]
pub struct DomainRules<'a> {
    /// The domain.
    pub domain: &'a EnvoyDomain,
    /// Overrides of its rules, in the order in which they are asked about one identity.
    pub directories: &'a [Directory],
    /// Modes that hold instead of those of the file, by the name of the rule.
    pub modes: &'a BTreeMap<String, Enforcement>,
}
