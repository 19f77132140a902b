//! The data API: forward-auth below its prefix; everywhere else the check API, JSON in, a call of the service, JSON out.
//!
//! | file | what |
//! |---|---|
//! | `route` | paths and methods |
//! | `batch` | `/v1/check/batch` |
//! | `reserve` | `/v1/reserve`, `/v1/extend`, `/v1/settle`, `/v1/slots/…` |
//! | `explain` | `/v1/explain` |
//! | `usage` | `/v1/usage` |
//! | `rls_json` | Envoy's rate limit service as JSON: `/json`, `/healthcheck` |
//! | `health` | `/ready` |
//! | `errors` | errors of paths, methods and media types |

mod batch;
mod errors;
mod explain;
mod health;
mod openapi;
mod reserve;
mod rls_json;
mod route;
mod usage;

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;
use tollgate_config::AuthSettings;
use tollgate_net::{Drain, NetLimits, Peer};
use tollgate_service::check_request::read_check;
use tollgate_service::data_tokens::TokenScope;
use tollgate_service::refusal::{NO_TOKEN, OTHER_NAMESPACE, write_body_error, write_json};
use tollgate_service::render::{self, Dialect, Media, ResponseOptions};
use tollgate_service::trace::{self, TraceContext, Traced};
use tollgate_service::{ApiError, CheckRequest, Decision, PendingCheck, Reply, Service};
use tollgate_web::{Handler, Head, HttpError, HttpMetrics, PendingResponse, check_encoding, request_timeout};

pub use self::openapi::TEXT as OPENAPI;
pub use self::route::Route;
pub use self::usage::UsageQuery;

use crate::forward_auth::{AuthCheck, ForwardAuth, PREFIX, below_prefix, write_disabled, write_unreadable_head};

/// Dependencies and settings of the data API.
pub struct DataApiConfig {
    /// Decides requests.
    pub service: Arc<Service>,
    /// Caps on bodies.
    pub limits: NetLimits,
    /// Health checks fail once a drain is announced.
    pub drain: Drain,
    /// Counts responses.
    pub metrics: Arc<HttpMetrics>,
    /// The URL of the admin API, for callers that use one of its paths here; empty until its listener is bound.
    pub admin_url: Arc<OnceLock<String>>,
    /// Settings of forward-auth, which may be off.
    pub auth: AuthSettings,
}

/// The data API of one listener.
pub struct DataApi {
    service: Arc<Service>,
    limits: NetLimits,
    drain: Drain,
    admin_url: Arc<OnceLock<String>>,
    auth: Option<ForwardAuth>,
    metrics: Arc<HttpMetrics>,
}

/// State from the head, kept while the body is read.
#[derive(Debug)]
pub enum PreparedData {
    /// A call of the check API.
    Call(PreparedCall),
    /// A question for usage.
    Usage(Box<UsageQuery>),
    /// A check sent by a proxy.
    Auth(Box<AuthCheck>),
}

/// A call of the check API, from its head.
#[derive(Clone, Copy, Debug)]
pub struct PreparedCall {
    route: Route,
    refuse_by_status: Option<bool>,
    media: Media,
    /// The namespaces that the caller's token covers.
    scope: TokenScope,
    /// When the caller stops waiting.
    deadline: Option<Instant>,
    /// The trace that it belongs to, if decisions are traced.
    trace: Option<TraceContext>,
}

impl PreparedCall {
    /// The path in metrics.
    pub fn path(&self) -> &'static str {
        self.route.path()
    }

    /// How the caller wants the decision rendered.
    fn options(self) -> ResponseOptions {
        let dialect = if let Route::Check(dialect) = self.route { dialect } else { Dialect::V1 };
        let PreparedCall { refuse_by_status, media, .. } = self;
        let random = tollgate_service::random::fast();
        ResponseOptions { dialect, deny_by_status: refuse_by_status, media, random, ..ResponseOptions::default() }
    }
}

impl Handler for DataApi {
    type Prepared = PreparedData;

