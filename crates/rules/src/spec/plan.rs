//! Plans: named sets of rules that clients and organisations are assigned to.

use super::RuleSpec;
use crate::position::SourcePosition;

/// The attribute that holds the plan of a request.
pub const PLAN: &str = "plan";

/// A named set of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanSpec {
    /// Its name.
    pub name: String,
    /// The position of its name in the file.
    pub at: SourcePosition,
    /// Free text.
    pub description: Option<String>,
    /// The plan whose rules it has too, unless it has one of the same name.
    pub extends: Option<String>,
    /// The plan of clients without one.
    pub is_default: bool,
    /// Its own rules; every one has a name.
    pub limits: Vec<RuleSpec>,
}

/// The plan that a rule comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOrigin {
    /// The plan that contains the rule; plans that extend it may have the rule too.
    pub plan: String,
    /// The name of the rule within its plan. It identifies buckets, so that a client keeps its usage when the plan
    /// changes.
    pub name: String,
}
