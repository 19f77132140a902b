//! Routes that no request reaches, because one before them takes all of theirs.

use std::fmt;

use tollgate_rules::{PathPattern, Segment, Tail};

use super::{GatewaySpec, RouteSpec};

/// A route that is never reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachableRoute {
    /// Its index in the file.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// The route before it that takes all of its requests.
    pub behind: String,
}

impl fmt::Display for UnreachableRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "route `{}` is never reached: `{}` before it takes all of its requests", self.name, self.behind)
    }
}

impl GatewaySpec {
    /// The routes that no request reaches. Finds those that one earlier route covers, not those that several do together.
    pub fn unreachable(&self) -> Vec<UnreachableRoute> {
        let behind = |(index, route): (usize, &RouteSpec)| {
            let first = self.routes.iter().take(index).find(|earlier| covers(earlier, route))?;
            Some(UnreachableRoute { index, name: route.name.clone(), behind: first.name.clone() })
        };
        self.routes.iter().enumerate().filter_map(behind).collect()
    }
}

/// Whether every request of `later` is one of `earlier`, too.
fn covers(earlier: &RouteSpec, later: &RouteSpec) -> bool {
    let hosts = later.hosts.iter().all(|host| earlier.hosts.contains(host)) && !later.hosts.is_empty();
    let methods = later.methods.iter().all(|method| earlier.methods.contains(method)) && !later.methods.is_empty();
    (earlier.hosts.is_empty() || hosts)
        && (earlier.methods.is_empty() || methods)
        && earlier.headers.iter().all(|field| later.headers.contains(field))
        && covers_path(&earlier.path, &later.path)
}

fn covers_path(earlier: &PathPattern, later: &PathPattern) -> bool {
    let begins_alike = earlier.segments.len() <= later.segments.len()
        && earlier.segments.iter().zip(&later.segments).all(|(one, other)| match one {
            Segment::Param(_) => true,
            Segment::Literal(_) => one == other,
        });
    match earlier.tail {
        Tail::Rest => begins_alike && (earlier.case == later.case || earlier.is_any()),
        Tail::End | Tail::Glob(_) => earlier == later,
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::read;

    fn unreachable(routes: &[&str]) -> Vec<String> {
        let routes: String = routes.iter().map(|route| format!("  - {{ {route}, upstream: api }}\n")).collect();
        let text = format!("upstreams: {{ api: {{ servers: http://127.0.0.1:1 }} }}\nroutes:\n{routes}");
        let spec = read("routes.yaml", &text).unwrap_or_else(|report| panic!("{report}"));
        spec.unreachable().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_route_behind_one_that_takes_all_of_its_requests_is_found() {
        let found = ["route `b` is never reached: `a` before it takes all of its requests"];
        for (earlier, later) in [
            ("path: /*", "path: /users"),
            ("path: /users/*", "path: '/users/{id}'"),
            ("path: /users/*", "path: /users"),
            ("path: '/{any}/*'", "path: /users/*"),
            ("path: /users", "path: /users, method: GET"),
            ("path: /*, host: [a.com, b.com]", "path: /x, host: [b.com]"),
            ("path: /*", "path: /x, headers: { x-a: '1' }"),
        ] {
            let routes = [format!("name: a, {earlier}"), format!("name: b, {later}")];
            assert_eq!(unreachable(&routes.each_ref().map(String::as_str)), found, "{earlier} and {later}");
        }
    }

    #[test]
    fn routes_that_leave_something_over_are_none() {
        for (earlier, later) in [
            ("path: /users", "path: /*"),
            ("path: /users/*", "path: /orders"),
            ("path: '/users/{id}'", "path: '/users/{id}/x'"),
            ("path: /*, method: GET", "path: /*"),
            ("path: /*, host: [a.com]", "path: /*"),
            ("path: /*, headers: { x-a: '1' }", "path: /*"),
        ] {
            let routes = [format!("name: a, {earlier}"), format!("name: b, {later}")];
            assert_eq!(unreachable(&routes.each_ref().map(String::as_str)), [""; 0], "{earlier} and {later}");
        }
    }
}
