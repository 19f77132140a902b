//! Encrypted connections to servers: the version of HTTP that the handshake agrees on, whose certificates are believed.

use rcgen::{CertificateParams, CertifiedKey, KeyPair, date_time_ymd};

use crate::rig::{Answer, Rig, until};
use crate::tls_server::{TlsServer, certificate};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

/// A gateway that trusts this certificate alone.
fn trusting(own: &CertifiedKey<KeyPair>, url: &str) -> Rig {
    Rig::with(NO_RULES, |config, dir| {
        std::fs::write(dir.join("ca.pem"), own.cert.pem()).unwrap();
        let upstream = format!("servers: {url}, ca: ca.pem, ejection: {{ after: 0 }}");
        let routes = format!("upstreams: {{ api: {{ {upstream} }} }}\nroutes: [{{ upstream: api }}]\n");
        std::fs::write(dir.join("routes.yaml"), routes).unwrap();
        config.gateway.routes = Some(dir.join("routes.yaml"));
    })
}

#[tokio::test]
async fn the_handshake_chooses_http_2_where_the_server_takes_it() {
    let own = certificate("127.0.0.1");
    for (protocols, version) in [
        (&[&b"h2"[..], b"http/1.1"][..], "HTTP/2.0"),
        (&[b"h2"], "HTTP/2.0"),
        (&[b"http/1.1"], "HTTP/1.1"),
        (&[], "HTTP/1.1"),
    ] {
        let server = TlsServer::start(&own, protocols).await;
        let rig = trusting(&own, &server.url());
        let answer = rig.get("/a?b=1").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "over tls"), "{version}");
        let mut caller = rig.connect().await;
        caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
        assert_eq!(caller.answer().await.body, "hello", "{version}");
        caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n").await;
        assert_eq!(caller.answer().await.body, "hi", "{version}");
        let expected = [
            format!("{version} GET /a \"api.example.com\" "),
            format!("{version} POST /echo \"a\" hello"),
            format!("{version} POST /echo \"a\" hi"),
        ];
        assert_eq!(server.seen(), expected);
        assert_eq!(server.handshakes(), 1, "{version}: one connection for requests that follow each other");
    }
}

/// Requests share a connection of HTTP/2, and one that is slow holds up no other.
#[tokio::test]
async fn requests_at_the_same_time_share_a_connection_of_http_2() {
    let own = certificate("127.0.0.1");
    let server = TlsServer::start(&own, &[b"h2"]).await;
    let rig = trusting(&own, &server.url());
    assert_eq!(rig.get("/first").await.status, 200);
    let mut holders = Vec::new();
    for _ in 0..30 {
        let mut caller = rig.connect().await;
        caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
        holders.push(caller);
    }
    let mut seen = server.seen();
    until(async || {
        seen.extend(server.seen());
        seen.len() == 31
    })
    .await;
    assert_eq!(rig.get("/other").await.status, 200, "beside thirty that wait");
    server.released.send_replace(true);
    for caller in &mut holders {
        assert_eq!(caller.answer().await.status, 200);
    }
    assert_eq!(server.handshakes(), 1);
}

fn is_unreachable(answer: &Answer) -> bool {
    answer.status == 502
        && answer.body.contains("\"code\":\"upstream_unreachable\"")
        && !["certificate", "tls", "127.0.0.1"].iter().any(|inner| answer.body.contains(inner))
}

/// No request is sent to a server that cannot prove its name, and the caller learns nothing of why.
#[tokio::test]
async fn a_server_without_a_certificate_that_is_trusted_gets_no_request() {
    let (own, other) = (certificate("127.0.0.1"), certificate("127.0.0.1"));
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_after = date_time_ymd(2020, 1, 1);
    let expired = CertifiedKey { cert: params.self_signed(&key).unwrap(), signing_key: key };
    let elsewhere = certificate("api.example.com");
    for (why, shown, trusted) in [
        ("an unknown authority", &other, &own),
        ("the name of another server", &elsewhere, &elsewhere),
        ("a certificate that has expired", &expired, &expired),
    ] {
        let server = TlsServer::start(shown, &[b"h2", b"http/1.1"]).await;
        let rig = trusting(trusted, &server.url());
        for _ in 0..3 {
            let answer = rig.get("/x").await;
            assert!(is_unreachable(&answer), "{why}: {answer:?}");
        }
        assert_eq!((server.handshakes(), server.seen().len()), (0, 0), "{why}");
    }
    let server = TlsServer::start(&own, &[b"http/1.1"]).await;
    let plain = trusting(&own, &server.url().replace("https://", "http://"));
    assert_eq!(plain.get("/x").await.status, 502, "a server of TLS without it");
    let plain = crate::app::App::start().await;
    let rig = trusting(&own, &plain.url().replace("http://", "https://"));
    let answer = rig.get("/x").await;
    assert!(matches!(answer.status, 502 | 504), "TLS with a server that has none: {answer:?}");
    assert_eq!(plain.seen().len(), 0);
}

#[tokio::test]
async fn a_name_is_checked_as_the_url_writes_it() {
    let own = certificate("localhost");
    let server = TlsServer::start(&own, &[b"h2"]).await;
    let rig = trusting(&own, &server.url_as("localhost"));
    assert_eq!(rig.get("/x").await.status, 200);
    let rig = trusting(&own, &server.url());
    assert!(is_unreachable(&rig.get("/x").await), "127.0.0.1 is not in the certificate");
}
