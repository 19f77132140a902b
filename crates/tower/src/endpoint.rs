//! What a request asks for: `METHOD /path`, by the matched route or the raw path.

use http::Method;
use http::request::Parts;
use tollgate_rules::{EscapedSlash, PathError, canonical_path};

/// How the endpoint of a request is spelled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndpointOptions {
    /// The raw path also where the route is known.
    pub(crate) raw: bool,
    /// The router takes letters in any case for the same.
    pub(crate) case_insensitive: bool,
    /// The router takes `/a/` for `/a`.
    pub(crate) ignores_trailing_slash: bool,
}

impl EndpointOptions {
    /// The endpoint, or why its path is malformed.
    pub(crate) fn endpoint(self, request: &Parts) -> Result<String, PathError> {
        let raw = raw_path(request);
        // Also where the route is known: routers match what they would not agree on with the server behind them.
        canonical_path(raw, EscapedSlash::Reject)?;
        let method = method_of(&request.method);
        let route = if self.raw { None } else { matched_route(request) };
        let mut endpoint = String::with_capacity(method.len() + 1 + route.unwrap_or(raw).len());
        endpoint.push_str(method);
        endpoint.push(' ');
        match route {
            Some(route) => endpoint.push_str(route),
            None => self.push_raw(raw, &mut endpoint),
        }
        Ok(endpoint)
    }

    fn push_raw(self, raw: &str, endpoint: &mut String) {
        let trimmed = raw.trim_end_matches('/');
        let path = if self.ignores_trailing_slash && !trimmed.is_empty() { trimmed } else { raw };
        match self.case_insensitive {
            true => endpoint.extend(path.chars().map(|letter| letter.to_ascii_lowercase())),
            false => endpoint.push_str(path),
        }
    }
}

/// HEAD counts as GET, or it would pass a limit of GET.
fn method_of(method: &Method) -> &str {
    if method == Method::HEAD { "GET" } else { method.as_str() }
}

/// The path as it was received: routers that are nested see only the end of it.
fn raw_path(request: &Parts) -> &str {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = request.extensions.get::<axum::extract::OriginalUri>() {
        return uri.path();
    }
    request.uri.path()
}

#[cfg(feature = "axum")]
fn matched_route(request: &Parts) -> Option<&str> {
    request.extensions.get::<axum::extract::MatchedPath>().map(axum::extract::MatchedPath::as_str)
}

#[cfg(not(feature = "axum"))]
fn matched_route(_: &Parts) -> Option<&str> {
    None
}
