//! The check API: JSON in, a call of the service, JSON out.
//!
//! | file | what |
//! |---|---|
//! | `route` | paths and methods |
//! | `check` | `/v1/check`, `/v1/check/batch` |
//! | `reserve` | `/v1/reserve`, `/v1/extend`, `/v1/settle`, `/v1/slots/…` |
//! | `explain` | `/v1/explain` |
//! | `usage` | `/v1/usage` |
//! | `rls_json` | Envoy's rate limit service as JSON: `/json`, `/healthcheck` |
//! | `health` | `/ready` |
//! | `errors` | errors of paths, methods and media types |

mod check;
mod errors;
mod explain;
mod health;
mod reserve;
mod rls_json;
mod route;
mod usage;

pub use route::Route;
pub use usage::UsageQuery;

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;
use tollgate_net::{Drain, NetLimits};
use tollgate_service::data_tokens::TokenScope;
use tollgate_service::refusal::{NO_TOKEN, write_json};
use tollgate_service::render::{Dialect, Media, ResponseOptions};
use tollgate_service::{ApiError, CheckRequest, Reply, Service};
use tollgate_web::{Head, HttpError, PendingResponse, check_encoding, request_timeout};

/// The check API of a listener.
pub struct CheckApi {
    pub(crate) service: Arc<Service>,
    pub(crate) limits: NetLimits,
    pub(crate) drain: Drain,
    pub(crate) admin_url: Arc<OnceLock<String>>,
}

/// State from the head, kept while the body is read.
#[derive(Clone, Copy, Debug)]
pub struct PreparedCall {
    route: Route,
    refuse_by_status: Option<bool>,
    media: Media,
    /// The namespaces that the caller's token covers.
    scope: TokenScope,
    /// When the caller stops waiting.
    deadline: Option<Instant>,
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
        ResponseOptions { dialect, deny_by_status: refuse_by_status, media, random: tollgate_service::random::fast() }
    }
}

/// First path segments of the admin API, with or without /v1: a common mistake is to send them to the data port.
const ADMIN_PATHS: &[&str] =
    &["rules", "overrides", "clients", "violations", "audit", "tokens", "generations", "mode", "status"];

fn is_admin_path(path: &str) -> bool {
    let first = path.strip_prefix("/v1/").or_else(|| path.strip_prefix('/')).and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| ADMIN_PATHS.contains(&first))
}

impl CheckApi {
    /// Checks a head. Returns the call and the maximum length of its body, or fills the reply with an error.
    pub(crate) fn prepare(&self, head: &Head<'_>, reply: &mut Reply) -> Option<(PreparedCall, usize)> {
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
        Ok(PreparedCall { route, refuse_by_status, media, scope, deadline })
    }

    /// The question of a call for usage, which is in its query.
    pub(crate) fn usage_query(&self, call: PreparedCall, head: &Head<'_>) -> Option<UsageQuery> {
        (call.route == Route::Usage).then(|| UsageQuery::new(call, head.query))
    }

    /// Answers a call: at once, or by the returned future if it has to wait.
    pub(crate) fn begin<'a>(
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
        }
    }

    /// True if the caller's token covers the namespace of a request.
    fn may_ask(&self, call: PreparedCall, request: &CheckRequest<'_>) -> bool {
        self.service.may_ask(call.scope, request.namespace())
    }

    /// Fills the reply to a message that cannot be read.
    pub(crate) fn reject(&self, error: HttpError, reply: &mut Reply) {
        tollgate_web::http_error(error).write(reply);
    }
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
