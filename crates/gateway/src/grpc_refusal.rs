//! Refusals for callers of gRPC: their clients read the status of a call from `grpc-status`, and take a body of any other
//! kind for a broken message.

use http::{HeaderMap, HeaderValue, StatusCode, header};
use tollgate_web::{ResponseBody, WebResponse};

const GRPC: &str = "application/grpc";

/// True for calls of gRPC; gRPC-Web is read by other rules.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let rest = kind.and_then(|kind| kind.strip_prefix(GRPC));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// The same refusal as a gRPC response without messages. Fields such as `Retry-After` stay.
pub(crate) fn grpc_refusal(response: WebResponse) -> WebResponse {
    let (mut parts, _) = response.into_parts();
    let code = HeaderValue::from_static(code(parts.status));
    let message = parts.status.canonical_reason().unwrap_or("refused");
    parts.status = StatusCode::OK;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(GRPC));
    parts.headers.insert("grpc-status", code);
    parts.headers.insert("grpc-message", HeaderValue::from_static(message));
    WebResponse::from_parts(parts, ResponseBody::empty())
}

/// As gRPC maps statuses of HTTP, but that a limit is `RESOURCE_EXHAUSTED`: the call would succeed later.
fn code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        429 | 413 => "8",
        400 => "13",
        401 => "16",
        403 => "7",
        404 | 405 => "12",
        502..=504 => "14",
        408 => "4",
        _ => "2",
    }
}
