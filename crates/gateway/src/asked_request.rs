//! A request as the rules see it.

use http::HeaderMap;
use smallvec::SmallVec;
use tollgate_core::{Attribute, Request};
use tollgate_cost::MeterAmounts;
use tollgate_identity::CallerIdentity;
use tollgate_rules::spec::ReservedSlots;

use crate::spec::{PriorityClass, RouteSpec};

/// A request as the rules see it. What the caller says of itself is no attribute.
pub(crate) struct AskedRequest<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) endpoint: &'a str,
    pub(crate) host: &'a str,
    pub(crate) caller: &'a CallerIdentity,
    /// The name of its class; empty until it is known.
    pub(crate) class: &'a str,
}

/// Attributes by name.
pub(crate) type CustomAttributes<'a> = SmallVec<[(&'a str, &'a str); 4]>;

/// Attributes that the gateway alone sets.
const OWN: [&str; 2] = ["host", ReservedSlots::ATTRIBUTE];

impl<'a> AskedRequest<'a> {
    pub(crate) fn custom(&self) -> CustomAttributes<'a> {
        let own = OWN.into_iter().zip([self.host, self.class]).filter(|(_, value)| !value.is_empty());
        own.chain(self.caller.custom().filter(|(name, _)| !OWN.contains(name))).collect()
    }

    pub(crate) fn request(&self, custom: &'a [(&'a str, &'a str)]) -> Request<'a> {
        let mut request = Request::new().in_namespace(self.namespace).with_custom(custom);
        request.set(Attribute::Endpoint, self.endpoint);
        self.caller.describe(request)
    }

    /// The request with what it costs. The routes name its meters, not the caller: those that no rule counts refuse nothing.
    pub(crate) fn charged(
        &self,
        custom: &'a [(&'a str, &'a str)],
        amounts: &MeterAmounts,
        costs: &'a [(&'a str, u64)],
    ) -> Request<'a> {
        self.request(custom).cost(amounts.requests()).with_costs(costs).ignoring_uncounted()
    }

    /// The class of the request, by what is proven of the caller, and by the header.
    pub(crate) fn class_of<'r>(&self, route: &'r RouteSpec, headers: &HeaderMap) -> &'r PriorityClass {
        if route.priority.cases.is_empty() {
            return &route.priority.otherwise;
        }
        route.priority.of(&self.request(&self.custom()), headers)
    }
}
