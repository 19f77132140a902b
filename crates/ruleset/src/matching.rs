//! Evaluates the conditions of a rule.

use tollgate_core::Request;

use super::attributes::AttrId;
use super::facts::RequestFacts;
use super::rule::{Conditions, Rule};
use crate::lookup::{IndexedEndpoint, IndexedMatcher};

impl Conditions {
    #[inline]
    pub(super) fn hold(&self, facts: &RequestFacts<'_>) -> bool {
        self.attributes.iter().all(|(id, matcher)| attribute_holds(*id, matcher, facts))
            && self.endpoint.as_ref().is_none_or(|endpoint| endpoint_holds(endpoint, facts))
    }
}

/// An absent attribute matches no condition, not even `*` or a negation.
pub(super) fn attribute_holds(id: AttrId, matcher: &IndexedMatcher, facts: &RequestFacts<'_>) -> bool {
    match id {
        AttrId::IP => facts.ip().is_some_and(|bits| matcher.matches_address(bits)),
        _ => facts.value(id).is_some_and(|value| matcher.matches(value)),
    }
}

pub(super) fn endpoint_holds(matcher: &IndexedEndpoint, facts: &RequestFacts<'_>) -> bool {
    facts.endpoint().is_some_and(|(method, path)| matcher.matches(method, path))
}

impl Rule {
    /// The cost of a request: its own cost times the rule's.
    pub(super) fn cost(&self, request: &Request<'_>, facts: &RequestFacts<'_>) -> u64 {
        let case = self.costs.iter().find(|(conditions, _)| conditions.hold(facts));
        request.cost.saturating_mul(case.map_or(1, |(_, cost)| *cost))
    }
}
