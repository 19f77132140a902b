//! What a rule does about its limit: the small choices.

use std::fmt;

/// Whether a rule is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// It denies.
    #[default]
    Enforce,
    /// It decides and is counted, and never denies.
    Shadow,
    /// It is not looked at.
    Off,
}

/// How the buckets of a rule are shared by nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// One decision in the store each.
    #[default]
    Exact,
    /// Tokens taken in advance, spent in memory.
    Leased,
    /// Decided locally, counted behind.
    Async,
    /// A static share per node.
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

/// What happens when the store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFail {
    /// Requests pass.
    Allow,
    /// Requests are refused.
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

/// What happens to requests that lack a key part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missing {
    /// The rule does not apply.
    #[default]
    Skip,
    /// They all share one bucket.
    Share,
}

/// Admission above the limit with falling probability.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SoftSpec {
    /// The excess at which nothing passes any more, in percent of the limit (1 to 1000).
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
    /// That many tokens.
    Tokens(u64),
    /// What that many seconds are expected to need.
    Seconds(u64),
}
