//! Forward-auth: what proxies send, what they understand, and what their clients would like it to be.

use std::os::unix::fs::PermissionsExt;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate_config::{AuthSettings, AuthSource, FromHeader};
use tollgate_net::Address;
use tollgate_rules::address::Cidr;

use crate::rig::{Answer, Rig, call};

const RULES: &str = "
key_by: api_key
rules:
  - { name: api, match: { endpoint: '/api/*' }, limit: { requests: 3, window: 1h } }
  - { name: writes, match: { endpoint: 'POST /notes' }, limit: { requests: 1, window: 1h } }
  - { name: dear, match: { tier: dear }, limit: { requests: 1, window: 1h } }
";

const ORIGINAL: &str = "X-Original-Method: GET\r\nX-Original-URI: /api/x\r\n";
const FORWARDED: &str = "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /api/x\r\n";

fn rig(source: AuthSource) -> Rig {
    with(AuthSettings { source, ..AuthSettings::default() })
}

fn with(auth: AuthSettings) -> Rig {
    Rig::with(RULES, |config, _| config.auth = auth)
}

fn from(attribute: &str, header: &str) -> FromHeader {
    FromHeader { attribute: attribute.to_owned(), header: header.to_owned() }
}

/// The status of each of these checks, in their order.
async fn statuses(rig: &Rig, checks: &[(&str, &str, String)]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for (method, path, fields) in checks {
        statuses.push(rig.call(method, path, fields, "").await.status);
    }
    statuses
}

