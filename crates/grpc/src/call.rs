//! What the head of a call says: which method, who calls, how long it waits.

use std::sync::Arc;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;
use tonic::Status;

use super::method::Method;
use super::services::Services;
use super::timeout::{Malformed, timeout};
use tollgate_service::data_tokens::TokenScope;
use tollgate_web::h2_head;

/// A call that may be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    /// When the caller stops waiting.
    pub(super) deadline: Option<Instant>,
    /// Which namespaces the caller's token is for.
    pub(super) scope: TokenScope,
}

/// The `Authorization` value of a call that goes on: it is looked at again while it does.
#[derive(Clone, Debug)]
pub(super) struct PresentedToken(pub(super) Arc<[u8]>);

impl PresentedToken {
    /// A copy of it: the head holds on to everything that was read with it.
    pub(super) fn of(headers: &HeaderMap) -> Option<PresentedToken> {
        token(headers).map(|token| PresentedToken(token.into()))
    }
}

/// Why a call is not answered.
pub(super) enum Refused {
    /// It is no gRPC.
    Http(StatusCode),
    /// It is none that is answered here.
    Grpc(Option<Method>, Box<Status>),
}

impl Call {
    /// Everything that can be said about a call before its body.
    pub(super) fn open(services: &Services, head: &Parts) -> Result<Call, Refused> {
        if h2_head::check(head).is_err() {
            return Err(Refused::Http(StatusCode::BAD_REQUEST));
        }
        if head.method != http::Method::POST {
            return Err(Refused::Http(StatusCode::METHOD_NOT_ALLOWED));
        }
        if !head.headers.get(CONTENT_TYPE).is_some_and(|value| is_grpc(value.as_bytes())) {
            return Err(Refused::Http(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        if head.headers.len() > services.limits().max_headers {
            return Err(Refused::Http(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        let refused = |method, status| Err(Refused::Grpc(method, Box::new(status)));
        let Some(method) = Method::find(head.uri.path()).filter(|method| services.offers(*method)) else {
            return refused(None, Status::unimplemented("there is no such method here"));
        };
        let scope = if method.is_public() { Some(TokenScope::ALL) } else { services.authorize(token(&head.headers)) };
        let Some(scope) = scope else {
            return refused(Some(method), Status::unauthenticated(NO_TOKEN));
        };
        match timeout(&head.headers) {
            Ok(timeout) => Ok(Call { method, deadline: timeout.map(|timeout| Instant::now() + timeout), scope }),
            Err(Malformed) => refused(Some(method), Status::invalid_argument("grpc-timeout: is no time")),
        }
    }

    /// True once the caller no longer waits.
    pub(super) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// What a caller is told that came too late, or was answered too late.
pub(super) fn too_late() -> Status {
    Status::deadline_exceeded("the time that grpc-timeout gave is over")
}

pub(super) const NO_TOKEN: &str = "send a token that this server knows, as metadata: authorization: Bearer TOKEN";

/// What a caller is told whose token is for other namespaces.
pub(super) fn other_namespace() -> Status {
    Status::permission_denied("this token is not for that namespace")
}

/// The one token that was sent: of several, which would count?
fn token(headers: &HeaderMap) -> Option<&[u8]> {
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
    fn tells_grpc_from_what_looks_like_it() {
        for good in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
            assert!(is_grpc(good.as_bytes()), "{good}");
        }
        for bad in ["", "application/json", "application/grpc-web", "application/grpc+json", "application/grpcs"] {
            assert!(!is_grpc(bad.as_bytes()), "{bad}");
        }
    }
}
