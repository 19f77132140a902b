//! Routes: which requests, where to, and how they are treated.

use std::sync::Arc;

use http::{HeaderName, Method};
use tollgate_cost::CostSpec;
use tollgate_overload::Priorities;
use tollgate_rules::problem::{ParseError, Problems, quote};
use tollgate_rules::read::FieldValue;
use tollgate_rules::{EscapedSlash, PathCase, PathPattern};

use super::header_conditions::read_conditions;
use super::header_edits::HeaderEdits;
use super::priority::PrioritySpec;
use super::refusals::RefusalSpec;

/// Which requests, where to, and how they are treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteSpec {
    /// Its name in logs and metrics.
    pub name: String,
    /// Hosts in lower case, without ports; `*.example.com` for all below; any if empty.
    pub hosts: Vec<String>,
    /// The path.
    pub path: PathPattern,
    /// Methods; any if empty.
    pub methods: Vec<Method>,
    /// Header fields and their values; `*` for any value.
    pub headers: Vec<(HeaderName, String)>,
    /// The name of the upstream.
    pub upstream: String,
    /// Leading segments that are not forwarded.
    pub strip_prefix: Option<String>,
    /// Segments that are put in front of what is forwarded.
    pub add_prefix: Option<String>,
    /// Whether escaped slashes are kept in forwarded paths or refused.
    pub escaped_slash: EscapedSlash,
    /// What becomes of parameters in paths, `;name=value` at the end of a segment.
    pub path_parameters: PathParameters,
    /// Whether a trailing slash is forwarded. Rules never see it.
    pub keep_trailing_slash: bool,
    /// Whether the caller's `Host` is forwarded, or that of the server is sent.
    pub keep_host: bool,
    /// How the server learns of the caller's address, host and scheme.
    pub forwarded: ForwardedStyle,
    /// Changes of the forwarded header fields.
    pub request_headers: Arc<HeaderEdits>,
    /// Changes of the header fields of responses.
    pub response_headers: HeaderEdits,
    /// Whether a connection may be upgraded: WebSocket. By default not where the cost depends on bodies of requests.
    pub upgrade: bool,
    /// Its importance where not all requests can be served.
    pub priority: PrioritySpec,
    /// The namespace whose rules decide.
    pub namespace: Option<String>,
    /// Longest body of a request; no limit by default, because bodies are streamed.
    pub max_body: Option<u64>,
    /// The status of a refusal by a limit.
    pub denied_status: u16,
    /// How refusals look; problem documents without it.
    pub refusals: Option<RefusalSpec>,
    /// Whether a trace is passed on.
    pub traceparent: TraceStyle,
    /// What requests cost; one request each without it.
    pub cost: Option<Arc<CostSpec>>,
}

/// What becomes of parameters in paths. Servers disagree on `;`: Tomcat, Jetty and Spring find the handler without what
/// follows it in a segment, most others take it for a letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathParameters {
    /// Such a request is refused.
    #[default]
    Reject,
    /// They are removed: neither rules nor the server see them.
    Strip,
    /// They are letters of the path, for rules and for the server.
    Keep,
}

/// How the server learns of the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedStyle {
    /// `X-Forwarded-For`, `-Host` and `-Proto`.
    #[default]
    XForwarded,
    /// `Forwarded` of RFC 7239.
    Forwarded,
    /// Both.
    Both,
    /// Neither: the fields are removed.
    Off,
}

impl ForwardedStyle {
    /// Whether the server gets `X-Forwarded-*`.
    pub(crate) const fn is_x(self) -> bool {
        matches!(self, ForwardedStyle::XForwarded | ForwardedStyle::Both)
    }

    /// Whether the server gets `Forwarded`.
    pub(crate) const fn is_forwarded(self) -> bool {
        matches!(self, ForwardedStyle::Forwarded | ForwardedStyle::Both)
    }
}

/// What becomes of `traceparent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceStyle {
    /// The caller's, as it is.
    #[default]
    Pass,
    /// The caller's, or a new one.
    Create,
    /// None.
    Remove,
}

impl RouteSpec {
    /// Whether the cost depends on bodies of requests. What passes behind an upgrade has none: it would cost nothing.
    pub fn reads_requests(&self) -> bool {
        self.cost.as_ref().is_some_and(|cost| cost.reads_request())
    }
}

