//! A domain of envoyproxy/ratelimit as plain data, validated and not compiled.

use std::sync::Arc;

use super::{Metadata, Unit};
use crate::position::SourcePosition;

/// One domain, from one file or several.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvoyDomain {
    /// Its name, which requests contain.
    pub name: String,
    /// Position of the name.
    pub at: SourcePosition,
    /// The first level of the tree, in file order.
    pub descriptors: Vec<EnvoyDescriptor>,
}

/// A node of the tree: the entry that it matches, and its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvoyDescriptor {
    /// Its position.
    pub at: SourcePosition,
    /// Name of its file, if several files were read.
    pub file_name: Option<Arc<str>>,
    /// The entry's key; never empty. May contain `*`.
    pub key: String,
    /// The entry's value; `None` matches any. Never empty; may contain `*`.
    pub value: Option<String>,
    /// The limit of descriptors that end here.
    pub rate_limit: Option<RateLimit>,
    /// It is counted and reported, and never denies.
    pub shadow_mode: bool,
    /// It denies only together with all other quotas of the request.
    pub quota_mode: bool,
    /// Its statistics are named after all values of the request.
    pub detailed_metric: bool,
    /// Its statistics are named after the request's value at this level.
    pub value_to_metric: bool,
    /// All values that its pattern matches share one counter.
    pub share_threshold: bool,
    /// Returned with the response if the request is allowed.
    pub metadata: Option<Metadata>,
    /// The next level.
    pub descriptors: Vec<EnvoyDescriptor>,
}

/// The limit of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The amount.
    pub allowance: Allowance,
    /// Name that callers see, and that `replaces` of other limits refers to.
    pub name: Option<String>,
    /// Names of limits that are not charged if this one applies to the same request.
    pub replaces: Vec<String>,
}

/// How much is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// No limit; nothing is counted.
    Unlimited,
    /// A number per unit of time.
    Limited {
        /// Requests per unit; 0 denies every request.
        requests_per_unit: u32,
        /// The unit.
        unit: Unit,
    },
}

impl EnvoyDescriptor {
    /// Whether its key or value is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.key.contains('*') || self.value.as_ref().is_some_and(|value| value.contains('*'))
    }
}
