//! Routes, compiled: found by host first, then by the first one whose conditions hold.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use http::{HeaderMap, Method};
use tokio::task::AbortHandle;
use tollgate_core::Clock;

use crate::route_figures::RouteFigures;
use crate::spec::{GatewaySpec, RouteSpec, have_all};
use crate::upstream::{Upstream, check_health};

/// One version of all routes. It is replaced as a whole; requests finish with the one they began with.
pub(crate) struct RouteTable {
    /// Routes of hosts that are named without a star, in the order of the file.
    by_host: HashMap<String, Vec<Arc<CompiledRoute>>>,
    /// Routes for all other hosts.
    others: Vec<Arc<CompiledRoute>>,
    /// All routes, in the order of the file.
    all: Vec<Arc<CompiledRoute>>,
    upstreams: Vec<RunningUpstream>,
}

/// A route and its upstream.
pub(crate) struct CompiledRoute {
    pub(crate) spec: RouteSpec,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) figures: Arc<RouteFigures>,
}

/// An upstream and its active checks, which end with the last table that has it.
#[derive(Clone)]
struct RunningUpstream {
    upstream: Arc<Upstream>,
    _checks: Arc<HealthChecks>,
}

struct HealthChecks(Vec<AbortHandle>);

impl Drop for HealthChecks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl RunningUpstream {
    fn start(spec: &crate::spec::UpstreamSpec, clock: &Arc<dyn Clock>) -> Result<RunningUpstream> {
        let upstream = Upstream::new(spec.clone(), clock.clone()).with_context(|| format!("upstream {}", spec.name))?;
        let upstream = Arc::new(upstream);
        let checks = spec.health.iter().flat_map(|health| {
            upstream.servers().iter().map(|server| tokio::spawn(check_health(server.clone(), health.clone())))
        });
        let checks = Arc::new(HealthChecks(checks.map(|task| task.abort_handle()).collect()));
        Ok(RunningUpstream { upstream, _checks: checks })
    }
}

impl RouteTable {
    /// Compiles the routes. Upstreams that did not change keep their connections and what is known of their servers.
    pub(crate) fn new(spec: &GatewaySpec, before: Option<&RouteTable>, clock: &Arc<dyn Clock>) -> Result<RouteTable> {
        let kept = |spec: &crate::spec::UpstreamSpec| {
            let running = before?.upstreams.iter().find(|running| running.upstream.spec == *spec)?;
            Some(running.clone())
        };
        let upstreams =
            spec.upstreams.iter().map(|spec| kept(spec).map_or_else(|| RunningUpstream::start(spec, clock), Ok));
        let upstreams = upstreams.collect::<Result<Vec<_>>>()?;
        let old = before.iter().flat_map(|table| &table.all);
        let old: HashMap<&str, &Arc<RouteFigures>> =
            old.map(|route| (route.spec.name.as_str(), &route.figures)).collect();
        let routes = spec.routes.iter().map(|route| {
            let named = upstreams.iter().find(|running| running.upstream.spec.name == route.upstream);
            let running = named.with_context(|| format!("no upstream is named {}", route.upstream))?;
            let figures = old.get(route.name.as_str()).map(|figures| Arc::clone(figures)).unwrap_or_default();
            Ok(Arc::new(CompiledRoute { spec: route.clone(), upstream: running.upstream.clone(), figures }))
        });
        let routes = routes.collect::<Result<Vec<Arc<CompiledRoute>>>>()?;
        spec.unreachable().iter().for_each(|route| tracing::warn!("{route}"));
        let mut by_host = HashMap::new();
        for host in routes.iter().flat_map(|route| &route.spec.hosts).filter(|host| !host.starts_with('*')) {
            let own = routes.iter().filter(|route| route.spec.is_for(host)).cloned().collect();
            by_host.insert(host.clone(), own);
        }
        let others = routes.iter().filter(|route| !route.names_only_whole_hosts()).cloned().collect();
        Ok(RouteTable { by_host, others, all: routes, upstreams })
    }

