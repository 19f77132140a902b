//! The number of a rule.

/// A rule, or a namespace as a whole, in [`Traffic`](crate::Traffic).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleIndex(pub(crate) u32);

impl RuleIndex {
    /// An index that no rule has.
    pub const NONE: RuleIndex = RuleIndex(u32::MAX);
}
