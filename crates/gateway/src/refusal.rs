//! Responses that the gateway writes itself: to requests that it cannot forward, and for servers that do not answer.
//! They say what the caller can do, and nothing about what stands behind the gateway.

use http::{HeaderValue, header};
use tollgate_core::Span;
use tollgate_cost::CostError;
use tollgate_cost::llm::LlmDialect;
use tollgate_identity::Unauthenticated;
use tollgate_overload::retry_after_overload;
use tollgate_rules::path::PathError;
use tollgate_service::render::ProblemDetails;
use tollgate_service::{ApiError, Reply, random};
use tollgate_web::{HttpError, ResponseBody, WebResponse, http_error, response_of};

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
    pub(crate) fn response(&self) -> WebResponse {
        match self {
            GatewayRefusal::Path(error) => {
                let detail = format!("The path cannot be used: {error}.");
                problem(400, error.code(), "Bad request", &detail)
            }
            GatewayRefusal::Method => plain(METHOD),
            GatewayRefusal::NoRoute => plain(NO_ROUTE),
            GatewayRefusal::Unauthenticated(why) => {
                let mut response = problem(401, "unauthenticated", "Unauthorized", why.message());
                for challenge in why.challenges {
                    response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
                }
                response
            }
            GatewayRefusal::Cost(error) => {
                let status = error.kind.status();
                let title = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
                problem(status, error.kind.code(), title.unwrap_or("Bad request"), &error.message)
            }
            GatewayRefusal::Upstream(error) => match error {
                UpstreamError::NoServer | UpstreamError::BreakerOpen => later(NO_SERVER),
                UpstreamError::Full | UpstreamError::Shed(_) => later(OVERLOAD),
                UpstreamError::NoUpgrade => plain(NO_UPGRADE),
                UpstreamError::Connect(_) => plain(UNREACHABLE),
                UpstreamError::Timeout(_) => plain(LATE),
                UpstreamError::TwoFramings | UpstreamError::UnaskedUpgrade | UpstreamError::Broken(_) => plain(BROKEN),
                UpstreamError::RequestBody(error) => unreadable(*error),
            },
        }
    }
}

/// Gives the refusal of a limit the form that clients of a language model read. Its header fields stay.
pub(crate) fn llm_refusal(dialect: LlmDialect, status: u16, rule: Option<&str>, response: &mut WebResponse) {
    let message = match (status, rule) {
        (503, _) | (_, None) => "The request cannot be admitted now; try again later.".to_owned(),
        (_, Some(rule)) => {
            format!("The limit of the rule '{rule}' is reached; try again after the time in Retry-After.")
        }
    };
    *response.body_mut() = ResponseBody::full(dialect.refusal(status, &message));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

/// The response to a request that cannot be read. The connection closes behind it.
pub(crate) fn unreadable(error: HttpError) -> WebResponse {
    plain(http_error(error))
}

fn plain(error: ApiError) -> WebResponse {
    let mut reply = Reply::default();
    reply.clear();
    error.write(&mut reply);
    response_of(reply)
}

/// An error with a time to wait, which differs so that callers do not come back together.
fn later(error: ApiError) -> WebResponse {
    let mut response = plain(error);
    let secs = retry_after_overload(RETRY_AFTER, random::fast());
    response.headers_mut().insert(header::RETRY_AFTER, secs.into());
    response
}

fn problem(status: u16, code: &str, title: &str, detail: &str) -> WebResponse {
    let mut reply = Reply::default();
    reply.clear();
    tollgate_service::render::write_problem(&ProblemDetails { status, code, title, detail, field: None }, &mut reply);
    response_of(reply)
}