    /// The first route for a request. The host is in lower case and without its port.
    pub(crate) fn find(
        &self,
        host: &str,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<&Arc<CompiledRoute>> {
        let routes = self.by_host.get(host).unwrap_or(&self.others);
        routes.iter().find(|route| route.spec.mismatch(host, method, path, headers).is_none())
    }

    /// All routes, in the order of the file.
    pub(crate) fn routes(&self) -> &[Arc<CompiledRoute>] {
        &self.all
    }

    /// The upstreams.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.upstreams.iter().map(|running| &running.upstream)
    }
}

impl CompiledRoute {
    fn names_only_whole_hosts(&self) -> bool {
        !self.spec.hosts.is_empty() && self.spec.hosts.iter().all(|host| !host.starts_with('*'))
    }
}

impl RouteSpec {
    /// The first condition that does not hold; `None` if the route is for this request.
    pub(crate) fn mismatch(
        &self,
        host: &str,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<&'static str> {
        // Without it, HEAD would reach a route that is meant for others.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        match () {
            () if !self.is_for(host) => Some("host"),
            () if !self.methods.is_empty() && !self.methods.contains(method) => Some("method"),
            () if !self.path.matches(path) => Some("path"),
            () if !have_all(headers, &self.headers) => Some("headers"),
            () => None,
        }
    }

    fn is_for(&self, host: &str) -> bool {
        self.hosts.is_empty()
            || self.hosts.iter().any(|own| match own.strip_prefix('*') {
                Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
                None => own == host,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::read;

    fn clock() -> Arc<dyn Clock> {
        Arc::new(tollgate_core::ManualClock::default())
    }

    fn table(text: &str) -> RouteTable {
        let spec = read("routes.yaml", text).unwrap_or_else(|report| panic!("{report}"));
        RouteTable::new(&spec, None, &clock()).unwrap()
    }

    fn found(table: &RouteTable, host: &str, method: Method, path: &str, headers: &[(&'static str, &str)]) -> String {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap()));
        let route = table.find(host, &method, path, &headers.collect());
        route.map_or("none".to_owned(), |route| route.spec.name.clone())
    }

    const ROUTES: &str = "upstreams: { a: { servers: http://127.0.0.1:1 }, b: { servers: http://127.0.0.1:2 } }
routes:
  - { name: beta, host: api.example.com, headers: { x-version: beta }, upstream: b }
  - { name: write, host: api.example.com, method: [POST, PUT], path: /orders/*, upstream: a }
  - { name: read, host: api.example.com, method: GET, path: /orders/*, upstream: a }
  - { name: tenants, host: '*.example.com', upstream: b }
  - { name: rest, path: /public/*, upstream: a }
";

    #[test]
    fn the_first_route_whose_conditions_hold_is_taken() {
        let table = table(ROUTES);
        let find = |host: &str, method: Method, path: &str| found(&table, host, method, path, &[]);
        assert_eq!(find("api.example.com", Method::GET, "/orders/1"), "read");
        assert_eq!(find("api.example.com", Method::HEAD, "/orders/1"), "read", "HEAD is GET");
        assert_eq!(find("api.example.com", Method::POST, "/orders/1"), "write");
        assert_eq!(find("api.example.com", Method::DELETE, "/orders/1"), "tenants");
        assert_eq!(find("acme.example.com", Method::GET, "/"), "tenants");
        assert_eq!(find("example.com", Method::GET, "/"), "none", "a star is at least one label");
        assert_eq!(find("other.org", Method::GET, "/public/x"), "rest");
        assert_eq!(find("other.org", Method::GET, "/orders/1"), "none");
        let beta = [("x-version", "beta")];
        assert_eq!(found(&table, "api.example.com", Method::GET, "/orders/1", &beta), "beta");
    }

    #[tokio::test]
    async fn an_upstream_that_did_not_change_is_kept() {
        let before = table(ROUTES);
        let changed = ROUTES.replace("127.0.0.1:2", "127.0.0.1:3");
        let spec = read("routes.yaml", &changed).unwrap();
        let after = RouteTable::new(&spec, Some(&before), &clock()).unwrap();
        let same = |name: &str| {
            let of = |table: &RouteTable| table.upstreams().find(|upstream| upstream.spec.name == name).cloned();
            Arc::ptr_eq(&of(&before).unwrap(), &of(&after).unwrap())
        };
        assert!(same("a") && !same("b"));
    }
}
