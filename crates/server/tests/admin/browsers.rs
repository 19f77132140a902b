//! Web pages of other origins can do nothing.

use crate::rig::{JSON, Rig, Setup};
use tollgate_admin::AdminAccess;
use tollgate_control::DatabaseUrl;
use tollgate_control::record::Role;

const RULE: &str = "{\"limit\":1,\"window_seconds\":1}";

#[tokio::test(flavor = "multi_thread")]
async fn s08_pages_of_other_origins_change_nothing() {
    let rig = Rig::start().await;
    for fields in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://localhost:1\r\n",
        "Cookie: session=1\r\nOrigin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n",
    ] {
        let answer = rig.call("POST", "/v1/rules", &format!("{JSON}{fields}"), RULE).await;
        assert_eq!(answer.expect(403).code(), "other_origin", "{fields}");
        let open = rig.raw("POST", "/v1/rules", &format!("{JSON}{fields}"), RULE.as_bytes()).await;
        assert_eq!(open.expect(403).code(), "other_origin", "with or without a token");
    }
    // A form is read as JSON from `curl -d`, but not from a browser, which sends Origin or Sec-Fetch-Site.
    const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
    rig.call("POST", "/v1/rules", FORM, RULE).await.expect(201);
    assert_eq!(rig.call("POST", "/v1/rules", FORM, "limit=1").await.expect(400).code(), "not_json");
    for page in ["Origin: http://localhost\r\n", "Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n"] {
        let form = rig.call("POST", "/v1/rules", &format!("{FORM}{page}"), RULE).await;
        assert_eq!(form.expect(415).code(), "wrong_media_type", "{page}");
    }
    assert_eq!(rig.raw("POST", "/v1/rules", FORM, RULE.as_bytes()).await.expect(401).code(), "no_token");
    let text = rig.call("POST", "/v1/rules", "Content-Type: text/plain\r\n", RULE).await;
    assert_eq!(text.expect(415).code(), "wrong_media_type");
    let own = "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n";
    rig.call("POST", "/v1/rules", &format!("{JSON}{own}"), RULE).await.expect(201);
    let read = rig.call("GET", "/v1/rules", "Origin: https://evil.example\r\n", "").await.expect(200);
    assert_eq!(read.field("access-control-allow-origin"), None, "it was read, and the page is not shown it");
    let preflight = rig.raw("OPTIONS", "/v1/rules", "Origin: https://evil.example\r\n", b"").await.expect(405);
    assert!(!preflight.head.to_ascii_lowercase().contains("access-control"), "{}", preflight.head);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_host_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let place = DatabaseUrl::Sqlite(dir.path().join("tollgate.db"));
    let setup = Setup {
        place: Some(place),
        hosts: vec!["limits.example.com".to_owned()],
        metrics: AdminAccess::Needs(Role::Viewer),
    };
    let rig = Rig::with(dir, setup).await;
    for (host, status) in [
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("192.0.2.1", 421),
        ("limits.example.com", 200),
        ("Limits.Example.com:8090", 200),
        ("localhost:8090", 200),
        ("127.0.0.1", 200),
        ("[::1]:8090", 200),
    ] {
        for path in ["/v1/rules", "/docs", "/live", "/metrics"] {
            let host = format!("Host: {host}\r\n");
            let answer = rig.call_as(&rig.viewer, "GET", path, &host, "").await.expect(status);
            if status == 421 {
                assert_eq!(answer.code(), "host_not_allowed", "{path}");
            }
        }
        let unknown = rig.raw("GET", "/nowhere", &format!("Host: {host}\r\n"), b"").await;
        assert_eq!(unknown.status, if status == 421 { 421 } else { 404 }, "{host}");
    }
    assert_eq!(rig.raw("GET", "/metrics", "", b"").await.expect(401).code(), "no_token");
    rig.call_as(&rig.viewer, "GET", "/metrics", "", "").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_security_headers() {
    let rig = Rig::start().await;
    let answers = [
        rig.get("/v1/rules").await,
        rig.get("/v1/rules/none").await,
        rig.get("/nowhere").await,
        rig.raw("GET", "/docs", "", b"").await,
        rig.raw("GET", "/v1/rules", "", b"").await,
        rig.raw("POST", "/v1/rules", "Content-Length: 5\r\n", b"").await,
    ];
    for answer in answers {
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(answer.field(name), Some(value), "{name} of {}", answer.head);
        }
        let policy = answer.field("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
