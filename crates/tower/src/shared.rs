//! The settings of a layer, and what they make of a request.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderMap, Response};
use http_body_util::Full;
use smallvec::SmallVec;
use tollgate_core::{Attribute, Request};
use tollgate_rules::client_address::ProxyTrust;

use crate::answer::LimitedResponse;
use crate::backend::{Asked, LimitBackend, LimitQuestion, Limited};
use crate::caller::{CallerAttributes, peer_of};
use crate::endpoint::EndpointOptions;
use crate::event::LimitEvent;
use crate::grpc::{grpc_refusal, is_grpc};

/// Amounts by meter.
pub type LimitAmounts = Vec<(Cow<'static, str>, u64)>;

/// What the application supplies.
type IdentifyFn = Arc<dyn for<'a> Fn(&'a Parts) -> CallerAttributes<'a> + Send + Sync>;
type CostFn = Arc<dyn Fn(&Parts) -> u64 + Send + Sync>;
type CostsFn = Arc<dyn Fn(&Parts) -> LimitAmounts + Send + Sync>;
type SettleFn = Arc<dyn Fn(&http::response::Parts) -> LimitAmounts + Send + Sync>;
type SkipFn = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;
type DecisionHook = Arc<dyn Fn(&LimitEvent<'_>) + Send + Sync>;
type DenialFn = Arc<dyn Fn(Response<Full<Bytes>>) -> Response<Full<Bytes>> + Send + Sync>;

/// The settings of a layer.
#[derive(Clone)]
pub(crate) struct LayerShared {
    pub(crate) backend: Arc<dyn LimitBackend>,
    pub(crate) identify: Option<IdentifyFn>,
    pub(crate) trust: ProxyTrust,
    pub(crate) endpoints: EndpointOptions,
    pub(crate) cost: Option<CostFn>,
    pub(crate) costs: Option<CostsFn>,
    pub(crate) settle: Option<SettleFn>,
    pub(crate) skip: Option<SkipFn>,
    pub(crate) shadow: bool,
    pub(crate) hook: Option<DecisionHook>,
    pub(crate) on_denied: Option<DenialFn>,
}

/// What becomes of a request.
pub(crate) enum LayerStep {
    /// It is not limited.
    Skipped,
    /// It is answered here.
    Refused(Box<Response<Full<Bytes>>>),
    /// It was asked about.
    Asked(Asked, LimitFacts),
}

/// What is still needed of a request when its decision is there.
#[derive(Clone, Debug)]
pub(crate) struct LimitFacts {
    /// For the event; empty if no one is told.
    endpoint: String,
    is_grpc: bool,
}

/// Most proxies in front of the application.
const HOPS_MAX: usize = 32;

impl LayerShared {
    pub(crate) fn new(backend: Arc<dyn LimitBackend>) -> LayerShared {
        LayerShared {
            backend,
            identify: None,
            trust: ProxyTrust { hops: HOPS_MAX, ..ProxyTrust::default() },
            endpoints: EndpointOptions::default(),
            cost: None,
            costs: None,
            settle: None,
            skip: None,
            shadow: false,
            hook: None,
            on_denied: None,
        }
    }

    /// Asks about a request.
    pub(crate) fn admit(&self, request: &Parts) -> LayerStep {
        if self.skip.as_ref().is_some_and(|skip| skip(request)) {
            return LayerStep::Skipped;
        }
        let mut facts = LimitFacts { endpoint: String::new(), is_grpc: is_grpc(request) };
        let endpoint = match self.endpoints.endpoint(request) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                let message = error.to_string();
                let problem = LimitedResponse::problem(400, error.code(), "The request is not valid", &message);
                return LayerStep::Refused(Box::new(self.refuse(problem, "malformed", None, &facts)));
            }
        };
        let caller = self.identify.as_ref().map(|identify| identify(request)).unwrap_or_default();
        let address = self.address(request);
        if address.is_none() && caller.known.is_empty() && caller.custom.is_empty() {
            let problem = LimitedResponse::problem(
                500,
                "no_client_address",
                "Internal server error",
                "The application does not know who is asking.",
            );
            return LayerStep::Refused(Box::new(self.refuse(problem, "malformed", None, &facts)));
        }
        let asked = self.ask(request, &endpoint, &caller, address);
        if self.hook.is_some() {
            facts.endpoint = endpoint;
        }
        LayerStep::Asked(asked, facts)
    }

    fn ask(&self, parts: &Parts, endpoint: &str, caller: &CallerAttributes<'_>, address: Option<IpAddr>) -> Asked {
        let address = address.map(|address| address.to_string());
        let custom: SmallVec<[(&str, &str); 4]> =
            caller.custom.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
        let costs = self.costs.as_ref().map(|costs| costs(parts)).unwrap_or_default();
        let costs: SmallVec<[(&str, u64); 4]> = costs.iter().map(|(meter, amount)| (meter.as_ref(), *amount)).collect();
        let mut request = Request::new().with_custom(&custom).with_costs(&costs);
        if let Some(address) = &address {
            request.set(Attribute::Ip, address);
        }
        for (attribute, value) in &caller.known {
            request.set(*attribute, value);
        }
        request.set(Attribute::Endpoint, endpoint);
        if let Some(namespace) = &caller.namespace {
            request = request.in_namespace(namespace);
        }
        if let Some(cost) = &self.cost {
            request = request.cost(cost(parts));
        }
        self.backend.ask(&LimitQuestion {
            request,
            reserves: self.costs.is_some() || self.settle.is_some(),
            reports: self.hook.is_some(),
            accept: parts.headers.get(ACCEPT).map_or(&[], |accept| accept.as_bytes()),
        })
    }

    fn address(&self, request: &Parts) -> Option<IpAddr> {
        let peer = peer_of(request)?;
        if self.trust.proxies.is_empty() {
            return Some(peer.to_canonical());
        }
        let fields = forwarded_fields(&request.headers);
        self.trust.client(Some(peer), &fields)
    }

    /// Whether the request is passed on. Reports the decision.
    pub(crate) fn judge(&self, limited: &Limited, facts: &LimitFacts) -> bool {
        // A malformed request is not one that a limit would have refused.
        let shadow = !limited.allowed && self.shadow && limited.mode != "malformed";
        if limited.allowed || shadow {
            let status = shadow.then_some(limited.response.status);
            self.report(limited.allowed, shadow, &limited.mode, limited.rule.as_deref(), facts, status);
        }
        limited.allowed || shadow
    }

    /// The response to a refused request.
    pub(crate) fn refuse(
        &self,
        response: LimitedResponse,
        mode: &str,
        rule: Option<&str>,
        facts: &LimitFacts,
    ) -> Response<Full<Bytes>> {
        self.report(false, false, mode, rule, facts, Some(response.status));
        let mut response = response.into_response();
        if facts.is_grpc {
            response = grpc_refusal(response);
        }
        match &self.on_denied {
            Some(respond) => respond(response),
            None => response,
        }
    }

    fn report(
        &self,
        allowed: bool,
        shadow: bool,
        mode: &str,
        rule: Option<&str>,
        facts: &LimitFacts,
        status: Option<u16>,
    ) {
        if let Some(hook) = &self.hook {
            hook(&LimitEvent { allowed, shadow, mode, rule, endpoint: &facts.endpoint, status });
        }
    }
}

fn forwarded_fields(headers: &HeaderMap) -> SmallVec<[&[u8]; 4]> {
    headers.get_all("x-forwarded-for").iter().map(|value| value.as_bytes()).collect()
}