    fn prepare(&self, peer: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(PreparedData, usize)> {
        let Some(below) = below_prefix(head.path) else {
            let (call, max_body) = self.prepare_call(head, reply)?;
            let usage = self.usage_query(call, head).map(|query| PreparedData::Usage(Box::new(query)));
            return Some((usage.unwrap_or(PreparedData::Call(call)), max_body));
        };
        match &self.auth {
            Some(auth) => {
                let prepared = auth.prepare(peer, head, below, reply);
                prepared.map(|(check, max_body)| (PreparedData::Auth(Box::new(check)), max_body))
            }
            None => {
                write_disabled(reply);
                None
            }
        }
    }

    async fn handle(&self, prepared: &PreparedData, body: &[u8], reply: &mut Reply) {
        if let Some(pending) = self.begin(prepared, body, reply) {
            pending.await;
        }
    }

    fn begin<'a>(
        &'a self,
        prepared: &'a PreparedData,
        body: &'a [u8],
        reply: &'a mut Reply,
    ) -> Option<PendingResponse<'a>> {
        match prepared {
            PreparedData::Call(call) => {
                let pending = trace::during(call.trace, || self.begin_call(call, body, reply))?;
                Some(match call.trace {
                    None => pending,
                    Some(context) => Box::pin(Traced::new(context, pending)),
                })
            }
            PreparedData::Usage(query) => Some(Box::pin(self.usage(query, reply))),
            PreparedData::Auth(check) => self.auth.as_ref()?.begin(check, reply),
        }
    }

    /// Allowed for forward-auth: a proxy passes on its client's header fields, and forward-auth checks the fields that
    /// it reads by itself.
    fn may_repeat(&self, head: &Head<'_>) -> bool {
        self.auth.is_some() && below_prefix(head.path).is_some()
    }

    fn reject(&self, error: HttpError, reply: &mut Reply) {
        // A proxy that understands only 403 takes any other status for a failure of the limiter; clients could provoke
        // it.
        let only_403 = self.auth.as_ref().is_some_and(ForwardAuth::denies_with_403);
        match error {
            HttpError::Malformed(_) | HttpError::TargetTooLong | HttpError::HeadTooLarge | HttpError::Expectation
                if only_403 =>
            {
                write_unreadable_head(reply);
            }
            error => tollgate_web::http_error(error).write(reply),
        }
    }

    fn completed(&self, prepared: Option<&PreparedData>, status: u16) {
        let path = match prepared {
            None => "",
            Some(PreparedData::Call(call)) => call.path(),
            Some(PreparedData::Usage(query)) => query.call.path(),
            Some(PreparedData::Auth(_)) => PREFIX,
        };
        self.metrics.responded(path, status);
    }
}

impl DataApi {
    /// The data API of a listener.
    pub fn new(config: DataApiConfig) -> DataApi {
        let auth = ForwardAuth::new(config.service.clone(), &config.auth, config.limits.max_body);
        let DataApiConfig { service, limits, drain, metrics, admin_url, .. } = config;
        DataApi { service, limits, drain, admin_url, auth, metrics }
    }

    /// Checks a head. Returns the call and the maximum length of its body, or fills the reply with an error.
    fn prepare_call(&self, head: &Head<'_>, reply: &mut Reply) -> Option<(PreparedCall, usize)> {
        match self.check_head(head) {
            Ok(call) => {
                let NetLimits { max_body, max_batch_body, .. } = self.limits;
                let longest = match call.route {
                    Route::Batch => max_batch_body,
                    route if route.is_read_only() => 0,
                    _ => max_body,
                };
                Some((call, longest))
            }
            Err(_) if is_admin_path(head.path) && self.service.authorize(head.authorization).is_some() => {
                errors::write_admin_path(head.path, self.admin_url.get().map(String::as_str), reply);
                None
            }
            Err(error) => {
                error.write(reply);
                None
            }
        }
    }

    /// Checks path, method, token, media type, query and timeout.
    fn check_head(&self, head: &Head<'_>) -> Result<PreparedCall, ApiError> {
        let route = Route::find(head.path).ok_or(errors::NO_SUCH_PATH)?;
        match (route.is_read_only(), head.method) {
            (true, "GET" | "HEAD") | (false, "POST") => {}
            (true, _) => return Err(errors::ONLY_GET),
            (false, _) => return Err(errors::ONLY_POST),
        }
        let scope = match route.is_public() {
            true => TokenScope::ALL,
            false => self.service.authorize(head.authorization).ok_or(NO_TOKEN)?,
        };
        if head.is_from_page() && self.service.tokens.is_none() && !route.is_read_only() {
            return Err(errors::FROM_A_PAGE);
        }
        check_encoding(head)?;
        if !route.is_read_only() && !is_json(head) {
            return Err(errors::NOT_JSON);
        }
        let refuse_by_status = match head.query {
            Some("status=429") => Some(true),
            Some("status=200") => Some(false),
            None | Some("") => None,
            Some(_) if route.is_read_only() => None,
            Some(_) => return Err(errors::UNKNOWN_PARAMETER),
        };
        let media = head.accept.map_or(Media::Problem, Media::accepted);
        let deadline = request_timeout(head)?;
        let trace = self.service.trace(|| head.headers.all("traceparent").into_iter());
        Ok(PreparedCall { route, refuse_by_status, media, scope, deadline, trace })
    }

