//! Call head: method, token and deadline, checked before the body is read.

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;
use tonic::Status;

use super::convert::no_token;
use super::deadline::{InvalidTimeout, timeout};
use super::method::GrpcMethod;
use super::services::Services;
use tollgate_service::data_tokens::TokenScope;
use tollgate_service::trace::TraceContext;
use tollgate_web::h2_head;

/// A call whose head was accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrpcCall {
    pub(super) method: GrpcMethod,
    /// From `grpc-timeout`.
    pub(super) deadline: Option<Instant>,
    /// Namespaces that the caller's token covers.
    pub(super) scope: TokenScope,
    /// The trace that it belongs to, if decisions are traced.
    pub(super) trace: Option<TraceContext>,
}

/// Why the head of a call was rejected.
pub(super) enum CallRejection {
    /// Not a gRPC request: answered with an HTTP status.
    Http(StatusCode),
    /// gRPC error; the method is `None` if it is unknown or unavailable.
    Grpc(Option<GrpcMethod>, Box<Status>),
}

impl GrpcCall {
    /// Validates and authorizes the head of a call.
    pub(super) fn from_head(services: &Services, head: &Parts) -> Result<GrpcCall, CallRejection> {
        if h2_head::check(head).is_err() {
            return Err(CallRejection::Http(StatusCode::BAD_REQUEST));
        }
        if head.method != http::Method::POST {
            return Err(CallRejection::Http(StatusCode::METHOD_NOT_ALLOWED));
        }
        if !head.headers.get(CONTENT_TYPE).is_some_and(|value| is_grpc(value.as_bytes())) {
            return Err(CallRejection::Http(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        if head.headers.len() > services.limits().max_headers {
            return Err(CallRejection::Http(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        let reject = |method, status| Err(CallRejection::Grpc(method, Box::new(status)));
        let Some(method) = GrpcMethod::find(head.uri.path()).filter(|method| services.offers(*method)) else {
            return reject(None, Status::unimplemented("there is no such method here"));
        };
        let scope = if method.is_public() { Some(TokenScope::ALL) } else { services.authorize(token(&head.headers)) };
        let Some(scope) = scope else {
            return reject(Some(method), no_token());
        };
        match timeout(&head.headers) {
            Ok(timeout) => {
                let sent = || head.headers.get_all("traceparent").iter().map(HeaderValue::as_bytes);
                let (deadline, trace) = (timeout.map(|timeout| Instant::now() + timeout), services.service.trace(sent));
                Ok(GrpcCall { method, deadline, scope, trace })
            }
            Err(InvalidTimeout) => reject(Some(method), Status::invalid_argument("grpc-timeout: is no time")),
        }
    }

    /// True once the deadline has passed.
    pub(super) fn is_expired(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// The `Authorization` value; `None` if there are several, because the choice would be ambiguous.
pub(super) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let first = all.next()?;
    all.next().is_none().then_some(first.as_bytes())
}

/// `application/grpc`, `application/grpc+proto`, with or without parameters.
fn is_grpc(value: &[u8]) -> bool {
    let Some(rest) = value.strip_prefix(b"application/grpc") else { return false };
    let rest = rest.strip_prefix(b"+proto").unwrap_or(rest).trim_ascii_start();
    rest.is_empty() || rest.starts_with(b";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_grpc_content_types() {
        for good in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
            assert!(is_grpc(good.as_bytes()), "{good}");
        }
        for bad in ["", "application/json", "application/grpc-web", "application/grpc+json", "application/grpcs"] {
            assert!(!is_grpc(bad.as_bytes()), "{bad}");
        }
    }
}