impl Default for RouteSpec {
    fn default() -> RouteSpec {
        RouteSpec {
            name: "all".to_owned(),
            hosts: Vec::new(),
            path: any_path(),
            methods: Vec::new(),
            headers: Vec::new(),
            upstream: String::new(),
            strip_prefix: None,
            add_prefix: None,
            escaped_slash: EscapedSlash::Reject,
            path_parameters: PathParameters::default(),
            keep_trailing_slash: true,
            keep_host: true,
            forwarded: ForwardedStyle::default(),
            request_headers: Arc::default(),
            response_headers: HeaderEdits::default(),
            upgrade: true,
            priority: PrioritySpec::unnamed(&Priorities::default()),
            namespace: None,
            max_body: None,
            denied_status: 429,
            refusals: None,
            traceparent: TraceStyle::default(),
            cost: None,
        }
    }
}

#[expect(clippy::expect_used, reason = "a constant pattern, parsed by every test")]
fn any_path() -> PathPattern {
    PathPattern::parse("*", EscapedSlash::Reject, PathCase::Sensitive).expect("`*` is a pattern")
}

const FIELDS: &[&str] = &[
    "name",
    "host",
    "path",
    "method",
    "headers",
    "upstream",
    "strip_prefix",
    "add_prefix",
    "case",
    "escaped_slash",
    "path_parameters",
    "trailing_slash",
    "host_header",
    "forwarded",
    "request_headers",
    "response_headers",
    "upgrade",
    "priority",
    "namespace",
    "max_body",
    "denied_status",
    "refusals",
    "traceparent",
    "cost",
];
const CASES: [(&str, PathCase); 2] = [("sensitive", PathCase::Sensitive), ("insensitive", PathCase::Insensitive)];
const SLASHES: [(&str, EscapedSlash); 2] = [("reject", EscapedSlash::Reject), ("keep", EscapedSlash::Keep)];
const PARAMETERS: [(&str, PathParameters); 3] =
    [("reject", PathParameters::Reject), ("strip", PathParameters::Strip), ("keep", PathParameters::Keep)];
const KEEP_OR_STRIP: [(&str, bool); 2] = [("keep", true), ("strip", false)];
const HOST_HEADERS: [(&str, bool); 2] = [("keep", true), ("upstream", false)];
const STYLES: [(&str, ForwardedStyle); 4] = [
    ("x-forwarded", ForwardedStyle::XForwarded),
    ("forwarded", ForwardedStyle::Forwarded),
    ("both", ForwardedStyle::Both),
    ("off", ForwardedStyle::Off),
];
const TRACES: [(&str, TraceStyle); 3] =
    [("pass", TraceStyle::Pass), ("create", TraceStyle::Create), ("remove", TraceStyle::Remove)];
const STATUSES: [(&str, u16); 3] = [("429", 429), ("403", 403), ("503", 503)];

