//! Upstreams: servers that are alike, and how they are treated.

use std::time::Duration;

use tollgate_overload::spec::{RetrySpec, read_ejection, read_retries};
use tollgate_overload::{OutlierConfig, Priorities};
use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldValue, MapFields};

use super::pem_file::{ClientCertificate, PemFile};
use super::protection::ProtectionSpec;
use super::upstream_url::{ServerScheme, UpstreamUrl};

/// Most servers of one upstream.
const SERVERS_MAX: usize = 256;

/// Servers that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSpec {
    /// Its name.
    pub name: String,
    /// Its servers; at least one.
    pub servers: Vec<UpstreamUrl>,
    /// How a server is chosen.
    pub balance: Balance,
    /// Active health checks; none by default.
    pub health: Option<HealthSpec>,
    /// When a failing server is left out for a while.
    pub ejection: OutlierConfig,
    /// How long each step may take.
    pub timeouts: TimeoutSpec,
    /// What keeps it from more work than it can do.
    pub protection: ProtectionSpec,
    /// How often requests that failed are sent again; never by default.
    pub retries: RetrySpec,
    /// Idle connections that are kept open, per server.
    pub max_idle: usize,
    /// Authorities that sign the certificates of `https` servers; the system's without it.
    pub ca: Option<PemFile>,
    /// What the gateway proves itself with to `https` servers; nothing without it.
    pub client_certificate: Option<ClientCertificate>,
}

/// How a server is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// The less loaded of two random servers.
    #[default]
    LeastLoaded,
    /// Always the same server for a caller, as long as it is there.
    Caller,
    /// Always the same server for a path.
    Path,
}

/// Active health checks: a GET that must be answered with 2xx or 3xx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthSpec {
    /// What is asked for.
    pub path: String,
    /// How often.
    pub every: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Successes in a row until a server is used again.
    pub healthy_after: u32,
    /// Failures in a row until a server is not used.
    pub unhealthy_after: u32,
}

/// How long each step may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutSpec {
    /// Until a connection is open, TLS included.
    pub connect: Duration,
    /// From the request to the head of the response.
    pub first_byte: Duration,
    /// Between two pieces of a body.
    pub idle: Duration,
    /// For the whole exchange; no limit by default, because streams may last.
    pub total: Option<Duration>,
}

impl Default for TimeoutSpec {
    fn default() -> TimeoutSpec {
        TimeoutSpec {
            connect: Duration::from_secs(1),
            first_byte: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            total: None,
        }
    }
}

impl UpstreamSpec {
    /// An upstream without servers.
    pub fn named(name: &str) -> UpstreamSpec {
        UpstreamSpec {
            name: name.to_owned(),
            servers: Vec::new(),
            balance: Balance::default(),
            health: None,
            ejection: OutlierConfig::default(),
            timeouts: TimeoutSpec::default(),
            protection: ProtectionSpec::default(),
            retries: RetrySpec::default(),
            max_idle: 128,
            ca: None,
            client_certificate: None,
        }
    }

    /// True if there are servers, and no connection to them is encrypted.
    fn has_no_https(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(|url| url.scheme != ServerScheme::Https)
    }

    /// The files that it names.
    pub(super) fn tls_files(&self) -> impl Iterator<Item = &PemFile> {
        let own = self.client_certificate.iter().flat_map(|own| [&own.chain, &own.key]);
        self.ca.iter().chain(own)
    }

    /// The same, with the fields that name them.
    pub(crate) fn tls_files_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut PemFile)> {
        let own = self.client_certificate.iter_mut().flat_map(|own| [("cert", &mut own.chain), ("key", &mut own.key)]);
        self.ca.iter_mut().map(|ca| ("ca", ca)).chain(own)
    }
}

const FIELDS: &[&str] = &[
    "servers",
    "balance",
    "health",
    "ejection",
    "timeouts",
    "retries",
    "max_idle",
    "ca",
    "cert",
    "key",
    "max_in_flight",
    "concurrency",
    "queue",
    "shed",
    "breaker",
    "throttle",
];
const HEALTH: &[&str] = &["path", "every", "timeout", "healthy_after", "unhealthy_after"];
const TIMEOUTS: &[&str] = &["connect", "first_byte", "idle", "total"];
const BALANCE: [(&str, Balance); 3] =
    [("least_loaded", Balance::LeastLoaded), ("caller", Balance::Caller), ("path", Balance::Path)];

const NS: u64 = 1_000_000_000;

