//! A request's way through the gateway: canonical path, route, identity, decision, server, response.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use arc_swap::ArcSwap;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::Instant;
use tollgate_core::Clock;
use tollgate_cost::llm::LlmDialect;
use tollgate_identity::{CertificateNames, Evidence, Identifier};
use tollgate_rules::path::PathError;
use tollgate_service::render::{self, ClosedReason, Media, ResponseOptions};
use tollgate_service::trace::Traced;
use tollgate_service::{DecidedBy, Decision, HeaderFields, HeldRequest, Reply, Service, Verdict, random};
use tollgate_telemetry::MetricFamilies;
use tollgate_web::{Authority, HttpError, WebApp, WebRequest, WebResponse, response_of};

use crate::access_log::{AccessLog, AccessLogConfig};
use crate::admitted_charge::{AdmittedCharge, Refunds};
use crate::asked_request::AskedRequest;
use crate::canonical::CanonicalPath;
use crate::cost::{PricedRequest, RequestHead};
use crate::grpc_refusal::{grpc_refusal, is_grpc};
use crate::interim;
use crate::metrics::{GatewayFamilies, GatewayMetrics};
use crate::queue_place::QueuePlace;
use crate::refusal::{GatewayRefusal, llm_refusal, public_text, unreadable, write_invalid};
use crate::refusal_body::{RefusalStyle, RefusalText, respond};
use crate::request_head::{ForwardedFor, ForwardingPeer, HeadStyle, rebuild_head};
use crate::request_record::{Recorder, RequestRecord};
use crate::response::{ExchangeGuards, forwarded};
use crate::routes::{CompiledRoute, RouteTable};
use crate::spec::{GatewaySpec, RouteSpec};
use crate::traceparent::{self, TRACEPARENT};
use crate::uncounted::UncountedCharge;
use crate::unpriced::warn_of_unpriced_upgrades;
use crate::upgrade;
use crate::upstream::{BodyProgress, Exchange, SentRequestBody, UpstreamError};

/// What a gateway is made of.
pub struct GatewayConfig {
    /// Decides.
    pub service: Arc<Service>,
    /// Tells who is asking.
    pub identifier: Arc<Identifier>,
    /// Measures requests, and dates the lines of the log.
    pub clock: Arc<dyn Clock>,
    /// Routes and upstreams.
    pub spec: GatewaySpec,
    /// Whether callers' connections are encrypted.
    pub is_tls: bool,
    /// Forward what limits refuse: their decisions are counted and logged only.
    pub shadow: bool,
    /// The access log, if there is one.
    pub access_log: Option<AccessLogConfig>,
}

/// The gateway: answers the requests of a listener. Clones share everything.
#[derive(Clone)]
pub struct Gateway(Arc<GatewayState>);

struct GatewayState {
    service: Arc<Service>,
    identifier: ArcSwap<Identifier>,
    routes: Arc<ArcSwap<RouteTable>>,
    recorder: Arc<Recorder>,
    refunds: Refunds,
    is_tls: bool,
    shadow: bool,
    /// What was last reported as charged by routes and counted by no rule.
    uncounted: Mutex<Vec<UncountedCharge>>,
}

impl Gateway {
    /// A gateway with these routes. Needs a runtime: active health checks begin at once.
    pub fn new(config: GatewayConfig) -> Result<Gateway> {
        let GatewayConfig { service, identifier, clock, spec, is_tls, shadow, access_log } = config;
        warn_of_unpriced_upgrades(&spec);
        let routes = Arc::new(ArcSwap::from_pointee(RouteTable::new(&spec, None, &clock)?));
        let log = access_log.map(AccessLog::new);
        let recorder = Arc::new(Recorder { clock, metrics: Arc::<GatewayMetrics>::default(), log });
        let identifier = ArcSwap::new(identifier);
        let refunds = Refunds::new(service.clone(), recorder.metrics.clone());
        let uncounted = Mutex::default();
        let state = GatewayState { service, identifier, routes, recorder, refunds, is_tls, shadow, uncounted };
        Ok(Gateway(Arc::new(state)))
    }

    /// Replaces routes, upstreams and identities. Requests in flight finish with those they began with.
    pub fn reload(&self, spec: &GatewaySpec, identifier: Arc<Identifier>) -> Result<()> {
        let table = RouteTable::new(spec, Some(&self.0.routes.load()), &self.0.recorder.clock)?;
        warn_of_unpriced_upgrades(spec);
        self.0.routes.store(Arc::new(table));
        self.0.identifier.store(identifier);
        Ok(())
    }

