//! The HTTP API: keep-alive connections, HTTP/1.1 or HTTP/2.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, Method, Request as HttpRequest, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::Instant;

use super::connector::ServerConnector;
use super::{HttpDecision, ServerAnswer, ServerCall, json};
use crate::client_url::ClientUrl;
use crate::config::{ClientConfig, ClientConfigError};
use crate::failure::{BODY_TOO_LARGE, CallError, Outage, OutageKind, RequestRejected};
use tollgate_core::Attribute;

/// Longest answer that is read: a batch of a thousand decisions is shorter.
const ANSWER_MAX: usize = 1 << 20;
/// How long an idle connection is kept: servers close theirs after a minute.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Idle connections that are kept.
const IDLE_CONNECTIONS_MAX: usize = 32;
/// What a caller is willing to wait, for the server.
const REQUEST_TIMEOUT: HeaderName = HeaderName::from_static("request-timeout");

pub(crate) struct HttpTransport {
    client: HyperClient<ServerConnector, Full<Bytes>>,
    base: String,
    authorization: Option<HeaderValue>,
}

impl HttpTransport {
    pub(super) fn new(url: ClientUrl, config: &ClientConfig) -> Result<HttpTransport, ClientConfigError> {
        let protocols: &[&str] = if config.http2 { &["h2"] } else { &["h2", "http/1.1"] };
        let connector = ServerConnector::new(&url, config, protocols)?;
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .http2_only(config.http2)
            .http1_max_headers(64);
        let authorization = bearer(config.token.as_deref())?;
        Ok(HttpTransport { client: builder.build(connector), base: url.base, authorization })
    }

    pub(super) async fn ask(&self, call: &ServerCall<'_>, deadline: Instant) -> Result<ServerAnswer, CallError> {
        let request = self.request(call, deadline)?;
        let response = self.client.request(request).await.map_err(|error| {
            let kind = if error.is_connect() { OutageKind::Connect } else { OutageKind::Broken };
            Outage::new(kind, innermost(&error))
        })?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        let body = body.map_err(|error| Outage::new(OutageKind::Broken, error))?.to_bytes();
        read(call, head.status, &head.headers, body)
    }

    fn request(&self, call: &ServerCall<'_>, deadline: Instant) -> Result<HttpRequest<Full<Bytes>>, Outage> {
        let (path, body) = body_of(call);
        let mut request = HttpRequest::builder().uri(format!("{}{path}", self.base));
        let millis = deadline.saturating_duration_since(Instant::now()).as_millis().max(1);
        request = request.header(REQUEST_TIMEOUT, format!("{millis}ms"));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = match body {
            None => request.body(Full::default()),
            Some(body) => {
                let request = request.method(Method::POST).header(CONTENT_TYPE, "application/json");
                request.header(ACCEPT, "application/problem+json").body(Full::from(body.to_string()))
            }
        };
        request.map_err(|error| Outage::new(OutageKind::Rejected, error))
    }
}