pub(super) fn read_upstream(
    name: &str,
    value: FieldValue<'_>,
    priorities: &Priorities,
    problems: &mut Problems,
) -> UpstreamSpec {
    let fields = value.fields(FIELDS, "{ servers: [http://127.0.0.1:3000] }", problems);
    let mut upstream = UpstreamSpec::named(name);
    if let Some(servers) = fields.required("servers", "write `servers: [http://127.0.0.1:3000]`", problems) {
        upstream.servers = read_servers(&servers, problems);
    }
    if let Some(balance) = fields.get("balance").and_then(|value| value.choice(&BALANCE, problems)) {
        upstream.balance = balance;
    }
    upstream.health = fields.get("health").map(|value| read_health(value, problems));
    if let Some(value) = fields.get("ejection") {
        upstream.ejection = read_ejection(value, problems);
    }
    if let Some(value) = fields.get("timeouts") {
        upstream.timeouts = read_timeouts(value, problems);
    }
    if let Some(value) = fields.get("retries") {
        upstream.retries = read_retries(value, problems);
    }
    upstream.protection = ProtectionSpec::read(&fields, priorities, problems);
    if let Some(idle) = number(&fields, "max_idle", 0..=100_000, problems) {
        upstream.max_idle = idle as usize;
    }
    let mut file = |name| fields.get(name).and_then(|value| value.text(problems)).map(PemFile::named);
    upstream.ca = file("ca");
    upstream.client_certificate = match (file("cert"), file("key")) {
        (Some(chain), Some(key)) => Some(ClientCertificate { chain, key }),
        _ => None,
    };
    for (name, other) in [("cert", "key"), ("key", "cert")] {
        if let (Some(value), None) = (fields.get(name), fields.get(other)) {
            let message = format!("{} has no effect without `{other}`", value.path);
            problems.push(value.problem("missing-field", message).help("name a certificate and its private key"));
        }
    }
    if let Some(value) = fields.get("cert").filter(|_| upstream.has_no_https()) {
        let message = format!("{} has no effect: no server is https", value.path);
        problems.push(value.problem("unused-field", message).help("write https:// in `servers`, or remove the field"));
    }
    upstream
}

fn read_servers(value: &FieldValue<'_>, problems: &mut Problems) -> Vec<UpstreamUrl> {
    let mut servers: Vec<UpstreamUrl> = Vec::new();
    let items = value.one_or_more();
    if items.is_empty() || items.len() > SERVERS_MAX {
        let message = format!("{} names {} servers", value.path, items.len());
        problems.push(value.problem("out-of-range", message).help(format!("name 1 to {SERVERS_MAX} servers")));
        return servers;
    }
    for item in items {
        let Some(text) = item.text(problems) else { continue };
        match text.parse::<UpstreamUrl>() {
            Ok(server) if servers.contains(&server) => {
                let message = format!("{} names {server} twice", value.path);
                problems.push(item.problem("duplicate", message).help("name each server once"));
            }
            Ok(server) => servers.push(server),
            Err(error) => problems.push(item.fault("bad-url", error)),
        }
    }
    servers
}

fn read_health(value: FieldValue<'_>, problems: &mut Problems) -> HealthSpec {
    let fields = value.fields(HEALTH, "{ path: /health, every: 5s }", problems);
    let mut health = HealthSpec {
        path: "/".to_owned(),
        every: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        healthy_after: 2,
        unhealthy_after: 3,
    };
    if let Some(path) = fields.required("path", "write the path to ask for, such as /health", problems)
        && let Some(text) = path.text(problems)
    {
        match text.parse::<http::uri::PathAndQuery>().ok().filter(|_| text.starts_with('/')) {
            Some(_) => health.path = text.to_owned(),
            None => {
                let message = format!("{} is not a path", path.path);
                problems.push(path.problem("bad-path", message).help("a path starts with /"));
            }
        }
    }
    if let Some(every) = duration(&fields, "every", problems) {
        health.every = every;
    }
    if let Some(timeout) = duration(&fields, "timeout", problems) {
        health.timeout = timeout;
    }
    if let Some(after) = number(&fields, "healthy_after", 1..=100, problems) {
        health.healthy_after = after;
    }
    if let Some(after) = number(&fields, "unhealthy_after", 1..=100, problems) {
        health.unhealthy_after = after;
    }
    health
}

fn read_timeouts(value: FieldValue<'_>, problems: &mut Problems) -> TimeoutSpec {
    let fields = value.fields(TIMEOUTS, "{ connect: 1s, first_byte: 30s }", problems);
    let default = TimeoutSpec::default();
    TimeoutSpec {
        connect: duration(&fields, "connect", problems).unwrap_or(default.connect),
        first_byte: duration(&fields, "first_byte", problems).unwrap_or(default.first_byte),
        idle: duration(&fields, "idle", problems).unwrap_or(default.idle),
        total: duration(&fields, "total", problems),
    }
}

/// A duration from a millisecond to a day.
fn duration(fields: &MapFields<'_>, name: &'static str, problems: &mut Problems) -> Option<Duration> {
    let nanos = fields.get(name)?.duration(1_000_000..=86_400 * NS, problems)?;
    Some(Duration::from_nanos(nanos))
}

fn number(
    fields: &MapFields<'_>,
    name: &'static str,
    range: std::ops::RangeInclusive<u64>,
    problems: &mut Problems,
) -> Option<u32> {
    fields.get(name)?.integer(range, problems).and_then(|number| u32::try_from(number).ok())
}
