//! Reads a routes file, and reports every mistake at once.

use tollgate_identity::IdentitySpec;
use tollgate_overload::spec::read_priorities;
use tollgate_rules::nearest::suggest;
use tollgate_rules::problem::{Problems, quote};
use tollgate_rules::read::{FieldPath, FieldValue, MapFields, decode};
use tollgate_rules::yaml::{self, YamlKind};
use tollgate_rules::{Problem, Report};

use super::GatewaySpec;
use super::route::read_route;
use super::upstream::read_upstream;

/// Most routes of a file.
const ROUTES_MAX: usize = 10_000;

const FIELDS: &[&str] = &[
    "version",
    "identity",
    "trusted_proxies",
    "trusted_hops",
    "forwarded",
    "on_unknown",
    "on_missing",
    "priorities",
    "upstreams",
    "routes",
];

/// Reads a routes file.
pub fn read(file_name: &str, text: &str) -> Result<GatewaySpec, Report> {
    let mut problems = Problems::default();
    let mut spec = GatewaySpec::default();
    match yaml::parse(text) {
        Ok(root) => {
            let root = FieldValue { node: &root, path: FieldPath::Root("file") };
            let fields = root.fields(FIELDS, "routes: [ ... ]", &mut problems);
            if let Some(version) = fields.get("version") {
                version.integer(1..=1, &mut problems);
            }
            spec.identity = IdentitySpec::read(&fields, &mut problems);
            if let Some(value) = fields.get("priorities") {
                spec.priorities = read_priorities(value, &mut problems);
            }
            read_upstreams(&fields, &mut spec, &mut problems);
            read_routes(&fields, &mut spec, &mut problems);
        }
        Err(found) => problems.extend(found),
    }
    match problems.is_empty() {
        true => Ok(spec),
        false => Err(Report::new(file_name, text, problems)),
    }
}

/// Reads a routes file from bytes that may not be text.
pub fn read_bytes(file_name: &str, bytes: &[u8]) -> Result<GatewaySpec, Report> {
    read(file_name, decode(file_name, bytes)?)
}

fn read_upstreams(fields: &MapFields<'_>, spec: &mut GatewaySpec, problems: &mut Problems) {
    const HELP: &str = "write `upstreams: { api: { servers: [http://127.0.0.1:3000] } }`";
    let Some(value) = fields.required("upstreams", HELP, problems) else { return };
    let YamlKind::Map(entries) = &value.node.kind else {
        return problems.push(value.mismatch("a map of names to upstreams", HELP));
    };
    for (key, node) in entries {
        let upstream = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        if !is_name(&key.text) {
            let message = format!("{} is not a name", quote(&key.text));
            let help = "letters, digits, `.`, `_` and `-`, at most 64";
            problems.push(Problem::error("bad-name", key.position(), upstream.path, message).help(help));
        }
        let read = read_upstream(&key.text, upstream, &spec.priorities, problems);
        spec.upstreams.push(read);
    }
}

fn read_routes(fields: &MapFields<'_>, spec: &mut GatewaySpec, problems: &mut Problems) {
    let help = "write `routes: [{ path: /*, upstream: api }]`";
    let Some(value) = fields.required("routes", help, problems) else { return };
    let items: Vec<FieldValue<'_>> = value.items("routes", problems).collect();
    if items.is_empty() && matches!(value.node.kind, YamlKind::List(_)) || items.len() > ROUTES_MAX {
        let message = format!("the file has {} routes", items.len());
        problems.push(value.problem("out-of-range", message).help(format!("write 1 to {ROUTES_MAX} routes")));
        return;
    }
    let known: Vec<&str> = spec.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    for (index, item) in items.iter().enumerate() {
        let route = read_route(*item, index, &spec.priorities, problems);
        if let Some(node) = item.node.get("upstream").filter(|_| !known.contains(&route.upstream.as_str())) {
            let message = format!("no upstream is named {}", quote(&route.upstream));
            let at = node.position();
            let path = FieldPath::Field(&item.path, "upstream");
            problems.push(Problem::error("unknown-upstream", at, path, message).help(suggest(&route.upstream, &known)));
        }
        let earlier = spec.routes.iter().any(|other| other.name == route.name);
        if earlier {
            let message = format!("two routes are named {}", quote(&route.name));
            problems.push(item.problem("duplicate", message).help("names appear in logs and metrics: use each once"));
        }
        if !is_name(&route.name) {
            let help = "letters, digits, `.`, `_` and `-`, at most 64";
            problems.push(item.problem("bad-name", format!("{} is not a name", quote(&route.name))).help(help));
        }
        spec.routes.push(route);
    }
}