/// `Authorization`, which no debug output shows.
pub(super) fn bearer(token: Option<&str>) -> Result<Option<HeaderValue>, ClientConfigError> {
    let Some(token) = token else { return Ok(None) };
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| ClientConfigError("the token is no header value".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The cause at the bottom of an error: hyper says "client error" and keeps the reason inside.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn body_of(call: &ServerCall<'_>) -> (String, Option<Value>) {
    let post = |path: &str, body: Value| (path.to_owned(), Some(body));
    match call {
        ServerCall::Check { request, by_status: false } => post("/v1/check", json::request(request)),
        ServerCall::Check { request, by_status: true } => post("/v1/check?status=429", json::request(request)),
        ServerCall::Batch(requests) => {
            let requests: Vec<Value> = requests.iter().map(json::request).collect();
            post("/v1/check/batch", serde_json::json!({ "requests": requests }))
        }
        ServerCall::Reserve { request, by_status: false } => post("/v1/reserve", json::request(request)),
        ServerCall::Reserve { request, by_status: true } => post("/v1/reserve?status=429", json::request(request)),
        ServerCall::Extend { receipt, costs } => post("/v1/extend", json::receipt("reservation", receipt, costs)),
        ServerCall::Settle { receipt, costs } => post("/v1/settle", json::receipt("reservation", receipt, costs)),
        ServerCall::AcquireSlot(request) => post("/v1/slots/acquire", json::request(request)),
        ServerCall::Renew(receipt) => post("/v1/slots/renew", json::receipt("slot", receipt, &[])),
        ServerCall::Release(receipt) => post("/v1/slots/release", json::receipt("slot", receipt, &[])),
        ServerCall::Usage(request) => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("namespace", request.namespace);
            for attribute in Attribute::ALL {
                if let Some(value) = request.get(attribute) {
                    query.append_pair(attribute.name(), value);
                }
            }
            query.extend_pairs(request.custom);
            (format!("/v1/usage?{}", query.finish()), None)
        }
    }
}

fn read(call: &ServerCall<'_>, status: StatusCode, fields: &HeaderMap, body: Bytes) -> Result<ServerAnswer, CallError> {
    let value: Option<Value> = serde_json::from_slice(&body).ok();
    let object = value.as_ref().and_then(Value::as_object);
    if let Some(answer) = object.and_then(|object| answer(call, status, object)) {
        return Ok(match answer {
            ServerAnswer::Decision(mut decision) if by_status(call) => {
                decision.answer = Some(passed_on(status, fields, body));
                ServerAnswer::Decision(decision)
            }
            answer => answer,
        });
    }
    Err(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Outage::new(OutageKind::Unauthorized, "configure a token of this server and namespace").into()
        }
        StatusCode::BAD_REQUEST | StatusCode::CONFLICT => match object.and_then(json::rejected) {
            Some(rejected) => CallError::Rejected(rejected),
            None => Outage::new(OutageKind::Status(status.as_u16()), "without a code").into(),
        },
        // Also by a proxy: the caller of the application decides how much it sends.
        StatusCode::PAYLOAD_TOO_LARGE => CallError::Rejected(RequestRejected {
            code: BODY_TOO_LARGE.to_owned(),
            detail: "the request is longer than the server reads".to_owned(),
        }),
        status if status.is_success() => Outage::new(OutageKind::Unreadable, "it is no decision").into(),
        status => {
            let code = object.and_then(json::rejected).map_or_else(|| "no answer of Tollgate".to_owned(), |it| it.code);
            Outage::new(OutageKind::Status(status.as_u16()), code).into()
        }
    })
}

fn by_status(call: &ServerCall<'_>) -> bool {
    matches!(call, ServerCall::Check { by_status: true, .. } | ServerCall::Reserve { by_status: true, .. })
}

fn answer(call: &ServerCall<'_>, status: StatusCode, object: &Map<String, Value>) -> Option<ServerAnswer> {
    let is_ok = status == StatusCode::OK;
    match call {
        ServerCall::Check { .. }
        | ServerCall::Reserve { .. }
        | ServerCall::Extend { .. }
        | ServerCall::AcquireSlot(_) => {
            let decision = json::decision(object)?;
            // A denial may have a status of its own; a permission has not.
            let fits = is_ok || (by_status(call) && !decision.decision.allowed);
            fits.then(|| ServerAnswer::Decision(Box::new(decision)))
        }
        _ if !is_ok => None,
        ServerCall::Batch(requests) => {
            let results = json::batch(object)?;
            (results.len() == requests.len()).then_some(ServerAnswer::Batch(results))
        }
        ServerCall::Settle { .. } => json::settled(object).map(ServerAnswer::Settled),
        ServerCall::Renew(_) => {
            Some(ServerAnswer::Renewed { held: object.get("renewed")?.as_bool()?, ttl: json::ttl(object) })
        }
        ServerCall::Release(_) => Some(ServerAnswer::Released(object.get("released")?.as_bool()?)),
        ServerCall::Usage(_) => Some(ServerAnswer::Usage(Value::Object(object.clone()))),
    }
}

/// Only what concerns the caller of an application: fields of limits, and the body of a denial.
fn passed_on(status: StatusCode, fields: &HeaderMap, body: Bytes) -> HttpDecision {
    let concerns = |name: &HeaderName| {
        let name = name.as_str();
        let families = ["ratelimit", "x-ratelimit-", "x-rate-limit-"];
        name == "retry-after" || families.iter().any(|family| name.starts_with(family))
    };
    let kept = fields.iter().filter(|(name, _)| concerns(name));
    let is_denial = status != StatusCode::OK;
    HttpDecision {
        status: status.as_u16(),
        fields: kept.map(|(name, value)| (name.clone(), value.clone())).collect(),
        content_type: fields.get(CONTENT_TYPE).filter(|_| is_denial).cloned(),
        body: if is_denial { body } else { Bytes::new() },
    }
}
