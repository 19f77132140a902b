//! One decision, as it is handed over.

use tollgate_core::{Outcome, Span, Time};

use crate::rule_index::RuleIndex;

/// A decision about one request.
#[derive(Clone, Copy, Debug)]
pub struct DecisionSample<'a> {
    /// The id of the decision.
    pub id: u64,
    /// When it was made, by the wall clock.
    pub at: Time,
    /// The namespace of the request.
    pub namespace: &'a str,
    /// The client.
    pub client: &'a str,
    /// A digest of the client under a secret.
    pub key: u64,
    /// Whether the request may pass.
    pub is_allowed: bool,
    /// Units that were asked for.
    pub cost: u64,
    /// What decided.
    pub mode: &'static str,
    /// The generation of rules.
    pub generation: u64,
    /// The ruling that decided, among these.
    pub deciding: Option<usize>,
    /// The rulings of the rules that applied.
    pub rulings: &'a [RulingSample],
}

/// What one rule made of a request.
#[derive(Clone, Copy, Debug)]
pub struct RulingSample {
    /// The rule.
    pub rule: RuleIndex,
    /// Whether a refusal denies the request.
    pub is_enforced: bool,
    /// Whether it refused.
    pub is_refused: bool,
    /// What decided.
    pub mode: &'static str,
    /// The outcome of its bucket.
    pub outcome: Option<Outcome>,
    /// Units per window of the limit that applied.
    pub requests: u64,
    /// The window of that limit.
    pub window: Span,
}
