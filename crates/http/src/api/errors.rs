//! Errors of the check API: paths, methods, media types and parameters.

use tollgate_service::render::{ProblemDetails, write_problem};
use tollgate_service::{ApiError, Reply};

pub(super) const NO_SUCH_PATH: ApiError = ApiError::new(
    404,
    "no_such_path",
    "Not found",
    "There is no such path here. POST /v1/check decides a request; /metrics is on the admin port.",
);
pub(super) const ONLY_POST: ApiError = ApiError {
    field: Some(("Allow", "POST")),
    ..ApiError::new(405, "method_not_allowed", "Method not allowed", "Use POST: a check changes what is left.")
};
pub(super) const ONLY_GET: ApiError = ApiError {
    field: Some(("Allow", "GET, HEAD")),
    ..ApiError::new(405, "method_not_allowed", "Method not allowed", "Use GET.")
};
pub(super) const FROM_A_PAGE: ApiError = ApiError::new(
    403,
    "from_a_page",
    "Forbidden",
    "Web pages may not call this API: call it from your server, or configure tokens.",
);
pub(super) const NOT_JSON: ApiError = ApiError::new(
    415,
    "not_json_media_type",
    "Unsupported media type",
    "Send JSON, with Content-Type: application/json.",
);
pub(super) const UNKNOWN_PARAMETER: ApiError = ApiError::new(
    400,
    "unknown_parameter",
    "Bad request",
    "The only parameter is status: ?status=429 answers denials with 429.",
);

/// Fills the reply for a path of the admin API, with its URL there.
pub(super) fn write_admin_path(path: &str, admin: Option<&str>, reply: &mut Reply) {
    let path = if path.starts_with("/v1/") { path.to_owned() } else { format!("/v1{path}") };
    let detail = match admin {
        Some(admin) => format!("This is the data API. The admin API has this path: {admin}{path}."),
        None => format!("This is the data API. The admin API would have {path}; start the server with --admin ADDR."),
    };
    write_problem(
        &ProblemDetails { status: 404, code: "no_such_path", title: "Not found", detail: &detail, field: None },
        reply,
    );
}