    /// The question of a call for usage, which is in its query.
    fn usage_query(&self, call: PreparedCall, head: &Head<'_>) -> Option<UsageQuery> {
        (call.route == Route::Usage).then(|| UsageQuery::new(call, head.query))
    }

    /// Answers a call: at once, or by the returned future if it has to wait.
    fn begin_call<'a>(
        &'a self,
        call: &'a PreparedCall,
        body: &'a [u8],
        reply: &'a mut Reply,
    ) -> Option<PendingResponse<'a>> {
        let pending = match call.route {
            Route::Check(_) => self.check(*call, body, reply)?,
            _ => Box::pin(self.dispatch(*call, body, reply)),
        };
        Some(match call.deadline {
            None => pending,
            deadline => Box::pin(tollgate_service::with_deadline(deadline, pending)),
        })
    }

    /// Decides one request: at once, or by the returned future if it has to wait for the store.
    fn check<'a>(&'a self, call: PreparedCall, body: &'a [u8], reply: &'a mut Reply) -> Option<PendingResponse<'a>> {
        let request = match read_check(body) {
            Ok(request) if !self.may_ask(call, &request) => {
                OTHER_NAMESPACE.write(reply);
                return None;
            }
            Ok(request) => request,
            Err(error) => {
                write_body_error(&error, reply);
                return None;
            }
        };
        let pending = self.check_now(call, &request, reply)?;
        Some(Box::pin(async move {
            let lists = request.lists();
            let decision = self.service.decide_pending(&[request.request(&lists)], pending).await;
            self.write(call, &decision, reply);
        }))
    }

    /// Decides at once if possible. Separate from the part that waits: the decision is rendered here and not moved
    /// through the state of a future.
    fn check_now(&self, call: PreparedCall, request: &CheckRequest<'_>, reply: &mut Reply) -> Option<PendingCheck> {
        let lists = request.lists();
        match self.service.try_decide(&[request.request(&lists)]) {
            Ok(decision) => {
                self.write(call, &decision, reply);
                None
            }
            Err(pending) => Some(pending),
        }
    }

    fn write(&self, call: PreparedCall, decision: &Decision, reply: &mut Reply) {
        render::write_decision(decision, &call.options(), &self.service.render, reply);
    }

    async fn dispatch(&self, call: PreparedCall, body: &[u8], reply: &mut Reply) {
        match call.route {
            Route::Check(_) => {
                if let Some(pending) = self.check(call, body, reply) {
                    pending.await;
                }
            }
            Route::Batch => self.batch(call, body, reply).await,
            Route::Reserve => self.reserve(call, "reservation", body, reply).await,
            Route::Extend => self.extend(call, body, reply).await,
            Route::Settle => self.settle(body, reply).await,
            Route::Acquire => self.reserve(call, "slot", body, reply).await,
            Route::Renew => self.renew(body, reply).await,
            Route::Release => self.release(body, reply).await,
            Route::Explain => self.explain(call, body, reply).await,
            Route::RlsJson => Box::pin(self.rls_json(call, body, reply)).await, // large and rare
            Route::RlsHealth => self.rls_health(reply).await,
            Route::Usage => errors::NO_SUCH_PATH.write(reply), // has a query: see `usage`
            Route::Live => write_json(200, "{\"live\":true}", reply),
            Route::Ready => self.ready(reply).await,
            Route::OpenApi => write_json(200, openapi::TEXT, reply),
        }
    }

    /// True if the caller's token covers the namespace of a request.
    fn may_ask(&self, call: PreparedCall, request: &CheckRequest<'_>) -> bool {
        self.service.may_ask(call.scope, request.namespace())
    }
}

/// First path segments of the admin API, with or without /v1: a common mistake is to send them to the data port.
const ADMIN_PATHS: &[&str] =
    &["rules", "overrides", "clients", "violations", "audit", "tokens", "generations", "mode", "status"];

fn is_admin_path(path: &str) -> bool {
    let first = path.strip_prefix("/v1/").or_else(|| path.strip_prefix('/')).and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| ADMIN_PATHS.contains(&first))
}

/// True for a JSON media type or none. The form type that curl sends by default is accepted too, but not from a
/// browser: a page may send forms to any site.
fn is_json(head: &Head<'_>) -> bool {
    let Some(value) = head.content_type else { return !head.is_from_page() };
    let media = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    media.eq_ignore_ascii_case(b"application/json")
        || (media.to_ascii_lowercase().starts_with(b"application/") && media.to_ascii_lowercase().ends_with(b"+json"))
        || (media.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") && !head.is_from_page())
}