    /// Its metrics, for a page.
    pub fn families(&self) -> impl MetricFamilies + use<> {
        GatewayFamilies { metrics: self.0.recorder.metrics.clone(), routes: self.0.routes.clone() }
    }

    /// Periodic work, every second: samples how busy upstreams are, closes connections that have been idle for long, and
    /// warns of what routes charge and no rule counts.
    pub fn tick(&self) {
        let table = self.0.routes.load();
        self.0.warn_of_uncounted(&table);
        for upstream in table.upstreams() {
            upstream.protection.sample();
            upstream.servers().iter().for_each(|server| server.pool().close_idle());
        }
    }
}

impl WebApp for Gateway {
    async fn respond(&self, request: WebRequest) -> WebResponse {
        let mut record = RequestRecord::new(&self.0.recorder);
        record.arrived(&request);
        let is_grpc = is_grpc(&request.parts.headers);
        match Box::pin(self.0.answer(request, record)).await {
            Ok(response) => response,
            Err(Refused { refusal, mut record }) => {
                let mut response = refusal.response(record.style.as_ref(), &record.id_text());
                record.refused(refusal.label(), response.status().as_u16());
                if is_grpc {
                    response = grpc_refusal(response);
                }
                record.write_id(response.headers_mut());
                if let GatewayRefusal::Upstream(error) = &*refusal {
                    tracing::debug!(route = record.route_name(), %error, "a request was not forwarded");
                }
                response
            }
        }
    }

    /// Work for a caller that is gone is work that others wait for.
    fn ends_with_client(&self) -> bool {
        true
    }

    fn writes_title_case(&self) -> bool {
        false
    }

    fn reject(&self, error: HttpError) -> WebResponse {
        let response = unreadable(error);
        RequestRecord::new(&self.0.recorder).refused("unreadable", response.status().as_u16());
        response
    }
}

/// A refusal, and the record of what was refused.
struct Refused {
    refusal: Box<GatewayRefusal>,
    record: RequestRecord,
}

/// Gives up on a request, with its record.
macro_rules! or_refuse {
    ($result:expr, $record:ident) => {
        match $result {
            Ok(value) => value,
            Err(refusal) => return Err(Refused { refusal: Box::new(refusal.into()), record: $record }),
        }
    };
}

