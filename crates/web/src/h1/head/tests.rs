//! Heads that are accepted and refused: the HTTP/1 framing table of RELIABILITY, without sockets.

use super::*;

fn read(text: &str) -> Result<Option<ParsedHead<'_>>, HttpError> {
    parse(text.as_bytes(), 16 << 10, 100)
}

fn with(fields: &str) -> String {
    format!("POST /v1/check HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n")
}

#[test]
fn parses_the_fields_that_handlers_read() {
    let text = "POST /v1/check?status=429 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nContent-Type: application/json\r\n\
        Accept: */*\r\nContent-Length: 12\r\nX-Other: y\r\n\r\nnext";
    let parsed = read(text).unwrap().unwrap();
    assert_eq!((parsed.head.method, parsed.head.path, parsed.head.query), ("POST", "/v1/check", Some("status=429")));
    assert_eq!(parsed.head.authorization, Some(&b"Bearer t"[..]));
    assert_eq!((parsed.length, parsed.keep_alive, parsed.bytes), (BodyLength::Known(12), true, text.len() - 4));
    for cut in 0..text.len() - 4 {
        assert_eq!(read(&text[..cut]), Ok(None), "{cut} bytes are an incomplete head");
    }
}

#[test]
fn absolute_targets_are_reduced_to_their_path() {
    for (target, path) in [
        ("/live", "/live"),
        ("http://other.example/live", "/live"),
        ("https://other.example:1/live?x", "/live"),
        ("http://other.example", "/"),
    ] {
        let host = if target.ends_with("?x") { "Other.example:1" } else { "other.example" };
        let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(read(&text).unwrap().unwrap().head.path, path);
    }
    let all = "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(read(all).unwrap().unwrap().head.path, "*");
    assert_eq!(read(&all.replace("OPTIONS", "POST")), Err(HttpError::Malformed(ASTERISK)));
}

#[test]
fn there_is_one_host_and_an_absolute_target_names_the_same() {
    let of = |target: &str, host: &str| {
        let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        read(&text).map(|parsed| parsed.unwrap().head.host.map(<[u8]>::to_vec))
    };
    for host in ["", "a@b", "a,b", "a b", "a:b", "a/b", "[::1"] {
        assert_eq!(of("/", host), Err(HttpError::Malformed(HOST_BAD)), "{host:?}");
    }
    for target in ["http://y/", "http://x:81", "https://x:80/", "http://x?@y/"] {
        let host = if target == "http://x?@y/" { "y" } else { "x" };
        assert_eq!(of(target, host), Err(HttpError::Malformed(HOSTS_DIFFER)), "{target}");
    }
    for target in ["http://a@x/", "http://", "http:///", "http://x#y/"] {
        assert_eq!(of(target, "x"), Err(HttpError::Malformed(HOST_BAD)), "{target}");
    }
    for target in ["/", "http://x/", "http://X:80/", "http://x:?a"] {
        assert_eq!(of(target, "x"), Ok(Some(b"x".to_vec())), "{target}");
    }
    let old = "GET http://x:1/ HTTP/1.0\r\n\r\n";
    assert_eq!(read(old).unwrap().unwrap().head.host, Some(&b"x:1"[..]));
}

#[test]
fn ambiguous_lengths_are_refused() {
    let bad = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 5",
        "Content-Length: 05",
        "Content-Length: 00",
        "Content-Length: +5",
        "Content-Length: -1",
        "Content-Length: 0x5",
        "Content-Length: 5\u{b}",
        "Content-Length: 99999999999999999999",
        "Content-Length:",
        "Transfer-Encoding: chunked\t",
        "Transfer-Encoding: chunked ",
        "Transfer-Encoding:  chunked",
        "Transfer-Encoding:\tchunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:",
    ];
    for fields in bad {
        assert!(matches!(read(&with(fields)), Err(HttpError::Malformed(_))), "{fields:?}");
    }
    for fields in ["Transfer-Encoding: chunked", "transfer-encoding:CHUNKED"] {
        assert_eq!(read(&with(fields)).unwrap().unwrap().length, BodyLength::Chunked);
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(matches!(read(old), Err(HttpError::Malformed(_))));
}

#[test]
fn anything_but_http_1_is_refused() {
    let malformed = [
        "GET /\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\u{7f}c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA(: c\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "\u{16}\u{3}\u{1}\0\u{5}",
        "*1\r\n$4\r\nPING\r\n",
    ];
    for text in malformed {
        assert!(matches!(read(text), Err(HttpError::Malformed(_) | HttpError::Version)), "{text:?}: {:?}", read(text));
    }
    for version in ["HTTP/3.7", "HTTP/2.0", "HTTP/0.9", "HTTP/1.10"] {
        let text = format!("GET / {version}\r\nHost: x\r\n\r\n");
        assert!(
            matches!(read(&text), Err(HttpError::Version | HttpError::Malformed(_))),
            "{version}: {:?}",
            read(&text)
        );
    }
    assert_eq!(read(&with("Expect: 200-ok")), Err(HttpError::Expectation));
}

#[test]
fn sizes_are_bounded() {
    let line = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(64 << 10));
    assert_eq!(read(&line), Err(HttpError::TargetTooLong));
    let one = with(&format!("A: {}", "b".repeat(17 << 10)));
    assert_eq!(read(&one), Err(HttpError::HeadTooLarge));
    let fields = |count: usize| with(&vec!["A: b"; count].join("\r\n"));
    assert!(read(&fields(99)).unwrap().is_some(), "99 and the Host");
    assert_eq!(read(&fields(100)), Err(HttpError::HeadTooLarge));
    let many = "GET /live HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
    assert!(read(&many).unwrap().is_some(), "a long pipeline is not a long head");
    let unending = "GET / HTTP/1.1\r\n".to_owned() + &"A: b\r\n".repeat(4000);
    assert_eq!(read(&unending), Err(HttpError::HeadTooLarge));
}

#[test]
fn keep_alive_defaults_to_that_of_the_version() {
    let keeps = |version: &str, fields: &str| {
        let text = format!("GET / HTTP/{version}\r\nHost: x\r\n{fields}\r\n");
        read(&text).unwrap().unwrap().keep_alive
    };
    assert!(keeps("1.1", ""));
    assert!(!keeps("1.0", ""));
    assert!(keeps("1.0", "Connection: keep-alive\r\n"));
    assert!(!keeps("1.1", "Connection: close\r\n"));
    assert!(!keeps("1.1", "Connection: upgrade, Close\r\nConnection: keep-alive\r\n"));
}
