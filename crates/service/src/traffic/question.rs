//! The questions that operators ask about traffic, in a form that every node of a fleet can answer.

use std::collections::BTreeMap;

use tollgate_analytics::{ClientCounts, Resolution};
use tollgate_core::Time;
use tollgate_engine::DecisionId;

/// The namespaces that a caller may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficScope {
    /// `None` for all.
    pub namespaces: Option<Vec<String>>,
}

/// A question. Clients are meant by their key, or by the digest that is shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficQuestion {
    /// What happens now.
    Overview {
        /// What totals cover.
        seconds: usize,
    },
    /// Counts over time: of all namespaces, of one rule, or of a client.
    Series(SeriesQuestion),
    /// The clients of rules, for rankings.
    Clients {
        /// By what.
        counts: ClientCounts,
        /// Of this rule.
        rule: Option<String>,
    },
    /// Recent decisions.
    Decisions(DecisionQuestion),
    /// One decision.
    Decision(DecisionId),
    /// What happened since the last time: by node, the number of its last decision that is known.
    Events(BTreeMap<u64, u64>),
}

/// Which counts over time are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesQuestion {
    /// Of this rule.
    pub rule: Option<String>,
    /// Of this client.
    pub client: Option<String>,
    /// In steps of this length.
    pub resolution: Resolution,
    /// So many of them.
    pub steps: usize,
}

/// Which decisions are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionQuestion {
    /// Of this client.
    pub client: Option<String>,
    /// That this rule took part in.
    pub rule: Option<String>,
    /// Only those that were allowed, or only the others.
    pub is_allowed: Option<bool>,
    /// Before the one at this place.
    pub before: Option<DecisionPlace>,
    /// At most so many.
    pub most: usize,
}

/// The place of a decision in the order of all decisions of a fleet: by time, then by the order in which its node
/// recorded it, then by node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecisionPlace {
    /// When it was made.
    pub at: Time,
    /// Its number at its node.
    pub sequence: u64,
    /// The node.
    pub node: String,
}

impl TrafficScope {
    pub(super) fn has(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.iter().any(|name| name == namespace))
    }
}

impl DecisionPlace {
    /// The first place at a node that is not before this one.
    pub(super) fn bound_at(&self, node: &str) -> (Time, u64) {
        let is_before = node < self.node.as_str();
        (self.at, self.sequence.saturating_add(u64::from(is_before)))
    }
}
