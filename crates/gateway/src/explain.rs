//! What the routes make of a request, without sending it.

use http::{HeaderMap, HeaderValue, Method, Uri, header};
use tollgate_rules::path::PathError;
use tollgate_web::Authority;

use crate::canonical::CanonicalPath;
use crate::spec::{GatewaySpec, RouteSpec};

/// What the routes make of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedRequest<'a> {
    /// Routes that come first and are not for the request, with the condition that does not hold.
    pub passed_over: Vec<(&'a str, &'static str)>,
    /// The route, and what it does.
    pub route: Option<RouteMatch<'a>>,
}

/// A route that is for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMatch<'a> {
    /// Its name.
    pub name: &'a str,
    /// The name of its upstream.
    pub upstream: &'a str,
    /// The namespace whose rules decide.
    pub namespace: &'a str,
    /// Method and path as rules see them.
    pub endpoint: String,
    /// Path and query as the server gets them.
    pub target: String,
}

impl GatewaySpec {
    /// What the routes make of a request. An error if two readers could understand its path differently.
    pub fn route_of<'a>(
        &'a self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<RoutedRequest<'a>, PathError> {
        let path = CanonicalPath::parse(if uri.path().is_empty() { "/" } else { uri.path() })?;
        let host = host_of(uri, headers);
        let mut passed_over = Vec::new();
        for route in &self.routes {
            match route.mismatch(&host, method, path.as_str(), headers) {
                Some(condition) => passed_over.push((route.name.as_str(), condition)),
                None => return Ok(RoutedRequest { passed_over, route: Some(found(route, method, &path, uri)?) }),
            }
        }
        Ok(RoutedRequest { passed_over, route: None })
    }
}

fn found<'a>(
    route: &'a RouteSpec,
    method: &Method,
    path: &CanonicalPath<'_>,
    uri: &Uri,
) -> Result<RouteMatch<'a>, PathError> {
    let counted = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Ok(RouteMatch {
        name: &route.name,
        upstream: &route.upstream,
        namespace: route.namespace.as_deref().unwrap_or(tollgate_core::Request::DEFAULT_NAMESPACE),
        endpoint: format!("{counted} {}", path.for_rules(route)?),
        target: format!("{}{query}", path.forwarded(route)),
    })
}

fn host_of(uri: &Uri, headers: &HeaderMap) -> String {
    let named = uri.authority().map(|authority| authority.as_str().as_bytes());
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes).or(named);
    host.and_then(Authority::parse).map(|authority| authority.host.to_ascii_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::read;

    #[test]
    fn names_the_route_and_why_the_others_are_not_it() {
        let spec = read(
            "routes.yaml",
            "upstreams: { a: { servers: http://127.0.0.1:1 } }
routes:
  - { name: admin, host: admin.example.com, upstream: a }
  - { name: write, method: POST, upstream: a }
  - { name: v1, path: /v1/*, upstream: a, strip_prefix: /v1, namespace: orders, case: insensitive }
",
        )
        .unwrap();
        let explain =
            |method: Method, uri: &'static str| spec.route_of(&method, &Uri::from_static(uri), &HeaderMap::new());
        let explained = explain(Method::GET, "http://api.example.com//V1/./Orders?a=1").unwrap();
        assert_eq!(explained.passed_over, [("admin", "host"), ("write", "method")]);
        let route = explained.route.unwrap();
        assert_eq!((route.name, route.upstream, route.namespace), ("v1", "a", "orders"));
        assert_eq!((route.endpoint.as_str(), route.target.as_str()), ("GET /v1/orders", "/Orders?a=1"));
        let none = explain(Method::GET, "http://api.example.com/").unwrap();
        assert_eq!((none.route, none.passed_over.len()), (None, 3));
        assert_eq!(explain(Method::GET, "http://x/v1/a%2Fb"), Err(PathError::EscapedSlash));
    }
}
