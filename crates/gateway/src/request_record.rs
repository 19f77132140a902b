//! What becomes of a request, from its arrival to the end of its response: counted and logged when it is dropped.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use tollgate_core::{Clock, Time};
use tollgate_identity::CallerIdentity;
use tollgate_service::{Decision, DecisionId};
use tollgate_web::{StreamError, WebRequest};

use crate::access_log::{AccessLog, AccessRecord, FORWARDED};
use crate::metrics::GatewayMetrics;
use crate::refusal_body::RefusalStyle;
use crate::routes::CompiledRoute;
use crate::upstream::{BodyProgress, UpstreamServer};

/// The header field with the id under which the access log has a request.
const DECISION_ID: HeaderName = HeaderName::from_static("x-decision-id");

/// Where requests are counted and logged.
pub(crate) struct Recorder {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<GatewayMetrics>,
    pub(crate) log: Option<AccessLog>,
}

/// A request that has not ended.
pub(crate) struct RequestRecord {
    recorder: Arc<Recorder>,
    start: Time,
    progress: BodyProgress,
    is_shadow_denied: bool,
    route: Option<Arc<CompiledRoute>>,
    pub(crate) record: AccessRecord,
    /// How it is refused, if the route has a style of its own.
    pub(crate) style: Option<RefusalStyle>,
}

impl RequestRecord {
    pub(crate) fn new(recorder: &Arc<Recorder>) -> RequestRecord {
        let record = AccessRecord { id: DecisionId::random().0, ..AccessRecord::default() };
        RequestRecord {
            recorder: recorder.clone(),
            start: recorder.clock.now(),
            progress: BodyProgress::default(),
            is_shadow_denied: false,
            route: None,
            record,
            style: None,
        }
    }

    /// True if lines are written: otherwise texts need not be copied.
    pub(crate) fn is_logged(&self) -> bool {
        self.recorder.log.is_some()
    }

    /// What the request says of itself.
    pub(crate) fn arrived(&mut self, request: &WebRequest) {
        if self.is_logged() {
            let http::request::Parts { method, uri, version, headers, .. } = &request.parts;
            (self.record.method, self.record.path) = (method.to_string(), uri.path().to_owned());
            self.record.protocol = protocol_name(*version);
            self.record.referer = headers.get(header::REFERER).cloned();
            self.record.user_agent = headers.get(header::USER_AGENT).cloned();
        }
        self.record.address = request.peer.whole;
    }

    /// A route was found.
    pub(crate) fn routed(&mut self, route: &Arc<CompiledRoute>) {
        self.route = Some(route.clone());
    }

    /// The name of its route; empty before one was found.
    pub(crate) fn route_name(&self) -> &str {
        self.route.as_ref().map_or("", |route| &route.spec.name)
    }

    /// The caller is known.
    pub(crate) fn identified(&mut self, caller: &CallerIdentity) {
        self.record.proof = caller.proof().name();
        self.record.address = caller.address();
        if self.is_logged() {
            self.record.client = caller.client_key().to_owned();
        }
    }

    /// A limit decided: the request has the id of the decision from now on.
    pub(crate) fn decided(&mut self, decision: &Decision) {
        self.record.id = decision.id().0;
        if self.is_logged() {
            self.record.rule = decision.deciding_rule().map(|(rule, _)| rule.name.clone());
        }
    }

    /// A limit refused, and the request is forwarded all the same.
    pub(crate) fn would_be_denied(&mut self) {
        self.is_shadow_denied = true;
    }

    /// The body of the request is on its way.
    pub(crate) fn follow(&mut self, progress: BodyProgress) {
        self.progress = progress;
    }

    /// The gateway answers by itself.
    pub(crate) fn refused(&mut self, outcome: &'static str, status: u16) {
        (self.record.outcome, self.record.status) = (outcome, status);
    }

    /// A server answers.
    pub(crate) fn forwarded(&mut self, status: u16, server: &UpstreamServer) {
        let outcome = if self.is_shadow_denied { "shadow_denied" } else { FORWARDED };
        (self.record.outcome, self.record.status) = (outcome, status);
        if self.is_logged() {
            self.record.server = Some(server.url.to_string());
        }
    }

    /// Bytes of the response were passed on.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.record.response_bytes += bytes as u64;
    }

    /// The response broke off.
    pub(crate) fn broke(&mut self, error: &StreamError) {
        self.record.outcome = "broken";
        tracing::debug!(server = self.record.server, %error, "a response broke off");
    }

    /// The id of the request.
    pub(crate) fn id_text(&self) -> String {
        DecisionId(self.record.id).to_string()
    }

    /// Tells the caller the id of the request.
    pub(crate) fn write_id(&self, headers: &mut HeaderMap) {
        let digits: [u8; 16] = std::array::from_fn(|place| {
            let digit = (self.record.id >> (60 - 4 * place)) as u8 & 15;
            if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }
        });
        if let Ok(id) = HeaderValue::from_bytes(&digits) {
            headers.insert(DECISION_ID, id);
        }
    }
}

fn protocol_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let Recorder { clock, metrics, log } = &*self.recorder;
        let route = self.route.take();
        let name = route.as_ref().map_or("", |route| route.spec.name.as_str());
        let record = &mut self.record;
        // The caller hung up before there was a response.
        let outcome = if record.outcome.is_empty() { "aborted" } else { record.outcome };
        metrics.ended(name, outcome, record.status);
        let taken = clock.now().since(self.start);
        if let Some(route) = &route {
            route.figures.duration.observe(taken.into());
        }
        if let Some(log) = log {
            record.outcome = outcome;
            record.route = name.to_owned();
            record.request_bytes = self.progress.bytes();
            record.micros = taken.nanos() / 1_000;
            log.record(record, clock.wall());
        }
    }
}
