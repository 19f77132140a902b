//! Forward-auth behind real proxies, with the configurations of the guide: allowed, denied and forged requests, and an
//! unavailable limiter.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod app;
mod guide;
#[path = "../support/server.rs"]
mod running;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use app::{Answer, App, ask, attempt};
use running::Server;
use support::Dir;
use tollgate_lab::patience;
use tollgate_lab::proxies::{ProxyKind, ProxyOptions, ProxyServer};

const RULES: &str = "
key_by: api_key
rules:
  - { name: per-key, match: { endpoint: '/api/*' }, limit: { requests: 3, window: 1h } }
";

/// A proxy, its configuration, and how it fails closed.
struct Case {
    kind: ProxyKind,
    source: &'static str,
    config: &'static str,
    port: u16,
    /// Parts of the configuration with timeouts that are too short for a busy machine.
    hurried: &'static [(&'static str, &'static str)],
    closed: (&'static str, &'static str),
    closed_status: u16,
    /// Status of a request with two keys of which the first is at its limit: 429 if the first counts, 200 if the proxy
    /// joins both into a third, 400 if both reach the check.
    two_keys: &'static [u16],
}

const NGINX: Case = Case {
    kind: ProxyKind::Nginx,
    source: "original",
    config: include_str!("../../../../deploy/proxies/nginx.conf"),
    port: 10_002,
    hurried: &[("proxy_connect_timeout 100ms", "proxy_connect_timeout 20s"), ("timeout    500ms", "timeout 20s")],
    closed: ("error_page 500 502 503 504 =200 /_open;", ""),
    closed_status: 500,
    two_keys: &[429, 200], // joined since 1.23
};

const CADDY: Case = Case {
    kind: ProxyKind::Caddy,
    source: "forwarded",
    config: include_str!("../../../../deploy/proxies/Caddyfile"),
    port: 10_003,
    hurried: &[],
    closed: ("handle_errors 502 503 504", "handle_errors 599"),
    closed_status: 502,
    two_keys: &[400],
};

const HAPROXY: Case = Case {
    kind: ProxyKind::Haproxy,
    source: "forwarded",
    config: include_str!("../../../../deploy/proxies/haproxy.cfg"),
    port: 10_004,
    hurried: &[],
    closed: ("# It fails open. To fail closed: http-request", "http-request"),
    closed_status: 503,
    two_keys: &[400],
};

const ENVOY: Case = Case {
    kind: ProxyKind::Envoy,
    source: "path",
    config: include_str!("../../../../deploy/proxies/envoy.yaml"),
    port: 10_001,
    hurried: &[("timeout: 0.5s", "timeout: 20s"), ("connect_timeout: 0.25s", "connect_timeout: 20s")],
    closed: ("failure_mode_allow: true", "failure_mode_allow: false"),
    closed_status: 503,
    two_keys: &[200],
};

/// Traefik has no setting for an unavailable limiter.
const TRAEFIK: Case = Case {
    kind: ProxyKind::Traefik,
    source: "forwarded",
    config: include_str!("../../../../deploy/proxies/traefik-dynamic.yaml"),
    port: 10_005,
    hurried: &[],
    closed: ("", ""),
    closed_status: 500,
    two_keys: &[400],
};

const LUA: &str = include_str!("../../../../deploy/proxies/tollgate.lua");

/// A proxy between a client and a backend, with Tollgate.
struct Rig {
    app: App,
    proxy: ProxyServer,
    tollgate: Option<Server>,
    case: Case,
    limiter: u16,
    _dir: Dir,
}

impl Rig {
    fn start(case: Case) -> Rig {
        let dir = Dir::new(&format!("proxy-{}", case.kind.name()));
        dir.write("rules.yaml", RULES);
        let args = ["--rules", "rules.yaml", "--http", "127.0.0.1:0", "--db", "off", "--auth-source", case.source];
        let tollgate = Server::start(dir.tollgate(), &args);
        let limiter = tollgate.url().rsplit(':').next().unwrap().parse().unwrap();
        let app = App::start();
        let proxy = behind(&case, case.config, limiter, app.port);
        Rig { app, proxy, tollgate: Some(tollgate), case, limiter, _dir: dir }
    }

    fn ask(&self, request: &str, fields: &str) -> Answer {
        ask(self.proxy.address(), request, fields)
    }

