//! What is found.

use tollgate_analytics::{RecentDecision, Traffic, TrafficCounts};
use tollgate_core::{Outcome, Span, Time};
use tollgate_engine::DecisionId;

use super::generation_rules::{GenerationRules, own_limit};
use super::question::DecisionPlace;

/// A decision, with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDecision {
    /// Its id.
    pub id: DecisionId,
    /// The node that made it.
    pub node: String,
    /// Its number at that node.
    pub sequence: u64,
    /// When it was made.
    pub at: Time,
    /// The namespace.
    pub namespace: String,
    /// The client, in plain text.
    pub client: String,
    /// Whether the request may pass.
    pub is_allowed: bool,
    /// Units that were asked for.
    pub cost: u64,
    /// What decided.
    pub mode: &'static str,
    /// The generation of rules.
    pub generation: u64,
    /// The rulings that were kept, the deciding one first.
    pub rulings: Vec<FoundRuling>,
}

/// A ruling, with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRuling {
    /// The name of the rule.
    pub rule: String,
    /// The plan that the rule comes from.
    pub plan: Option<String>,
    /// Whether a refusal denies the request.
    pub is_enforced: bool,
    /// Whether it refused.
    pub is_refused: bool,
    /// Whether it decided.
    pub is_deciding: bool,
    /// What decided.
    pub mode: &'static str,
    /// The outcome of its bucket.
    pub outcome: Option<Outcome>,
    /// Units per window of the limit that applied.
    pub requests: u64,
    /// The window of that limit.
    pub window: Span,
    /// Units per window of the rule itself, if it is in force: another number than `requests` is that of an override.
    pub rule_requests: Option<u64>,
    /// Since when the rule refuses the client.
    pub limited_since: Option<Time>,
}

/// The counts of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTotals {
    /// The namespace.
    pub namespace: String,
    /// The rule; empty for the namespace as a whole.
    pub rule: String,
    /// What was counted.
    pub counts: TrafficCounts,
}

impl FoundDecision {
    /// Its place in the order of decisions.
    pub fn place(&self) -> DecisionPlace {
        DecisionPlace { at: self.at, sequence: self.sequence, node: self.node.clone() }
    }
}

/// A decision, with names.
pub(super) fn found(
    decision: &RecentDecision,
    traffic: &Traffic,
    generation: &GenerationRules,
    node: &str,
) -> FoundDecision {
    let rulings = decision.rulings.iter().map(|ruling| {
        let (namespace, rule) = traffic.name(ruling.rule);
        let body = generation.named(namespace, rule);
        FoundRuling {
            rule: rule.to_owned(),
            plan: body.and_then(|body| body.spec.plan.as_ref()).map(|origin| origin.plan.clone()),
            is_enforced: ruling.is_enforced,
            is_refused: ruling.is_refused,
            is_deciding: ruling.is_deciding,
            mode: ruling.mode,
            outcome: ruling.outcome,
            requests: ruling.requests,
            window: ruling.window,
            rule_requests: body.and_then(|body| own_limit(body)),
            limited_since: ruling.limited_since,
        }
    });
    FoundDecision {
        id: DecisionId(decision.id),
        node: node.to_owned(),
        sequence: decision.sequence,
        at: decision.at,
        namespace: traffic.name(decision.namespace).0.to_owned(),
        client: decision.client.to_string(),
        is_allowed: decision.is_allowed,
        cost: decision.cost,
        mode: decision.mode,
        generation: decision.generation,
        rulings: rulings.collect(),
    }
}
