//! Responses that the gateway writes itself: to requests that it cannot forward, and for servers that do not answer.
//! They say what the caller can do, and nothing about what stands behind the gateway.

use std::borrow::Cow;

use http::{HeaderValue, header};
use tollgate_core::Span;
use tollgate_cost::llm::LlmDialect;
use tollgate_cost::{CostError, CostErrorKind};
use tollgate_identity::Unauthenticated;
use tollgate_overload::retry_after_overload;
use tollgate_rules::path::PathError;
use tollgate_service::render::{self, DenialText, ProblemDetails};
use tollgate_service::{ApiError, Reply, random};
use tollgate_web::{HttpError, ResponseBody, WebResponse, http_error, response_of};

use crate::refusal_body::{RefusalStyle, RefusalText, add_member, respond};
use crate::upstream::UpstreamError;

/// Why a request gets a response of the gateway's own, other than a limit.
#[derive(Debug)]
pub(crate) enum GatewayRefusal {
    /// The path has more than one reading.
    Path(PathError),
    /// CONNECT asks for a tunnel to anywhere, TRACE for what the gateway adds.
    Method,
    /// No route has these conditions.
    NoRoute,
    /// A credential is required.
    Unauthenticated(Unauthenticated),
    /// What the request costs cannot be said, or is more than the route allows.
    Cost(CostError),
    /// The request cannot be read, or not be forwarded.
    Upstream(UpstreamError),
}

impl From<PathError> for GatewayRefusal {
    fn from(error: PathError) -> GatewayRefusal {
        GatewayRefusal::Path(error)
    }
}

impl From<Unauthenticated> for GatewayRefusal {
    fn from(why: Unauthenticated) -> GatewayRefusal {
        GatewayRefusal::Unauthenticated(why)
    }
}

impl From<CostError> for GatewayRefusal {
    fn from(error: CostError) -> GatewayRefusal {
        GatewayRefusal::Cost(error)
    }
}

impl From<UpstreamError> for GatewayRefusal {
    fn from(error: UpstreamError) -> GatewayRefusal {
        GatewayRefusal::Upstream(error)
    }
}

const METHOD: ApiError =
    ApiError::new(405, "method_not_forwarded", "Method not allowed", "CONNECT and TRACE are not forwarded.");
const NO_ROUTE: ApiError = ApiError::new(404, "no_route", "Not found", "Nothing is served under this host and path.");
const UNREACHABLE: ApiError =
    ApiError::new(502, "upstream_unreachable", "Bad gateway", "The service behind this address cannot be reached.");
const BROKEN: ApiError =
    ApiError::new(502, "upstream_broken", "Bad gateway", "The service behind this address gave no usable answer.");
const LATE: ApiError = ApiError::new(
    504,
    "upstream_timeout",
    "Gateway timeout",
    "The service behind this address did not answer in time.",
);
const NO_SERVER: ApiError =
    ApiError::new(503, "no_server", "Service unavailable", "The service behind this address is down; try again later.");
const OVERLOAD: ApiError = ApiError::new(
    503,
    "overload",
    "Service unavailable",
    "The service behind this address has as much to do as it can; try again later.",
);
const NO_UPGRADE: ApiError = ApiError::new(
    502,
    "no_upgrade",
    "Bad gateway",
    "The service behind this address cannot switch protocols on its connections.",
);

const NO_AMOUNT: &str = "The request says no amount of something that is limited here.";

/// After which a caller may try again where nothing is known about the load to come.
const RETRY_AFTER: Span = Span::from_secs(30);

