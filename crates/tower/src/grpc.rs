//! Refusals for callers of gRPC: a status of the call, without messages.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

const GRPC: &str = "application/grpc";

/// True for calls of gRPC. gRPC-Web reads statuses of HTTP.
pub(crate) fn is_grpc(request: &Parts) -> bool {
    let kind = request.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let rest = kind.and_then(|kind| kind.strip_prefix(GRPC));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// The same refusal as a gRPC response without messages. The fields stay, as metadata.
pub(crate) fn grpc_refusal(response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    let (mut parts, _) = response.into_parts();
    let (code, message) = match parts.status {
        StatusCode::TOO_MANY_REQUESTS => ("8", "the limit is reached: retry later"),
        StatusCode::BAD_REQUEST => ("3", "the path is malformed"),
        StatusCode::SERVICE_UNAVAILABLE => ("14", "limits cannot be checked at the moment"),
        _ => ("7", "refused"),
    };
    parts.status = StatusCode::OK;
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    parts.headers.insert("grpc-status", HeaderValue::from_static(code));
    parts.headers.insert("grpc-message", HeaderValue::from_static(message));
    Response::from_parts(parts, Full::default())
}