impl GatewayState {
    async fn answer(&self, request: WebRequest, mut record: RequestRecord) -> Result<WebResponse, Refused> {
        let WebRequest { peer, mut parts, body, interim } = request;
        let table = self.routes.load_full();
        let method = parts.method.clone();
        let trace = self.service.trace(|| parts.headers.get_all(TRACEPARENT).iter().map(HeaderValue::as_bytes));
        if matches!(method, Method::CONNECT | Method::TRACE) {
            return Err(Refused { refusal: Box::new(GatewayRefusal::Method), record });
        }
        let uri = std::mem::take(&mut parts.uri);
        let path = or_refuse!(CanonicalPath::parse(uri.path()), record);
        set_host(&uri, &mut parts.headers);
        let host = host_name(&parts.headers);
        let found = table.find(&host, &method, path.as_str(), &parts.headers);
        let route = or_refuse!(found.cloned().ok_or(GatewayRefusal::NoRoute), record);
        record.routed(&route);
        record.style = RefusalStyle::of(&route, &parts.headers);
        if is_longer_than(&parts.headers, route.spec.max_body) {
            return Err(Refused { refusal: Box::new(TOO_LARGE), record });
        }
        let endpoint = or_refuse!(path.for_rules(&route.spec), record);
        let identifier = self.identifier.load_full();
        let namespace = route.spec.namespace.as_deref().unwrap_or(tollgate_core::Request::DEFAULT_NAMESPACE);
        let certificate = peer.certificate.as_deref();
        let certificate = certificate.map(|names| CertificateNames { dns: &names.dns_names, uri: &names.uri_names });
        let evidence =
            Evidence { namespace, headers: &parts.headers, query: uri.query(), peer: peer.whole, certificate };
        let caller = or_refuse!(identifier.identify(&evidence), record);
        record.identified(&caller);

        let head = RequestHead {
            method: &method,
            path: path.as_str(),
            query: uri.query().unwrap_or_default(),
            headers: &parts.headers,
        };
        let (priced, body) = or_refuse!(PricedRequest::read(&route.spec, &head, body).await, record);

        let endpoint = [if method == Method::HEAD { "GET" } else { method.as_str() }, " ", &endpoint].concat();
        let mut asked = AskedRequest { namespace, endpoint: &endpoint, host: &host, caller: &caller, class: "" };
        let class = asked.class_of(&route.spec, &parts.headers);
        asked.class = &class.name;
        let mut options = ResponseOptions {
            random: random::fast(),
            limited_status: Some(route.spec.denied_status),
            closed: ClosedReason::Overload,
            ..ResponseOptions::default()
        };
        let (decision, held) = match trace {
            None => self.decide(&asked, &priced).await,
            Some(context) => Box::pin(Traced::new(context, self.decide(&asked, &priced))).await,
        };
        record.decided(&decision);
        if !decision.is_allowed() {
            match self.shadow {
                false => {
                    let accept = parts.headers.get(header::ACCEPT);
                    options.media = accept.map_or(Media::Problem, |accept| Media::accepted(accept.as_bytes()));
                    let denial = self.deny(&decision, &options, priced.dialect(), record);
                    return Ok(if is_grpc(&parts.headers) { grpc_refusal(denial) } else { denial });
                }
                true => record.would_be_denied(),
            }
        }
        let mut fields = HeaderFields::default();
        if decision.is_allowed() {
            render::write_headers(&decision, &options, &self.service.render, &mut fields);
        }
        let mut charge = AdmittedCharge::new(&decision, priced, held, &route);
        let delay = Duration::from_nanos(decision.delay().nanos());
        drop(decision);
        if !delay.is_zero() {
            Box::pin(QueuePlace::new(&mut charge.held, &mut charge.settlement).wait(delay)).await;
        }

        let admitted = match route.upstream.protection.admit_at_once(class.rank, &method) {
            Some(admitted) => admitted,
            None => Box::pin(route.upstream.protection.admit_in_turn(class.rank, &method)).await,
        };
        let mut permit = match admitted {
            Ok(permit) => permit,
            Err(error) => {
                charge.give_back(&asked, &self.refunds);
                return Err(Refused { refusal: Box::new(error.into()), record });
            }
        };
        let target = or_refuse!(target(&path.forwarded(&route.spec), &uri), record);
        let exchange = Exchange {
            caller: caller.client_key(),
            path: path.as_str(),
            keep_host: route.spec.keep_host,
            end: route.upstream.spec.timeouts.total.map(|total| Instant::now() + total),
        };
        let upgraded = route.spec.upgrade.then(|| upgrade::asked_protocol(&parts)).flatten();
        let peer = ForwardingPeer { address: peer.whole, text: caller.ip().filter(|_| caller.address() == peer.whole) };
        self.rebuild(&mut parts.headers, &route, peer, &identifier);
        if let Some(context) = trace {
            traceparent::follow(route.spec.traceparent, &context, &mut parts.headers);
        }
        let mut request = Request::new(SentRequestBody::empty());
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, target, parts.headers);
        if let Some(protocol) = upgraded {
            upgrade::ask_for(&protocol, request.headers_mut());
            let answered = Box::pin(route.upstream.send_upgrade(request, &exchange)).await;
            permit.ended(answered.as_ref().map(|(response, _)| response.status()));
            if let Err(error) = &answered {
                charge.failed(error, &asked, &self.refunds);
            }
            let (answer, connection) = or_refuse!(answered, record);
            charge.sent(BodyProgress::default());
            let guards = ExchangeGuards::new(record, permit, charge);
            return Ok(upgrade::respond(answer, connection, &route, &fields, guards, exchange.end));
        }
        let (body, progress) = body.into_sent(request.headers_mut(), &route.spec);
        *request.body_mut() = body;
        interim::pass_on(&mut request, interim, &route);
        record.follow(progress.clone());
        charge.sent(progress.clone());
        let received = route.upstream.send(request, progress, &exchange).await;
        permit.ended(received.as_ref().map(|response| response.status()));
        if let Err(error) = &received {
            charge.failed(error, &asked, &self.refunds);
        }
        let received = or_refuse!(received, record);
        let guards = ExchangeGuards::new(record, permit, charge);
        Ok(forwarded(received, &route.spec, &fields, guards))
    }

    /// Rules and routes change independently of each other: either can leave a meter without a rule.
    fn warn_of_uncounted(&self, table: &RouteTable) {
        let found = UncountedCharge::find(table.routes().iter().map(|route| &route.spec), &*self.service);
        let mut reported = self.uncounted.lock();
        for charge in found.iter().filter(|charge| !reported.contains(charge)) {
            tracing::warn!("{charge}: it is not limited");
        }
        *reported = found;
    }

    /// Decides, and keeps the slots and estimates that the request takes.
    async fn decide(&self, asked: &AskedRequest<'_>, priced: &PricedRequest) -> (Decision, Option<HeldRequest>) {
        let custom = asked.custom();
        let costs: SmallVec<[(&str, u64); 4]> = priced.amounts().others().collect();
        let request = asked.charged(&custom, priced.amounts(), &costs);
        if priced.is_settled() {
            return Box::pin(self.service.hold_estimates(&request)).await;
        }
        if self.service.has_holds() {
            return Box::pin(self.service.hold(&request)).await;
        }
        let requests = [request];
        match self.service.try_decide(&requests) {
            Ok(decision) => (decision, None),
            Err(pending) => (Box::pin(self.service.decide_pending(&requests, pending)).await, None),
        }
    }

    /// The response to a request that a limit refuses.
    fn deny(
        &self,
        decision: &Decision,
        options: &ResponseOptions,
        dialect: Option<LlmDialect>,
        mut record: RequestRecord,
    ) -> WebResponse {
        let mut reply = Reply::default();
        reply.clear();
        let config = &self.service.render;
        let denial = || public_text(render::denial_text(decision, options, config));
        match &decision.verdict {
            Verdict::Invalid(_) => write_invalid(&denial(), &mut reply),
            _ => reply.status = render::write_denial(decision, options, config, &mut reply.fields, &mut reply.body),
        }
        let is_closed = decision.decided_by == DecidedBy::Closed;
        // Shed, or the store is away: the rule is not about this caller.
        let is_unavailable = is_closed || (reply.status == 503 && options.limited_status != Some(503));
        record.refused(if is_closed { "closed" } else { "denied" }, reply.status);
        let status = reply.status;
        let rule = decision.deciding_rule().map(|(rule, _)| rule);
        let named = rule.filter(|_| !is_unavailable).map(|rule| rule.name.as_str());
        let mut response = match (&record.style, dialect) {
            (Some(style), None) => {
                let denial = denial();
                let text = RefusalText {
                    code: denial.code,
                    message: &denial.message,
                    rule: named,
                    doc_url: rule.and_then(|rule| rule.spec.doc_url.as_deref()),
                    decision_id: &record.id_text(),
                };
                respond(Some(style), &text, reply)
            }
            _ => response_of(reply),
        };
        if let Some(dialect) = dialect {
            llm_refusal(dialect, status, named, &mut response);
        }
        record.write_id(response.headers_mut());
        response
    }

    /// Makes the caller's header the one that the server gets.
    fn rebuild(
        &self,
        headers: &mut HeaderMap,
        route: &CompiledRoute,
        peer: ForwardingPeer<'_>,
        identifier: &Identifier,
    ) {
        let host = headers.get(header::HOST).cloned();
        let trusts_peer = identifier.is_trusted_proxy(peer.address);
        let forwarded = ForwardedFor { peer, trusts_peer, host: host.as_ref(), is_tls: self.is_tls };
        let RouteSpec { forwarded: style, traceparent, request_headers, .. } = &route.spec;
        let credentials = identifier.credential_fields();
        let style = HeadStyle { forwarded: *style, trace: *traceparent, edits: request_headers, credentials };
        rebuild_head(headers, &style, &forwarded);
        if route.spec.cost.as_ref().is_some_and(|cost| cost.reads_response()) {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
    }
}