impl GatewayRefusal {
    /// The label in metrics and the access log.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            GatewayRefusal::Path(_) => "bad_path",
            GatewayRefusal::Method => "bad_method",
            GatewayRefusal::NoRoute => "no_route",
            GatewayRefusal::Unauthenticated(_) => "unauthenticated",
            GatewayRefusal::Cost(_) => "bad_cost",
            GatewayRefusal::Upstream(error) => error.label(),
        }
    }

    /// The response.
    pub(crate) fn response(&self, style: Option<&RefusalStyle>, decision_id: &str) -> WebResponse {
        if let GatewayRefusal::Cost(CostError { kind: CostErrorKind::PersistedQueryNotFound, .. }) = self {
            return persisted_query_not_found();
        }
        let error = self.error();
        let mut reply = Reply::default();
        reply.clear();
        let GatewayError { fixed, detail, waits } = &error;
        let ApiError { status, code, title, field, closes, .. } = *fixed;
        render::write_problem(&ProblemDetails { status, code, title, detail, field: None }, &mut reply);
        // The names that refusals of limits have, so that programs read one form.
        add_member("error", code, &mut reply.body);
        add_member("message", detail, &mut reply.body);
        if let Some((name, value)) = field {
            reply.fields.push(name, value);
        }
        if *waits {
            // It differs, so that callers do not come back together.
            let secs = retry_after_overload(RETRY_AFTER, random::fast());
            reply.fields.push("Retry-After", &secs.to_string());
        }
        if let GatewayRefusal::Unauthenticated(why) = self {
            why.challenges.iter().for_each(|challenge| reply.fields.push("WWW-Authenticate", challenge));
        }
        reply.close |= closes;
        let text = RefusalText { code, message: detail, rule: None, doc_url: None, decision_id };
        respond(style, &text, reply)
    }

    fn error(&self) -> GatewayError<'_> {
        let plain = |fixed: ApiError| GatewayError { fixed, detail: fixed.detail.into(), waits: false };
        match self {
            GatewayRefusal::Path(error) => GatewayError {
                detail: format!("The path cannot be used: {error}.").into(),
                ..plain(ApiError::new(400, error.code(), "Bad request", ""))
            },
            GatewayRefusal::Method => plain(METHOD),
            GatewayRefusal::NoRoute => plain(NO_ROUTE),
            GatewayRefusal::Unauthenticated(why) => {
                plain(ApiError::new(401, "unauthenticated", "Unauthorized", why.message()))
            }
            GatewayRefusal::Cost(error) => {
                let status = error.kind.status();
                let title = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
                let fixed = ApiError::new(status, error.kind.code(), title.unwrap_or("Bad request"), "");
                GatewayError { detail: Cow::Borrowed(&*error.message), ..plain(fixed) }
            }
            GatewayRefusal::Upstream(error) => match error {
                UpstreamError::NoServer | UpstreamError::BreakerOpen => {
                    GatewayError { waits: true, ..plain(NO_SERVER) }
                }
                UpstreamError::Full | UpstreamError::Shed(_) => GatewayError { waits: true, ..plain(OVERLOAD) },
                UpstreamError::NoUpgrade => plain(NO_UPGRADE),
                UpstreamError::Connect(_) => plain(UNREACHABLE),
                UpstreamError::Timeout(_) => plain(LATE),
                UpstreamError::TwoFramings | UpstreamError::UnaskedUpgrade | UpstreamError::Broken(_) => plain(BROKEN),
                UpstreamError::RequestBody(error) => plain(http_error(*error)),
            },
        }
    }
}

/// What a refusal says.
struct GatewayError<'a> {
    fixed: ApiError,
    detail: Cow<'a, str>,
    /// It says when to come back, where nothing is known about the load to come.
    waits: bool,
}

/// Gives the refusal of a limit the form that clients of a language model read. Its header fields stay.
pub(crate) fn llm_refusal(dialect: LlmDialect, status: u16, rule: Option<&str>, response: &mut WebResponse) {
    let message = match (status, rule) {
        (503, _) | (_, None) => "The request cannot be admitted now; try again later.".to_owned(),
        (_, Some(rule)) if response.headers().contains_key(header::RETRY_AFTER) => {
            format!("The limit of the rule '{rule}' is reached; try again after the time in Retry-After.")
        }
        (_, Some(rule)) => format!("The request asks for more than the rule '{rule}' ever allows; ask for less."),
    };
    *response.body_mut() = ResponseBody::full(dialect.refusal(status, &message));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

/// The response that clients with automatic persisted queries read: they send the query again, with its text.
fn persisted_query_not_found() -> WebResponse {
    const BODY: &str =
        r#"{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#;
    let mut response = WebResponse::new(ResponseBody::full(BODY));
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What callers read: of a request that the rules cannot be applied to, which rules there are is not for them.
pub(crate) fn public_text(text: DenialText<'_>) -> DenialText<'_> {
    match text.code {
        "missing_meter" => DenialText { message: NO_AMOUNT.to_owned(), ..text },
        _ => text,
    }
}

/// Writes the problem of a request that the rules cannot be applied to.
pub(crate) fn write_invalid(text: &DenialText<'_>, reply: &mut Reply) {
    let DenialText { code, message } = text;
    let title = "The request is not valid";
    render::write_problem(&ProblemDetails { status: 400, code, title, detail: message, field: None }, reply);
    add_member("error", code, &mut reply.body);
    add_member("message", message, &mut reply.body);
}

/// The response to a request that cannot be read. The connection closes behind it.
pub(crate) fn unreadable(error: HttpError) -> WebResponse {
    let mut reply = Reply::default();
    reply.clear();
    http_error(error).write(&mut reply);
    response_of(reply)
}
