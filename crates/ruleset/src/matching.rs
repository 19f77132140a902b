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
    /// What the rule charges per unit of its meter.
    pub(super) fn factor(&self, facts: &RequestFacts<'_>) -> u64 {
        let case = self.costs.iter().find(|(conditions, _)| conditions.hold(facts));
        case.map_or(1, |(_, cost)| *cost)
    }

    /// The amount of the rule's meter; `None` if the request carries none of it.
    #[inline]
    pub(super) fn metered(&self, request: &Request<'_>) -> Option<u64> {
        match self.meters.is_empty() {
            true => Some(request.cost),
            false => self.weighed(request),
        }
    }

    fn weighed(&self, request: &Request<'_>) -> Option<u64> {
        let carried = self.meters.iter().filter_map(|(name, weight)| Some((request.amount(name)?, *weight)));
        // `requests` is carried by every request: alone it does not make a request one of this meter.
        let named = self.meters.iter().any(|(name, _)| name != Request::REQUESTS && request.amount(name).is_some());
        let sum = |total: u64, (amount, weight): (u64, u64)| total.saturating_add(amount.saturating_mul(weight));
        (named || self.counts_only_requests()).then(|| carried.fold(0, sum))
    }

    /// The meters that it counts besides `requests`.
    pub(super) fn meter_names(&self) -> Vec<String> {
        self.meters.iter().map(|(name, _)| name.clone()).collect()
    }

    fn counts_only_requests(&self) -> bool {
        self.meters.iter().all(|(name, _)| name == Request::REQUESTS)
    }
}
