//! Rows H01–H24 of the framing corpus through the gateway, with nginx, Express and hyper behind it: what the caller gets,
//! and what the server has received.

use tokio::io::AsyncWriteExt;

use crate::rig::{PATIENCE, Rig, within};
use crate::servers::RealApi;

const RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

/// Two readers could disagree about each of these. The gateway is the first, and the last.
const REFUSED: &[(&str, &str)] = &[
    ("h01", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("h02", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    ("h03", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"),
    ("h03", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\nabcdef"),
    ("h05", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde"),
    ("h05", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nabcde"),
    ("h05", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nabcde"),
    ("h05", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\x0b\r\n\r\nabcde"),
    ("h05", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nabcde"),
    ("h06", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    ("h06", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("h06", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    ("h06", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("h06", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n"),
    ("h06", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
    ("h06", "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n"),
    ("h07", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    ("h13", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("h13", "GET /\r\n\r\n"),
    ("h13", "GET / HTTP/3.7\r\nHost: a\r\n\r\n"),
    ("h14", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n Transfer-Encoding: chunked\r\n\r\n"),
    ("h14", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\rY: 2\r\n\r\n"),
    ("h14", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\0\r\n\r\n"),
    ("h14", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\x7f\r\n\r\n"),
    ("h14", "GET / HTTP/1.1\r\nHost: a\r\nX Y: 1\r\n\r\n"),
    ("h14", "GET / HTTP/1.1\r\nHost: a\r\nX(: 1\r\n\r\n"),
    ("h14", "GET / HTTP/1.1\nHost: a\nX: 1\n\n"),
    ("h14", "GET / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n"),
    ("h14", "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"),
    ("h14", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("h14", "GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("h17", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nConnection: close\r\n\r\n"),
    ("h17", "TRACE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    ("host", "GET / HTTP/1.1\r\n\r\n"),
    ("host", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("host", "GET / HTTP/1.1\r\nHost: a/../b\r\n\r\n"),
    ("host", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n"),
    ("chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n"),
    ("chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n"),
    ("chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n"),
    ("chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\na\r\n0\r\n\r\n"),
    ("chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\na\r\n0\r\n\r\n"),
    ("h20", "\x16\x03\x01\x02\x00\x01\x00\x01\u{7c}\x03\x03"),
    ("h20", "*1\r\n$4\r\nPING\r\n"),
];

#[tokio::test]
async fn messages_with_two_readings_are_refused_and_reach_no_server() {
    for api in RealApi::all().await {
        let rig = Rig::start(RULES, &api.url());
        let sized = [
            ("h15", format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(64 << 10))),
            ("h15", format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: 1\r\n".repeat(101))),
            ("h15", format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(17 << 10))),
            ("h17", format!("{} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "A".repeat(300))),
        ];
        let sized = sized.iter().map(|(row, text)| (*row, text.as_str()));
        for (row, text) in REFUSED.iter().copied().chain(sized) {
            let mut caller = rig.connect().await;
            // With a request behind it, which must not be answered: its beginning is not agreed on.
            let both = format!("{text}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
            let _ = within(caller.stream.write_all(both.as_bytes())).await;
            let answer = tokio::time::timeout(PATIENCE / 2, caller.rest()).await;
            let answer =
                answer.unwrap_or_else(|_| panic!("{}, {row}, {text:?}: the connection stays open", api.name()));
            let status: u16 = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default();
            let name = api.name();
            assert!((400..=505).contains(&status), "{name}, {row}, {text:?}: {answer}");
            let answers = ["HTTP/1.1 2", "HTTP/1.1 4", "HTTP/1.1 5"].iter().map(|start| answer.matches(start).count());
            assert_eq!(answers.sum::<usize>(), 1, "{name}, {row}, {text:?}: {answer}");
        }
        assert_eq!(rig.get("/after").await.status, 200);
        let seen = api.seen(1).await;
        // hyper polls a body before it is whole: what it was given ended as an error, and no request came of it.
        assert_eq!(seen.len(), 1, "{}: {seen:?}", api.name());
        assert!(seen[0].starts_with("GET /after HTTP/1.1\r\n"), "{}: {seen:?}", api.name());
    }
}

#[tokio::test]
async fn h10_what_follows_a_body_is_the_next_request_and_is_limited() {
    for api in RealApi::all().await {
        let rig = Rig::start(RULES, &api.url());
        assert_eq!(rig.get("/limited").await.status, 200);
        let mut caller = rig.connect().await;
        caller
            .send(
                "POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbodyGET /limited HTTP/1.1\r\nHost: a\r\n\r\n\
                 GET /last HTTP/1.1\r\nHost: a\r\n\r\n",
            )
            .await;
        let answers = [caller.answer().await.status, caller.answer().await.status, caller.answer().await.status];
        assert_eq!(answers, [200, 429, 200], "{}", api.name());
        let seen = api.seen(3).await;
        let lines: Vec<&str> = seen.iter().filter_map(|seen| seen.lines().next()).collect();
        assert_eq!(lines, ["GET /limited HTTP/1.1", "POST /first HTTP/1.1", "GET /last HTTP/1.1"], "{}", api.name());
        assert!(seen[1].ends_with("\r\n\r\nbody"), "{}: {seen:?}", api.name());
    }
}

/// The body of a refused request is no request, and is read no further than a little.
#[tokio::test]
async fn h11_a_refused_upload_is_answered_at_once_and_its_body_never_read_as_requests() {
    for api in RealApi::all().await {
        let rig = Rig::start(RULES, &api.url());
        assert_eq!(rig.get("/limited").await.status, 200);
        let mut caller = rig.connect().await;
        let body = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        caller.send(&format!("POST /limited HTTP/1.1\r\nHost: a\r\nContent-Length: 10485760\r\n\r\n{body}")).await;
        assert_eq!(caller.answer().await.status, 429, "before the body is there");
        for _ in 0..64 {
            if within(caller.stream.write_all(body.repeat(128).as_bytes())).await.is_err() {
                break;
            }
        }
        assert!(!caller.rest().await.contains("HTTP/1.1 "), "{}: nothing of the body was answered", api.name());
        assert_eq!(rig.get("/after").await.status, 200);
        let seen = api.seen(2).await;
        assert!(seen.len() == 2 && seen[1].starts_with("GET /after "), "{}: {seen:?}", api.name());
    }
}

/// The server does not know the protocol and answers as to any request: what follows is a request, not a tunnel.
#[tokio::test]
async fn h12_there_is_no_tunnel_before_the_server_has_agreed() {
    for api in RealApi::all().await {
        let rig = Rig::start(RULES, &api.url());
        assert_eq!(rig.get("/limited").await.status, 200);
        let mut caller = rig.connect().await;
        caller
            .send(
                "GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n\
                 GET /limited HTTP/1.1\r\nHost: a\r\n\r\nGET /last HTTP/1.1\r\nHost: a\r\n\r\n",
            )
            .await;
        let first = caller.answer().await.status;
        assert!(matches!(first, 200 | 400 | 426), "{}: {first}", api.name());
        assert_eq!(caller.answer().await.status, 429, "{}", api.name());
        assert_eq!(caller.answer().await.status, 200, "{}", api.name());
        let seen = api.seen(2).await;
        assert_eq!(seen.iter().filter(|seen| seen.contains(" /limited ")).count(), 1, "{}: {seen:?}", api.name());
    }
}

/// 100 comes with the decision, not before it.
#[tokio::test]
async fn h18_a_body_is_asked_for_only_if_the_request_is_admitted() {
    for api in RealApi::all().await {
        let rig = Rig::start(RULES, &api.url());
        let ask = "POST /limited HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
        let mut caller = rig.connect().await;
        caller.send(ask).await;
        assert!(caller.head().await.starts_with("HTTP/1.1 100 "), "{}", api.name());
        caller.send("body").await;
        assert_eq!(caller.answer().await.status, 200, "{}", api.name());
        let seen = api.seen(1).await;
        assert!(seen[0].ends_with("\r\n\r\nbody") && !seen[0].to_lowercase().contains("expect"), "{seen:?}");
        let mut caller = rig.connect().await;
        caller.send(ask).await;
        assert!(caller.head().await.starts_with("HTTP/1.1 429 "), "{}", api.name());
    }
}

#[tokio::test]
async fn h24_pipelined_requests_are_answered_in_their_order() {
    for api in RealApi::all().await {
        let rig = Rig::start(RULES, &api.url());
        let mut caller = rig.connect().await;
        let many: String = (0..200).map(|at| format!("GET /n/{at} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
        caller.send(&many).await;
        for _ in 0..200 {
            assert_eq!(caller.answer().await.status, 200, "{}", api.name());
        }
        let seen = api.seen(200).await;
        for (at, seen) in seen.iter().enumerate() {
            assert!(seen.starts_with(&format!("GET /n/{at} HTTP/1.1\r\n")), "{}: {seen}", api.name());
        }
    }
}

/// One head, however it was written: names in lower case, one space, no fields of the connection.
#[tokio::test]
async fn the_server_gets_a_head_that_the_gateway_has_written() {
    for api in RealApi::all().await.into_iter().filter(|api| api.name() != "nginx") {
        let rig = Rig::start(RULES, &api.url());
        let mut caller = rig.connect().await;
        caller
            .send(
                "POST //a/./b?q=1 HTTP/1.1\r\nhOsT:api.example.com\r\nX-One:   1  \r\nConnection: close, x-two\r\n\
                 X-Two: 2\r\nTransfer-Encoding: Chunked\r\nX-HTTP-Method-Override: DELETE\r\nX-Original-URL: /admin\r\n\
                 X-Rewrite-URL: /admin\r\nProxy: http://6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n",
            )
            .await;
        assert_eq!(caller.answer().await.status, 200, "{}", api.name());
        let seen = api.seen(1).await.remove(0);
        let (head, body) = seen.split_once("\r\n\r\n").unwrap();
        let mut lines: Vec<&str> = head.split("\r\n").collect();
        assert_eq!(lines.remove(0), "POST /a/b?q=1 HTTP/1.1");
        lines.sort_unstable();
        let expected = [
            "host: api.example.com",
            "transfer-encoding: chunked",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: api.example.com",
            "x-forwarded-proto: http",
            "x-one: 1",
        ];
        assert_eq!((lines.as_slice(), body), (expected.as_slice(), "hello"), "{}", api.name());
    }
}

#[tokio::test]
async fn h09_h21_h22_callers_that_stop_are_let_go() {
    let api = crate::servers::HyperApi::start().await;
    let rig = Rig::with(RULES, |config, _| {
        config.gateway.upstream = vec![api.url()];
        config.net.head_timeout = std::time::Duration::from_millis(50);
        config.net.body_timeout = std::time::Duration::from_millis(50);
    });
    let mut caller = rig.connect().await;
    caller.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
    let answer = caller.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "a body without an end: {answer}");
    let mut caller = rig.connect().await;
    caller.send("GET / HT").await;
    let answer = caller.rest().await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "a head without an end: {answer}");
    assert!(api.seen(0).await.is_empty());
}

/// HTTP/1.0 as old health checks speak it: no host, and a response without chunks that ends with the connection.
#[tokio::test]
async fn http_1_0_is_served_without_a_host_and_without_chunks() {
    for api in RealApi::all().await {
        let rig = Rig::start(RULES, &api.url());
        let mut caller = rig.connect().await;
        caller.send("GET /x HTTP/1.0\r\n\r\n").await;
        let answer = caller.rest().await;
        assert!(answer.contains(" 200 ") && answer.ends_with(&format!("from {}", api.name())), "{answer}");
        assert!(!answer.to_lowercase().contains("transfer-encoding"), "{answer}");
        let seen = api.seen(1).await;
        let host = api.url().replace("http://", "host: ");
        assert!(seen[0].starts_with("GET /x HTTP/1.1\r\n") && seen[0].contains(&host), "{seen:?}");
    }
}
