//! Fuzz targets of this crate, also replayed on their corpora: each takes bytes and panics if an invariant fails.

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tollgate_web::h1::parse;

use crate::canonical::CanonicalPath;
use crate::field_class::FieldClass;
use crate::request_head::{ForwardedFor, ForwardingPeer, HeadStyle, rebuild_head, tokens};
use crate::spec::{ForwardedStyle, HeaderEdits, TraceStyle};

const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 100;
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77));

/// A head that is rebuilt is read by the strict parser as one request, with the same host, length and canonical path, without
/// fields of the connection, and with the peer as the last hop. Input: a byte of options, then the head of a request.
pub fn rebuilt_head(data: &[u8]) {
    let Some((options, head)) = data.split_first() else { return };
    let Ok(Some(parsed)) = parse(head, MAX_HEAD, MAX_HEADERS) else { return };
    let Ok(path) = CanonicalPath::parse(parsed.head.path) else { return };
    assert_eq!(
        CanonicalPath::parse(path.as_str()).as_ref().map(CanonicalPath::as_str),
        Ok(path.as_str()),
        "a fixed point"
    );
    let Some(mut headers) = fields(head.get(..parsed.bytes).unwrap_or_default()) else { return };
    let sent = headers.clone();
    let host = headers.get(header::HOST).cloned();
    let style = match options & 3 {
        0 => ForwardedStyle::XForwarded,
        1 => ForwardedStyle::Forwarded,
        2 => ForwardedStyle::Both,
        _ => ForwardedStyle::Off,
    };
    let trusts_peer = options & 4 != 0;
    let forwarded = ForwardedFor {
        peer: ForwardingPeer { address: Some(PEER), text: None },
        trusts_peer,
        host: host.as_ref(),
        is_tls: options & 8 != 0,
    };
    let edits = HeaderEdits::default();
    let credentials = [HeaderName::from_static("x-api-key")];
    let route = HeadStyle { forwarded: style, trace: TraceStyle::Pass, edits: &edits, credentials: &credentials };
    rebuild_head(&mut headers, &route, &forwarded);
    // Requests of HTTP/1.0 without a host get the server's, when it is chosen.
    let host = headers.entry(header::HOST).or_insert(HeaderValue::from_static("server")).clone();
    check_fields(&headers, &sent, trusts_peer);
    check_hops(&headers, style, trusts_peer);

    let method = parsed.head.method;
    let written = write(method, path.as_str(), &headers);
    let again = parse(&written, 2 * MAX_HEAD, 2 * MAX_HEADERS);
    let Ok(Some(again)) = again else { panic!("{again:?} of a rebuilt head: {}", String::from_utf8_lossy(&written)) };
    assert_eq!((again.bytes, again.head.method, again.head.path), (written.len(), method, path.as_str()));
    assert_eq!(again.head.host, Some(host.as_bytes()));
    let length = sent.get(header::CONTENT_LENGTH).map(HeaderValue::as_bytes);
    assert_eq!(headers.get(header::CONTENT_LENGTH).map(HeaderValue::as_bytes), length, "the framing of the body");
}

/// The fields of an accepted head; `None` if hyper would not take one of them.
fn fields(head: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    let mut lines = head.trim_ascii_start().split(|byte| *byte == b'\n').skip(1);
    for line in lines.by_ref().map(<[u8]>::trim_ascii).take_while(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at_checked(colon)?;
        let value = value.strip_prefix(b":")?.trim_ascii();
        headers.append(HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value).ok()?);
    }
    Some(headers)
}

/// As hyper writes it.
fn write(method: &str, path: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn check_fields(headers: &HeaderMap, sent: &HeaderMap, trusts_peer: bool) {
    for name in headers.keys().filter(|name| **name != header::TE) {
        match FieldClass::of_any_spelling(name.as_str()) {
            FieldClass::Own => {}
            FieldClass::Hops => assert!(!name.as_str().contains('_'), "{name}"),
            FieldClass::Proxy => assert!(trusts_peer, "{name}"),
            class => panic!("{name} is {class:?}"),
        }
    }
    assert!(headers.get_all(header::COOKIE).iter().count() <= 1, "cookies are one field");
    assert!(headers.get(header::TE).is_none_or(|value| value == "trailers"));
    for named in tokens(sent, &header::CONNECTION).map(str::to_ascii_lowercase) {
        let is_own = named == "host" || named == "te" || named.starts_with("content-") || named.contains("forwarded");
        assert!(is_own || !headers.contains_key(named.as_str()), "{named} is of the connection");
    }
    for name in headers.keys().map(HeaderName::as_str).filter(|name| name.contains('_')) {
        let hyphenated = name.replace('_', "-");
        assert_ne!(hyphenated, "x-api-key", "{name} is a key that was not read");
        assert!(
            !headers.contains_key(&hyphenated) && !hyphenated.starts_with("x-forwarded-for"),
            "{name} has two spellings"
        );
    }
}

/// What servers are told of hops ends with what the gateway knows.
fn check_hops(headers: &HeaderMap, style: ForwardedStyle, trusts_peer: bool) {
    let is_x = matches!(style, ForwardedStyle::XForwarded | ForwardedStyle::Both);
    let hops: Vec<&HeaderValue> = headers.get_all("x-forwarded-for").iter().collect();
    match (is_x, hops.as_slice()) {
        (false, []) => {}
        (true, [hops]) if trusts_peer => assert!(hops.as_bytes().ends_with(b"192.0.2.77"), "{hops:?}"),
        (true, [hops]) => assert_eq!(hops.as_bytes(), b"192.0.2.77"),
        (_, hops) => panic!("{style:?}: {hops:?}"),
    }
    let elements: Vec<&HeaderValue> = headers.get_all(header::FORWARDED).iter().collect();
    match (matches!(style, ForwardedStyle::Forwarded | ForwardedStyle::Both), elements.as_slice()) {
        (false, []) => {}
        (true, [element]) => {
            let text = element.as_bytes();
            let start = text.windows(14).rposition(|part| part == b"for=192.0.2.77");
            assert!(start.is_some_and(|start| start == 0 || trusts_peer), "{element:?}");
        }
        (_, elements) => panic!("{style:?}: {elements:?}"),
    }
}
