//! A decision as HTTP: fields for a response of the application, or a whole response.

use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use tollgate_render::{HeaderFields, ProblemDetails, Reply, write_problem};

/// A decision as HTTP.
#[derive(Clone, Debug, Default)]
pub struct LimitedResponse {
    /// Status, if the request is refused.
    pub status: u16,
    /// Header fields.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// Body, if the request is refused.
    pub body: Bytes,
}

impl LimitedResponse {
    /// The fields that were rendered. One buffer holds all values.
    pub(crate) fn of_fields(fields: &HeaderFields) -> LimitedResponse {
        let mut values = BytesMut::with_capacity(256);
        let mut all = Vec::with_capacity(8);
        for (name, value) in fields.iter() {
            values.extend_from_slice(value);
            // Rendered fields are visible ASCII.
            if let (Some(name), Ok(value)) = (field_name(name), HeaderValue::from_maybe_shared(values.split().freeze()))
            {
                all.push((name, value));
            }
        }
        LimitedResponse { status: 200, fields: all, body: Bytes::new() }
    }

    /// An error of the request or of the application, as problem details.
    pub(crate) fn problem(status: u16, code: &str, title: &str, detail: &str) -> LimitedResponse {
        let mut reply = Reply::default();
        write_problem(&ProblemDetails { status, code, title, detail, field: None }, &mut reply);
        LimitedResponse { status, body: reply.body.into(), ..LimitedResponse::of_fields(&reply.fields) }
    }

    /// Adds the fields to a response of the application.
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        headers.reserve(self.fields.len());
        for (name, value) in self.fields {
            headers.insert(name, value);
        }
    }

    /// The response to a refused request.
    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        let mut response = Response::new(Full::from(self.body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.reserve(self.fields.len());
        for (name, value) in self.fields {
            headers.insert(name, value);
        }
        response
    }
}

/// The name of a field: those of the usual styles are known to the compiler.
fn field_name(name: &'static str) -> Option<HeaderName> {
    const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
    const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
    const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
    const RESOURCE: HeaderName = HeaderName::from_static("x-ratelimit-resource");
    const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
    const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
    Some(match name {
        "X-RateLimit-Limit" => LIMIT,
        "X-RateLimit-Remaining" => REMAINING,
        "X-RateLimit-Reset" => RESET,
        "X-RateLimit-Resource" => RESOURCE,
        "RateLimit-Policy" => POLICY,
        "RateLimit" => RATE_LIMIT,
        "Retry-After" => RETRY_AFTER,
        "Content-Type" => CONTENT_TYPE,
        "Cache-Control" => CACHE_CONTROL,
        other => return HeaderName::from_bytes(other.as_bytes()).ok(),
    })
}
