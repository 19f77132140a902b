//! What such a file says, as plain data: valid by itself, nothing compiled.

use std::sync::Arc;

use super::{Metadata, Unit};
use crate::position::SourcePosition;

/// One domain: what one file says, or several of them together.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvoyDomain {
    /// Its name, which requests carry.
    pub name: String,
    /// Where it is named.
    pub at: SourcePosition,
    /// The first level of the tree, in the order of the file.
    pub descriptors: Vec<EnvoyDescriptor>,
}

/// A node of the tree: which entry it is for, and what holds there.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvoyDescriptor {
    /// Where it stands.
    pub at: SourcePosition,
    /// Name of the file that it stands in, if several files were read.
    pub file_name: Option<Arc<str>>,
    /// The entry's key; never empty. May contain `*`.
    pub key: String,
    /// The entry's value, if it matters; never empty. May contain `*`.
    pub value: Option<String>,
    /// What is allowed to descriptors that end here.
    pub rate_limit: Option<RateLimit>,
    /// It is counted and reported, and never refuses.
    pub shadow_mode: bool,
    /// It refuses only together with all others of this kind.
    pub quota_mode: bool,
    /// Its statistics go by all values of the request.
    pub detailed_metric: bool,
    /// Its statistics go by the request's value at this level.
    pub value_to_metric: bool,
    /// All values that its pattern matches share one counter.
    pub share_threshold: bool,
    /// Goes along with the answer when the request passes.
    pub metadata: Option<Metadata>,
    /// The next level.
    pub descriptors: Vec<EnvoyDescriptor>,
}

/// The limit of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// How much.
    pub allowance: Allowance,
    /// What callers are told, and by what others replace it.
    pub name: Option<String>,
    /// Names of limits that do not count where this one is found in the same request.
    pub replaces: Vec<String>,
}

/// How much is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// Anything; nothing is counted.
    Unlimited,
    /// So much per unit of time.
    Limited {
        /// Requests per unit; 0 refuses everything.
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
