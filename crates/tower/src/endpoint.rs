//! What a request asks for: `METHOD /path`, by the raw path or, if that is wanted, the matched route.

use http::Method;
use http::request::Parts;
use tollgate_rules::{EscapedSlash, PathError, canonical_path, has_dot_segment};

/// How the endpoint of a request is spelled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndpointOptions {
    /// The matched route, where it is known.
    pub(crate) by_route: bool,
    /// The router takes letters in any case for the same.
    pub(crate) case_insensitive: bool,
}

impl EndpointOptions {
    /// The endpoint, or why its path is malformed.
    pub(crate) fn endpoint(self, request: &Parts) -> Result<String, PathError> {
        // Also where the route is known: routers match what other servers would read in another way.
        let raw = raw_path(request);
        let path = canonical_path(raw, EscapedSlash::Reject)?;
        // The canonical path has resolved dot segments, and axum has not: it would run the handler of `/orders/{id}` or
        // `/files/{*path}` for `/orders/.` and `/files/../x`.
        if has_dot_segment(raw) {
            return Err(PathError::DotSegment);
        }
        let method = method_of(&request.method);
        let route = if self.by_route { matched_route(request) } else { None };
        let mut endpoint = String::with_capacity(method.len() + 1 + route.map_or(path.len(), str::len));
        endpoint.push_str(method);
        endpoint.push(' ');
        endpoint.push_str(route.unwrap_or(&path));
        if self.case_insensitive && route.is_none() {
            // Escapes of letters are decoded by now.
            if let Some(path) = endpoint.get_mut(method.len()..) {
                path.make_ascii_lowercase();
            }
        }
        Ok(endpoint)
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