fn is_name(text: &str) -> bool {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=64).contains(&text.len()) && text.bytes().all(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Balance, ForwardedStyle};

    fn codes(text: &str) -> Vec<(&'static str, u32, u32)> {
        let report = read("routes.yaml", text).unwrap_err();
        report.problems.iter().map(|problem| (problem.code, problem.line, problem.column)).collect()
    }

    #[test]
    fn reads_a_whole_file() {
        let spec = read(
            "routes.yaml",
            "identity:\n  - api_key: { query: key }\nupstreams:\n  orders:\n    servers: [http://10.0.0.7:3000, \
             http://10.0.0.8:3000]\n    balance: caller\n    health: { path: /health, every: 2s }\n    timeouts: { \
             connect: 200ms }\nroutes:\n  - name: orders\n    host: API.example.com\n    path: /orders/*\n    method: \
             [GET, POST]\n    headers: { x-version: 2 }\n    upstream: orders\n    strip_prefix: /orders/\n    \
             forwarded: both\n    request_headers: { set: { x-team: orders }, remove: x-debug }\n",
        )
        .unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(spec.upstreams[0].servers.len(), 2);
        assert_eq!(spec.upstreams[0].balance, Balance::Caller);
        let route = &spec.routes[0];
        assert_eq!((route.hosts[0].as_str(), route.strip_prefix.as_deref()), ("api.example.com", Some("/orders")));
        assert_eq!(route.forwarded, ForwardedStyle::Both);
        assert_eq!(route.request_headers.set[0].1, "orders");
    }

    #[test]
    fn every_mistake_has_its_place() {
        let text = "upstreams:\n  a: { servers: [htp://x] }\nroutes:\n  - { path: /x, upstream: b }\n  - { pth: /x, \
                    upstream: a }\n  - { path: x, upstream: a, method: get }\n";
        assert_eq!(
            codes(text),
            [
                ("bad-url", 2, 18),
                ("unknown-upstream", 4, 27),
                ("unknown-field", 5, 7),
                ("bad-path", 6, 13),
                ("bad-method", 6, 37),
            ]
        );
        assert_eq!(codes("routes: []\n")[0].0, "missing-field");
        assert_eq!(codes("a: &x 1\n")[0].1, 1);
    }

    #[test]
    fn fields_of_the_connection_cannot_be_changed() {
        let text = "upstreams: { a: { servers: http://x } }\nroutes:\n  - { upstream: a, request_headers: { set: { \
                    Transfer-Encoding: chunked } } }\n";
        assert_eq!(codes(text)[0].0, "bad-header");
    }

    #[test]
    fn a_cost_is_read_with_its_files_and_its_mistakes() {
        let text = "upstreams: { a: { servers: http://x } }\nroutes:\n  - { upstream: a, cost: { units: { request: { \
                    graphql: { persisted_only: queries.txt } } } } }\n";
        let mut spec = read("routes.yaml", text).unwrap();
        let folder = std::path::Path::new("/nowhere");
        assert_eq!(spec.cost_files(folder), [folder.join("queries.txt")]);
        let missing = spec.load_cost_files(folder).unwrap_err();
        assert!(format!("{missing:#}").contains("/nowhere/queries.txt"), "{missing:#}");
        let text =
            "upstreams: { a: { servers: http://x } }\nroutes:\n  - { upstream: a, cost: { llm: { steps: 3 } } }\n";
        assert_eq!(codes(text)[0].0, "unknown-field");
    }
}
