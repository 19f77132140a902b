//! Policies of a rule: enforcement, consistency, failure, missing keys, soft limits, leases.

use std::fmt;

/// How nodes share the buckets of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Each request is decided in the store.
    #[default]
    Exact,
    /// A node takes tokens in advance and spends them in memory.
    Leased,
    /// A node decides in memory and reports usage to the store afterwards.
    Async,
    /// Each node enforces a fixed share.
    Local,
}

impl Consistency {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Leased => "leased",
            Self::Async => "async",
            Self::Local => "local",
        }
    }
}

/// Failure policy while the store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFail {
    /// Requests pass.
    Allow,
    /// Requests are denied.
    Deny,
    /// Each node enforces its share.
    Local,
}

impl OnFail {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Local => "local",
        }
    }
}

/// How requests without a key part are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missing {
    /// The rule does not apply.
    #[default]
    Skip,
    /// They share one bucket.
    Share,
}

/// Admission above the limit with falling probability.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SoftSpec {
    /// The excess at which every request is denied, in percent of the limit (1 to 1000).
    pub percent: u32,
}

/// `Soft`, its name in earlier versions: fingerprints of rules are digests of this text, and nodes of several versions
/// compare them.
impl fmt::Debug for SoftSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Soft").field("percent", &self.percent).finish()
    }
}

/// Size of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseSpec {
    /// A number of tokens.
    Tokens(u64),
    /// Tokens for the expected usage of so many seconds.
    Seconds(u64),
}