/// An absolute target, and HTTP/2, name the host beside the fields. Both are the same where both are there.
fn set_host(uri: &Uri, headers: &mut HeaderMap) {
    if headers.contains_key(header::HOST) {
        return;
    }
    if let Some(host) = uri.authority().and_then(|authority| authority.as_str().parse().ok()) {
        headers.insert(header::HOST, host);
    }
}

/// The host in lower case, without port and without the dot of a full name; empty if there is none.
fn host_name(headers: &HeaderMap) -> String {
    let authority = headers.get(header::HOST).and_then(|host| Authority::parse(host.as_bytes()));
    let host = authority.map(|authority| authority.host.to_ascii_lowercase()).unwrap_or_default();
    match host.strip_suffix('.') {
        Some(name) => name.to_owned(),
        None => host,
    }
}

/// The body is longer than the route takes: known before a byte of it is asked for.
const TOO_LARGE: GatewayRefusal = GatewayRefusal::Upstream(UpstreamError::RequestBody(HttpError::BodyTooLarge));

fn is_longer_than(headers: &HeaderMap, max_bytes: Option<u64>) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    max_bytes.zip(length).is_some_and(|(max_bytes, length)| length > max_bytes)
}

/// Path and query of a forwarded request.
fn target(path: &str, uri: &Uri) -> Result<Uri, GatewayRefusal> {
    if let Some(unchanged) = uri.path_and_query().filter(|sent| sent.path() == path) {
        return Ok(unchanged.clone().into());
    }
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    // Never another target than the one that was decided about.
    PathAndQuery::try_from(text).map(Uri::from).map_err(|_| GatewayRefusal::Path(PathError::TooLong))
}