    /// Sends a request, and expects the response of the backend.
    fn passes(&self, request: &str, fields: &str) -> Answer {
        let answer = self.ask(request, fields);
        assert_eq!(answer.status, 200, "{request} {fields}: {answer:?}\n{}", self.proxy.log());
        assert_eq!(self.app.heads().len(), 1, "{request} {fields}: the app was asked once: {answer:?}");
        answer
    }

    /// Sends a request, and expects a denial that does not reach the backend.
    fn is_refused(&self, request: &str, fields: &str) -> Answer {
        let answer = self.ask(request, fields);
        assert_eq!(answer.status, 429, "{request} {fields}: {answer:?}\n{}", self.proxy.log());
        assert_eq!(self.app.heads(), [""; 0], "{request}: the app was not asked");
        answer
    }
}

fn behind(case: &Case, config: &str, limiter: u16, app: u16) -> ProxyServer {
    let patient = case.hurried.iter().fold(config.to_owned(), |config, (hurried, patient)| {
        assert!(config.contains(hurried), "{hurried} is not in the configuration");
        config.replace(hurried, patient)
    });
    let plan = ProxyOptions::new(case.kind, &patient).listens(case.port).finds(8080, limiter).finds(3000, app);
    plan.file("tollgate.lua", &LUA.replace("timeout = 500", "timeout = 20000")).start()
}

#[test]
fn nginx() {
    behaves(Rig::start(NGINX));
}

#[test]
fn caddy() {
    behaves(Rig::start(CADDY));
}

#[test]
fn haproxy() {
    behaves(Rig::start(HAPROXY));
}

#[test]
fn envoy() {
    behaves(Rig::start(ENVOY));
}

/// Traefik forwards the remaining units to the backend, and to clients only in denials.
#[test]
fn traefik() {
    let mut rig = Rig::start(TRAEFIK);
    // Traefik listens before it has read its routes.
    patience::until("Traefik has its routes", Duration::from_secs(30), || rig.ask("GET /free", "").status != 404);
    rig.app.heads();
    let key = "X-Api-Key: one\r\n";
    for remaining in (0..3).rev() {
        let passed = rig.ask("GET /api/orders", key);
        assert_eq!(passed.status, 200, "{passed:?}\n{}", rig.proxy.log());
        let heads = rig.app.heads().concat();
        for line in [format!("\r\nratelimit: \"per-key\";r={remaining};"), "\r\nx-ratelimit-limit: 3\r\n".to_owned()] {
            assert!(heads.contains(&line), "{line:?} in {heads}");
        }
    }
    shows_a_refusal(&rig.is_refused("GET /api/orders", key));
    ignores_forged_headers(&rig);
    two_keys_do_not_bypass_the_limit(&rig);
    malformed_requests_do_not_pass(&rig);
    drop(rig.tollgate.take());
    let answer = rig.ask("GET /api/orders", key);
    assert_eq!((answer.status, rig.app.heads().len()), (rig.case.closed_status, 0), "{answer:?}");
}

fn behaves(mut rig: Rig) {
    allows_and_refuses(&rig);
    ignores_forged_headers(&rig);
    two_keys_do_not_bypass_the_limit(&rig);
    malformed_requests_do_not_pass(&rig);
    drop(rig.tollgate.take());
    fails_as_configured_without_a_limiter(&rig);
}

fn allows_and_refuses(rig: &Rig) {
    let key = "X-Api-Key: one\r\n";
    let first = rig.passes("GET /api/orders", key);
    assert!(first.text.ends_with("from the app"), "{first:?}");
    assert_eq!(first.field("ratelimit"), Some("\"per-key\";r=2;t=1200"), "{first:?}");
    assert_eq!(first.field("ratelimit-policy"), Some("\"per-key\";q=3;w=3600"), "{first:?}");
    shows_the_older_fields(&first, "2");
    let second = rig.passes("HEAD /api/orders", key);
    assert_eq!(second.field("ratelimit"), Some("\"per-key\";r=1;t=1200"), "HEAD counts: {second:?}");
    rig.passes("POST /api/orders?a=b", key);
    shows_a_refusal(&rig.is_refused("GET /api/orders", key));
    rig.passes("GET /api/orders", "X-Api-Key: two\r\n");
    assert_eq!(rig.passes("GET /free", key).field("ratelimit"), None);
}