fn code(answer: &Answer) -> String {
    answer.json()["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn is_off_unless_configured() {
    let rig = Rig::start(RULES);
    for path in ["/v1/auth", "/v1/auth/api/x"] {
        let answer = rig.call("GET", path, FORWARDED, "").await;
        assert_eq!((answer.status, code(&answer).as_str()), (404, "forward_auth_off"));
    }
    let rig = self::rig(AuthSource::Forwarded);
    assert_eq!(rig.call("GET", "/v1/authority", FORWARDED, "").await.status, 404);
    assert_eq!(rig.post("/v1/check", r#"{"client_key":"a"}"#).await.status, 200, "the API is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn allows_with_an_empty_200_and_denies_with_everything_a_client_needs() {
    let rig = rig(AuthSource::Forwarded);
    let allowed = rig.call("GET", "/v1/auth", FORWARDED, "").await;
    assert_eq!((allowed.status, allowed.body.len()), (200, 0));
    assert_eq!((allowed.field("content-length"), allowed.field("content-type")), (Some("0"), None));
    assert_eq!(allowed.field("ratelimit"), Some("\"api\";r=2;t=1200"));
    assert_eq!(allowed.field("ratelimit-policy"), Some("\"api\";q=3;w=3600"));
    // Whatever the method of the check is, below the prefix, and with an unwanted body.
    for (method, path, body) in [("HEAD", "/v1/auth/", ""), ("BREW", "/v1/auth/below/it?x=y", "a body")] {
        assert_eq!(rig.call(method, path, FORWARDED, body).await.status, 200, "{method}");
    }
    let denied = rig.call("GET", "/v1/auth", FORWARDED, "").await;
    let json = denied.json();
    assert_eq!((denied.status, denied.field("content-type")), (429, Some("application/problem+json")));
    assert_eq!((&json["status"], &json["violated-policies"]), (&json!(429), &json!(["api"])));
    assert_eq!(denied.field("ratelimit"), Some("\"api\";r=0;t=1200"));
    assert!(denied.field("retry-after").unwrap().parse::<u32>().unwrap() > 1_000);
    let head = rig.call("HEAD", "/v1/auth", FORWARDED, "").await;
    assert_eq!((head.status, head.body.len()), (429, 0), "HEAD is counted, and answered without a body");
    // What no rule limits is allowed, and nothing is said about limits.
    let free = rig.call("GET", "/v1/auth", "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /free\r\n", "").await;
    assert_eq!((free.status, free.field("ratelimit")), (200, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_counts_but_the_configured_source_and_nothing_of_the_query() {
    let rig = rig(AuthSource::Forwarded);
    let forged = format!("{FORWARDED}X-Original-Method: GET\r\nX-Original-URI: /free\r\nX-Original-URL: /free\r\n");
    let forged = format!("{forged}X-HTTP-Method-Override: PUT\r\nX-Rewrite-URL: /free\r\nForwarded: for=9.9.9.9\r\n");
    let paths =
        ["/v1/auth?cost=0", "/v1/auth/free?cost=0&policy=none&peek=true", "/v1/auth?status=200", "/v1/auth?cost=0"];
    let checks: Vec<_> = paths.iter().map(|path| ("GET", *path, forged.clone())).collect();
    assert_eq!(statuses(&rig, &checks).await, [200, 200, 200, 429]);
    assert_eq!(code(&rig.call("GET", "/v1/auth", ORIGINAL, "").await), "no_original_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_original_request_stands_in_one_place_once() {
    let rig = rig(AuthSource::Original);
    let cases = [
        ("X-Original-Method: GET\r\nX-Original-URL: https://shop.example/api/x?y\r\n", 200, ""),
        ("X-Original-Method: GET\r\nX-Original-URL: https://shop.example?y\r\n", 200, ""),
        ("X-Original-URI: /api/x\r\n", 400, "no_original_request"),
        ("X-Original-Method: GET\r\nX-Original-URI:\r\n", 400, "no_original_request"),
        (FORWARDED, 400, "no_original_request"),
        ("X-Original-Method: GET\r\nX-Original-URI: /api/x\r\nX-Original-URL: /free\r\n", 400, "two_original_requests"),
        ("X-Original-Method: GET\r\nX-Original-URI: /a\r\nX-Original-URI: /b\r\n", 400, "repeated_header"),
        ("X-Original-Method: GET\r\nX-Original-Method: PUT\r\nX-Original-URI: /b\r\n", 400, "repeated_header"),
        ("X-Original-Method: GET\r\nX-Original-URI: api/x\r\n", 400, "bad_original_request"),
        ("X-Original-Method: GET\r\nX-Original-URI: ftp://x/y\r\n", 400, "bad_original_request"),
        ("X-Original-Method: GET\r\nX-Original-URI: /\u{e9}\r\n", 200, ""),
        ("X-Original-Method: GET\r\nX-Original-URI: /%zz\r\n", 400, "path_bad_escape"),
        ("X-Original-Method: GET\r\nX-Original-URI: /a%2Fb\r\n", 400, "path_escaped_slash"),
        ("X-Original-Method: GET\r\nX-Original-URI: /../a\r\n", 400, "path_above_root"),
    ];
    for (fields, status, expected) in cases {
        let answer = rig.call("GET", "/v1/auth", fields, "").await;
        assert_eq!(answer.status, status, "{fields}");
        assert!(status == 200 || code(&answer) == expected, "{fields}: {}", code(&answer));
    }
    // A method that no rule can name meets the rules of every method.
    let note = |method: &str| format!("X-Original-Method: {method}\r\nX-Original-URI: /notes\r\n");
    let checks = [note("get"), note("POST"), note("GET")].map(|fields| ("GET", "/v1/auth", fields));
    assert_eq!(statuses(&rig, &checks).await, [200, 429, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn n01_n02_spellings_of_a_path_below_the_prefix_are_one() {
    let rig = rig(AuthSource::Path);
    let paths = ["/v1/auth/api/x?cost=0", "/v1/auth//api/./x", "/v1/auth/%61pi/y/../x/", "/v1/auth/api/x"];
    let checks: Vec<_> = paths.iter().map(|path| ("GET", *path, String::new())).collect();
    assert_eq!(statuses(&rig, &checks).await, [200, 200, 200, 429]);
    let checks =
        [("GET", "/v1/auth/notes"), ("POST", "/v1/auth/notes"), ("POST", "/v1/auth/notes"), ("GET", "/v1/auth")];
    let checks = checks.map(|(method, path)| (method, path, FORWARDED.to_owned()));
    assert_eq!(statuses(&rig, &checks).await, [200, 200, 429, 200]);
    assert_eq!(code(&rig.call("GET", "/v1/auth/a%2fb", "", "").await), "path_escaped_slash");
}

#[tokio::test(flavor = "multi_thread")]
async fn head_is_no_way_around_a_rule_for_get() {
    const ONE: &str = "rules: [{ name: read, key_by: client_key, match: { endpoint: 'GET /x' }, limit: { requests: 1, window: 1h } }]";
    for source in [AuthSource::Path, AuthSource::Forwarded, AuthSource::Original] {
        let rig = Rig::with(ONE, |config, _| config.auth = AuthSettings { source, ..AuthSettings::default() });
        let fields = match source {
            AuthSource::Forwarded => "X-Forwarded-Method: HEAD\r\nX-Forwarded-Uri: /x\r\n",
            _ => "X-Original-Method: HEAD\r\nX-Original-URI: /x\r\n",
        };
        let checks = [("HEAD", "/v1/auth/x", fields.to_owned()), ("HEAD", "/v1/auth/x", fields.to_owned())];
        assert_eq!(statuses(&rig, &checks).await, [200, 429], "{source:?}");
    }
}

/// Header fields of the client that the check does not look at, and those that it does.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_reads_may_be_repeated() {
    let rig = rig(AuthSource::Forwarded);
    for name in [
        "Authorization",
        "Content-Encoding",
        "Content-Type",
        "Idempotency-Key",
        "If-Match",
        "If-None-Match",
        "Origin",
        "Sec-Fetch-Site",
    ] {
        let twice = format!("{name}: a\r\n{name}: b\r\n");
        let free = format!("X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /free\r\n{twice}");
        assert_eq!(rig.call("GET", "/v1/auth", &free, "").await.status, 200, "{name}");
        let answer = rig.call("POST", "/v1/check", &twice, r#"{"client_key":"a"}"#).await;
        assert_eq!((answer.status, code(&answer).as_str()), (400, "malformed_request"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_knows_403_alone_hears_nothing_else() {
    let rig = with(AuthSettings { source: AuthSource::Original, deny_status: 403, ..AuthSettings::default() });
    let checks: Vec<_> = (0..4).map(|_| ("GET", "/v1/auth", ORIGINAL.to_owned())).collect();
    assert_eq!(statuses(&rig, &checks).await, [200, 200, 200, 403]);
    for fields in [FORWARDED, "X-Original-Method: GET\r\nX-Original-URI: /%zz\r\n"] {
        let answer = rig.call("GET", "/v1/auth", fields, "").await;
        assert_eq!((answer.status, &answer.json()["status"]), (403, &json!(403)), "{fields}");
    }
    let (many, long) = ("A: b\r\n".repeat(200), format!("A: {}\r\n", "b".repeat(20_000)));
    for fields in [many.as_str(), &long, "Expect: wonders\r\n"] {
        let answer = rig.call("GET", "/v1/auth", &format!("{ORIGINAL}{fields}"), "").await;
        assert_eq!((answer.status, code(&answer).as_str()), (403, "unreadable_head"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i11_a_key_has_one_spelling_and_none_is_no_way_out() {
    let rig = rig(AuthSource::Forwarded);
    let key = |text: &str| format!("{FORWARDED}X-Forwarded-For: 192.0.2.1\r\n{text}");
    let long = format!("X-Api-Key: {}\r\n", "k".repeat(5_000));
    for odd in ["X-Api-Key: k\r\nx-api-key: k\r\n", "X-Api-Key: \u{feff}k\r\n", "X-Api-Key: k\tk\r\n", &long] {
        assert_eq!(rig.call("GET", "/v1/auth", &key(odd), "").await.status, 400, "{odd}");
    }
    let spaced = ["X-Api-Key: k\r\n", "X-Api-Key:   k \r\n", "x-api-KEY:k\t\r\n", "X-Api-Key: k\r\n"];
    let checks: Vec<_> = spaced.iter().map(|text| ("GET", "/v1/auth", key(text))).collect();
    assert_eq!(statuses(&rig, &checks).await, [200, 200, 200, 429]);
    // Who sends none is counted by its address, however often it leaves it out.
    let absent = ["", "X-Api-Key:\r\n", "X-Api-Key:  \r\n", "Authorization: Bearer random\r\n"];
    let checks: Vec<_> = absent.iter().map(|text| ("GET", "/v1/auth", key(text))).collect();
    assert_eq!(statuses(&rig, &checks).await, [200, 200, 200, 429]);
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_and_cost_come_from_the_headers_that_were_named() {
    let rig = with(AuthSettings {
        source: AuthSource::Forwarded,
        attributes: vec![from("api_key", "authorization"), from("tier", "x-tier"), from("plan", "x-plan")],
        cost_header: Some("x-cost".to_owned()),
        ..AuthSettings::default()
    });
    let sent = |text: &str| ("GET", "/v1/auth", format!("{FORWARDED}{text}"));
    let bearer =
        ["Bearer a", "bearer  a", "Bearer a", "Bearer a"].map(|text| sent(&format!("Authorization: {text}\r\n")));
    assert_eq!(statuses(&rig, &bearer).await, [200, 200, 200, 429]);
    let basic = [sent("Authorization: Basic YTpi\r\n"), sent("Authorization: Bearer b\r\nX-Cost: 3\r\n")];
    assert_eq!(statuses(&rig, &basic).await, [200, 200]);
    let spent = [sent("Authorization: Bearer b\r\nX-Cost: 0\r\n"), sent("Authorization: Bearer b\r\n")];
    assert_eq!(statuses(&rig, &spent).await, [200, 429], "cost 0 reads");
    for bad in ["-1", "1.5", "+1", "0x1", "99999999999999999999", "9007199254740992", "1\r\nX-Cost: 1", "one"] {
        let answer = rig.call("GET", "/v1/auth", &format!("{FORWARDED}X-Cost: {bad}\r\n"), "").await;
        assert_eq!(answer.status, 400, "{bad}");
    }
    let free = "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /free\r\nX-Tier: dear\r\nX-Plan: p\r\n".to_owned();
    let dear = [("GET", "/v1/auth", free.clone()), ("GET", "/v1/auth", free)];
    assert_eq!(statuses(&rig, &dear).await, [200, 429]);
}

#[tokio::test(flavor = "multi_thread")]
async fn i01_i13_whoever_is_not_trusted_speaks_for_itself_alone() {
    let settings = |trusted_proxies: Vec<Cidr>| AuthSettings {
        source: AuthSource::Forwarded,
        attributes: vec![from("api_key", "x-api-key"), from("tier", "x-tier")],
        cost_header: Some("x-cost".to_owned()),
        trusted_proxies,
        ..AuthSettings::default()
    };
    let forged = |n: u8| {
        let fields = format!("X-Forwarded-For: 192.0.2.{n}\r\nX-Api-Key: k{n}\r\nX-Tier: t{n}\r\nX-Cost: 0\r\n");
        ("GET", "/v1/auth", format!("{FORWARDED}{fields}"))
    };
    let elsewhere = with(settings(vec![Cidr::parse("198.51.100.0/24").unwrap()]));
    assert_eq!(statuses(&elsewhere, &[forged(1), forged(2), forged(3), forged(4)]).await, [200, 200, 200, 429]);
    let here = with(settings(vec![Cidr::parse("127.0.0.1").unwrap()]));
    let client = |list: &str| ("GET", "/v1/auth", format!("{FORWARDED}X-Forwarded-For: {list}\r\n"));
    let lists = ["6.6.6.6, 192.0.2.7", "::ffff:192.0.2.7", "192.0.2.7:443", "9.9.9.9,[::ffff:c000:207]:1"].map(client);
    assert_eq!(statuses(&here, &lists).await, [200, 200, 200, 429], "one client, however it is spelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_is_a_neighbour_and_is_believed() {
    let rig = Rig::with(RULES, |config, dir| {
        config.auth = AuthSettings { source: AuthSource::Forwarded, trusted_proxies: Vec::new(), ..Default::default() };
        config.http.push(Address::Unix(dir.join("s")));
        config.socket_mode = Some(0o660);
    });
    let socket = rig.data.iter().find(|address| matches!(address, Address::Unix(_))).unwrap();
    let mode = std::fs::metadata(rig.dir.path().join("s")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let ask = async |client: &str| {
        let fields = format!("{FORWARDED}X-Forwarded-For: {client}\r\n");
        call(socket, "GET", "/v1/auth", &fields, "").await.status
    };
    for (client, expected) in [("192.0.2.1", [200, 200, 200, 429]), ("192.0.2.2", [200, 200, 200, 429])] {
        let mut statuses = Vec::new();
        for _ in expected {
            statuses.push(ask(client).await);
        }
        assert_eq!(statuses, expected);
    }
    // The connection has no address, so a check without one names no client.
    for fields in ["", "X-Forwarded-For:\r\n", "X-Forwarded-For: unknown\r\n", "X-Api-Key: k\r\n"] {
        let answer = call(socket, "GET", "/v1/auth", &format!("{FORWARDED}{fields}"), "").await;
        assert_eq!((answer.status, code(&answer).as_str()), (400, "no_client_address"), "{fields}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_without_its_token_is_refused_and_never_with_401() {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let rig = Rig::with(RULES, |config, dir| {
        std::fs::write(dir.join("tokens"), TOKEN).unwrap();
        config.token_file = Some(dir.join("tokens"));
        config.auth.source = AuthSource::Forwarded;
    });
    for fields in [FORWARDED.to_owned(), format!("{FORWARDED}Authorization: Bearer {}\r\n", "f".repeat(32))] {
        let answer = rig.call("GET", "/v1/auth", &fields, "").await;
        assert_eq!((answer.status, code(&answer).as_str(), answer.field("www-authenticate")), (403, "no_token", None));
    }
    let fields = format!("{FORWARDED}Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(rig.call("GET", "/v1/auth", &fields, "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_browsers_send_through_a_proxy_is_no_reason_to_refuse() {
    let rig = rig(AuthSource::Forwarded);
    let fields = "Origin: https://shop.example\r\nSec-Fetch-Site: cross-site\r\nContent-Encoding: gzip\r\n\
        Content-Type: text/plain\r\nUpgrade: websocket\r\nExpect: 100-continue\r\n";
    let answer = rig.call("GET", "/v1/auth", &format!("{FORWARDED}{fields}"), "body").await;
    assert!(answer.head.starts_with("HTTP/1.1 200") || answer.head.starts_with("HTTP/1.1 100"), "{}", answer.head);
    let large = rig.call("GET", "/v1/auth", FORWARDED, &"x".repeat(100_000)).await;
    assert_eq!(large.status, 413, "a body is drained up to a limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_apart() {
    let rules = "namespace: shop\nrules:\n  - { name: all, key_by: ip, limit: { requests: 1, window: 1h } }\n";
    let rig = Rig::with(rules, |config, _| {
        config.auth.source = AuthSource::Forwarded;
        config.auth.namespace = Some("shop".to_owned());
    });
    let checks = [("GET", "/v1/auth", FORWARDED.to_owned()), ("GET", "/v1/auth", FORWARDED.to_owned())];
    assert_eq!(statuses(&rig, &checks).await, [200, 429]);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_0_kept_connections_and_http_2_are_answered_alike() {
    let rig = rig(AuthSource::Forwarded);
    let Some(Address::Tcp(address)) = rig.data.first() else { panic!("a TCP address") };
    let mut stream = TcpStream::connect(address).await.unwrap();
    let old = format!("GET /v1/auth HTTP/1.0\r\nConnection: keep-alive\r\n{FORWARDED}\r\n");
    stream.write_all(format!("{old}HEAD /v1/auth HTTP/1.0\r\n{FORWARDED}\r\n").as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(said.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{said}");
    assert!(said.contains("Connection: keep-alive\r\n"), "{said}");

    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let mut ask = async |fields: &[(&str, &str)]| {
        let mut request = http::Request::get("http://x/v1/auth?cost=0");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        let (parts, body) = answer.into_parts();
        (parts.status.as_u16(), parts.headers.contains_key("ratelimit"), body.collect().await.unwrap().to_bytes().len())
    };
    let forwarded = [("x-forwarded-method", "GET"), ("x-forwarded-uri", "/api/x")];
    assert_eq!(ask(&forwarded).await, (200, true, 0));
    let (status, told, length) = ask(&forwarded).await;
    assert!((status, told) == (429, true) && length > 100);
    let repeated = [forwarded[0], forwarded[1], ("x-forwarded-uri", "/free")];
    assert_eq!(ask(&repeated).await.0, 400);
}
