//! Whole, incomplete and hostile replies.

use proptest::prelude::*;

use super::*;
use crate::template::PLACE;

fn reply(bytes: &str) -> Option<ParsedReply> {
    find(bytes.as_bytes()).unwrap()
}

fn ok(length: usize, verdict: ReplyVerdict) -> Option<ParsedReply> {
    Some(ParsedReply { length, verdict, is_last: false })
}

fn text(piece: &TemplateText) -> String {
    String::from_utf8(piece.bytes.clone()).unwrap()
}

const ALLOWED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"allowed\":true}";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n{\"all\r\nD\r\nowed\": false}\r\n0\r\na: b\r\n\r\n";

#[test]
fn a_request_is_framed_with_its_length() {
    let request = LoadRequest::post("/v1/check").header("X-Key", "{key}").body("{\"client_key\":\"{key}\"}");
    let [head, body] = frame(&request, "localhost:8080");
    let expected = format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost:8080\r\ncontent-type: application/json\r\nX-Key: {PLACE}\r\n\
         content-length: 33\r\n\r\n"
    );
    assert_eq!((text(&head), text(&body)), (expected, format!("{{\"client_key\":\"{PLACE}\"}}")));
    let [head, _] = frame(&LoadRequest::get("/{key}").header("Host", "a"), "b");
    assert_eq!(text(&head), format!("GET /{PLACE} HTTP/1.1\r\nHost: a\r\n\r\n"));
}

#[test]
fn finds_the_end_of_a_reply() {
    assert_eq!(reply(ALLOWED), ok(ALLOWED.len(), ReplyVerdict::Allowed));
    assert_eq!(reply(&format!("{ALLOWED}{ALLOWED}")), ok(ALLOWED.len(), ReplyVerdict::Allowed));
    assert_eq!(reply("HTTP/1.1 204 No Content\r\n\r\nHTTP"), ok(27, ReplyVerdict::Allowed));
    let interim = format!("HTTP/1.1 100 Continue\r\n\r\n{ALLOWED}");
    assert_eq!(reply(&interim), ok(interim.len(), ReplyVerdict::Allowed));
    assert_eq!(reply(CHUNKED).map(|reply| reply.length), Some(CHUNKED.len()));
}

#[test]
fn the_status_and_the_first_allowed_member_decide() {
    let with = |status: &str, body: &str| {
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        reply(&text).map(|reply| reply.verdict)
    };
    assert_eq!(with("200 OK", "{\"allowed\":false}"), Some(ReplyVerdict::Denied));
    assert_eq!(with("200 OK", "{\"rule\":\"allowed\",\"allowed\": false}"), Some(ReplyVerdict::Denied));
    assert_eq!(with("200 OK", "{\"x\":{\"allowed\":true},\"allowed\":false}"), Some(ReplyVerdict::Allowed));
    assert_eq!(with("200 OK", ""), Some(ReplyVerdict::Allowed));
    assert_eq!(with("429 Too Many Requests", ""), Some(ReplyVerdict::Denied));
    assert_eq!(with("404 Not Found", "{\"allowed\":true}"), Some(ReplyVerdict::Failed(404)));
    assert_eq!(with("503 Busy", "\""), Some(ReplyVerdict::Failed(503)));
}

#[test]
fn reads_whether_the_server_closes() {
    let last = |text: &str| reply(text).map(|reply| reply.is_last);
    assert_eq!(last("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"), Some(true));
    assert_eq!(last("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"), Some(true));
    assert_eq!(last("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\ncontent-length: 0\r\n\r\n"), Some(false));
}

#[test]
fn an_incomplete_reply_is_not_read() {
    for text in [ALLOWED, CHUNKED] {
        for end in 0..text.len() {
            assert_eq!(find(&text.as_bytes()[..end]), Ok(None), "{:?}", &text[..end]);
        }
    }
}

#[test]
fn hostile_replies_are_rejected() {
    let head = "HTTP/1.1 200 OK\r\n";
    let cases = [
        "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
        "\0\0\0\0".to_owned(),
        format!("{head}\r\n"),
        format!("{head}content-length: -1\r\n\r\n"),
        format!("{head}content-length: +1\r\n\r\n"),
        format!("{head}content-length: 99999999999999999999999\r\n\r\n"),
        format!("{head}content-length: 18446744073709551615\r\n\r\n"),
        format!("{head}content-length: 1\r\ncontent-length: 2\r\n\r\nab"),
        format!("{head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{head}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\n2\r\nabcd"),
        format!("{head}transfer-encoding: chunked\r\n\r\nzz\r\n"),
        format!("{head}{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1)),
        "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
    ];
    for case in cases {
        assert!(find(case.as_bytes()).is_err(), "{case:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = find(&bytes);
        let _ = find(&[b"HTTP/1.1 200 OK\r\n", bytes.as_slice()].concat());
        let _ = find(&[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", bytes.as_slice()].concat());
    }

    #[test]
    fn a_reply_never_reaches_beyond_what_was_read(at in 0..CHUNKED.len(), byte: u8) {
        let mut bytes = CHUNKED.as_bytes().to_vec();
        bytes[at] = byte;
        if let Ok(Some(reply)) = find(&bytes) {
            prop_assert!(reply.length <= bytes.len());
        }
    }
}