fn shows_a_refusal(refused: &Answer) {
    assert!(refused.field("retry-after").unwrap().parse::<u32>().unwrap() > 1000, "{refused:?}");
    assert_eq!(refused.field("ratelimit"), Some("\"per-key\";r=0;t=1200"), "{refused:?}");
    assert_eq!(refused.field("ratelimit-policy"), Some("\"per-key\";q=3;w=3600"), "{refused:?}");
    shows_the_older_fields(refused, "0");
    assert_eq!(refused.field("content-type"), Some("application/problem+json"), "{refused:?}");
    assert!(refused.text.contains("http-problem-types#quota-exceeded"), "{refused:?}");
}

fn shows_the_older_fields(answer: &Answer, remaining: &str) {
    assert_eq!(answer.field("x-ratelimit-limit"), Some("3"), "{answer:?}");
    assert_eq!(answer.field("x-ratelimit-remaining"), Some(remaining), "{answer:?}");
    assert!(answer.field("x-ratelimit-reset").unwrap().parse::<u64>().unwrap() > 1_700_000_000, "{answer:?}");
}

/// The guide describes how each proxy treats two keys.
fn two_keys_do_not_bypass_the_limit(rig: &Rig) {
    let answer = rig.ask("GET /api/orders", "X-Api-Key: one\r\nX-Api-Key: three\r\n");
    assert!(rig.case.two_keys.contains(&answer.status), "{answer:?}");
    assert_eq!(rig.app.heads().len(), usize::from(answer.status == 200), "{answer:?}");
}

fn ignores_forged_headers(rig: &Rig) {
    let forged = "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /free\r\nX-Original-Method: GET\r\n\
        X-Original-URI: /free\r\nX-Original-URL: /free\r\nX-Cost: 0\r\nForwarded: for=9.9.9.9\r\n\
        X-Limit-State: mine\r\nX-Limit-Policy: mine\r\nX-Limit-Most: mine\r\nX-Limit-Left: mine\r\n\
        X-Limit-Reset: mine\r\nX-Real-IP: 9.9.9.9\r\n";
    rig.is_refused("GET /api/orders?cost=0&policy=none", &format!("{forged}X-Api-Key: one\r\n"));
    rig.is_refused("GET /%61pi//orders", &format!("{forged}X-Api-Key: one\r\n"));
    // Without a key a client is identified by its real address.
    for place in 1..=3 {
        rig.passes("GET /api/orders?cost=0", &format!("{forged}X-Forwarded-For: 192.0.2.{place}\r\n"));
    }
    rig.is_refused("GET /api/orders?cost=0", &format!("{forged}X-Forwarded-For: 192.0.2.4\r\n"));
    let shown = rig.passes("GET /free", forged);
    assert!(!shown.text.contains("mine"), "{shown:?}");
}

fn malformed_requests_do_not_pass(rig: &Rig) {
    for (request, fields) in [("GET /api/%zz", ""), ("GET /api/a%2fb", ""), ("GET /free", "X-Api-Key: \u{e9}\r\n")] {
        let answer = attempt(rig.proxy.address(), request, fields);
        let refused = answer.as_ref().is_none_or(|answer| (400..500).contains(&answer.status));
        assert!(refused, "{request}: {answer:?}");
        assert_eq!(rig.app.heads(), [""; 0], "{request}: the app was not asked");
        // Nor later: the proxy serves on, and this is all that the app gets.
        rig.passes("GET /free", "");
    }
}

/// Headers that nginx accepts do not fail the check, whatever their size and number.
#[test]
fn nginx_does_not_forward_client_headers_to_the_check() {
    let rig = Rig::start(NGINX);
    for fields in ["A: b\r\n".repeat(150), format!("Cookie: {}\r\n", "c".repeat(7_000)).repeat(3)] {
        rig.passes("GET /free", &fields);
    }
    rig.passes("GET /free", "Idempotency-Key: a\r\nIdempotency-Key: b\r\n");
}

fn fails_as_configured_without_a_limiter(rig: &Rig) {
    let open = rig.passes("GET /api/orders", "X-Api-Key: one\r\n");
    assert_eq!(open.field("ratelimit"), None, "{open:?}");
    let (before, after) = rig.case.closed;
    assert!(rig.case.config.contains(before), "{before}");
    let closed = behind(&rig.case, &rig.case.config.replace(before, after), rig.limiter, rig.app.port);
    let answer = ask(closed.address(), "GET /api/orders", "X-Api-Key: one\r\n");
    assert_eq!(answer.status, rig.case.closed_status, "{answer:?}");
    assert_eq!(rig.app.heads(), [""; 0], "the app was not asked");
}