pub(super) fn read_route(
    value: FieldValue<'_>,
    index: usize,
    priorities: &Priorities,
    problems: &mut Problems,
) -> RouteSpec {
    let fields = value.fields(FIELDS, "{ path: /api/*, upstream: api }", problems);
    let mut route = RouteSpec { name: format!("route-{}", index + 1), ..RouteSpec::default() };
    if let Some(name) = fields.get("name").and_then(|value| value.text(problems)) {
        route.name = name.to_owned();
    }
    if let Some(hosts) = fields.get("host") {
        route.hosts = each(&hosts, "bad-host", problems, read_host);
    }
    let choose = |name, problems: &mut Problems| fields.get(name).and_then(|value| value.choice(&SLASHES, problems));
    route.escaped_slash = choose("escaped_slash", problems).unwrap_or_default();
    let case = fields.get("case").and_then(|value| value.choice(&CASES, problems)).unwrap_or_default();
    if let Some(path) = fields.get("path")
        && let Some(text) = path.text(problems)
    {
        match PathPattern::parse(text, route.escaped_slash, case) {
            Ok(pattern) => route.path = pattern,
            Err(error) => problems.push(path.fault("bad-path", error)),
        }
    }
    if let Some(methods) = fields.get("method") {
        route.methods = each(&methods, "bad-method", problems, read_method);
    }
    if let Some(headers) = fields.get("headers") {
        route.headers = read_conditions(&headers, problems);
    }
    if let Some(upstream) = fields.required("upstream", "name one of `upstreams`", problems) {
        route.upstream = upstream.text(problems).unwrap_or_default().to_owned();
    }
    let mut prefix = |name| {
        let value = fields.get(name)?;
        let text = value.text(problems)?;
        let read = read_prefix(text);
        read.map_err(|error| problems.push(value.fault("bad-path", error))).ok()
    };
    (route.strip_prefix, route.add_prefix) = (prefix("strip_prefix"), prefix("add_prefix"));
    if let Some(parameters) = fields.get("path_parameters").and_then(|value| value.choice(&PARAMETERS, problems)) {
        route.path_parameters = parameters;
    }
    if let Some(keep) = fields.get("trailing_slash").and_then(|value| value.choice(&KEEP_OR_STRIP, problems)) {
        route.keep_trailing_slash = keep;
    }
    if let Some(keep) = fields.get("host_header").and_then(|value| value.choice(&HOST_HEADERS, problems)) {
        route.keep_host = keep;
    }
    if let Some(style) = fields.get("forwarded").and_then(|value| value.choice(&STYLES, problems)) {
        route.forwarded = style;
    }
    if let Some(edits) = fields.get("request_headers") {
        route.request_headers = Arc::new(HeaderEdits::read(edits, problems));
    }
    if let Some(edits) = fields.get("response_headers") {
        route.response_headers = HeaderEdits::read(edits, problems);
    }
    route.priority = match fields.get("priority") {
        Some(value) => PrioritySpec::read(value, priorities, problems),
        None => PrioritySpec::unnamed(priorities),
    };
    route.namespace = fields.get("namespace").and_then(|value| value.text(problems)).map(str::to_owned);
    route.max_body = fields.get("max_body").and_then(|value| value.integer(0..=1 << 50, problems));
    if let Some(status) = fields.get("denied_status").and_then(|value| value.choice(&STATUSES, problems)) {
        route.denied_status = status;
    }
    route.refusals = fields.get("refusals").map(|value| RefusalSpec::read(value, problems));
    if let Some(style) = fields.get("traceparent").and_then(|value| value.choice(&TRACES, problems)) {
        route.traceparent = style;
    }
    route.cost = fields.get("cost").map(|value| Arc::new(CostSpec::read(&value, problems)));
    let upgrade = fields.get("upgrade").and_then(|value| value.boolean(problems));
    route.upgrade = upgrade.unwrap_or(!route.reads_requests());
    route
}

/// Reads one or several texts.
fn each<T>(
    value: &FieldValue<'_>,
    code: &'static str,
    problems: &mut Problems,
    read: impl Fn(&str) -> Result<T, ParseError>,
) -> Vec<T> {
    let mut all = Vec::new();
    for item in value.one_or_more() {
        let Some(text) = item.text(problems) else { continue };
        match read(text) {
            Ok(one) => all.push(one),
            Err(error) => problems.push(item.fault(code, error)),
        }
    }
    all
}

fn read_host(text: &str) -> Result<String, ParseError> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'[' | b']' | b':');
    match !name.is_empty() && name.len() <= 253 && name.bytes().all(is_name) {
        true => Ok(text.to_ascii_lowercase()),
        false => {
            let help = "write a name such as api.example.com, or *.example.com for all names below it; without a port";
            Err(ParseError::new(format!("{} is not a host", quote(text)), help))
        }
    }
}

fn read_method(text: &str) -> Result<Method, ParseError> {
    let method = Method::from_bytes(text.as_bytes()).ok().filter(|_| tollgate_rules::path::is_method(text));
    method.ok_or_else(|| {
        ParseError::new(format!("{} is not a method", quote(text)), "methods are capital letters, such as GET")
    })
}

/// A path of literal segments, without a slash at its end.
fn read_prefix(text: &str) -> Result<String, ParseError> {
    let canonical = tollgate_rules::canonical_path(text, EscapedSlash::Reject);
    match canonical.ok().filter(|_| !text.contains(['*', '{', '?'])) {
        Some(path) => Ok(path.trim_end_matches('/').to_owned()),
        None => Err(ParseError::new(
            format!("{} is not a prefix of paths", quote(text)),
            "write leading segments, such as /v1/orders",
        )),
    }
}
