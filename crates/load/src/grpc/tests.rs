//! Framing of requests, replies in any order and in pieces, and hostile frames.

use proptest::prelude::*;

use super::wire::{ACK, Frame, MAX_STREAMS, put};
use super::*;
use crate::keys::KeySampler;
use crate::lost::ConnectionEnded;
use crate::plan::Popularity;
use crate::reply::ReplyVerdict;

const PATH: &str = "/a.B/C";
const ALLOWED: &[u8] = &[0, 0, 0, 0, 2, 8, 1];
const OVER_LIMIT: &[u8] = &[0, 0, 0, 0, 2, 8, 2];
const EMPTY: &[u8] = &[0, 0, 0, 0, 0];
/// `grpc-status: 0` in full, as h2 writes it, and `grpc-status: 12` as Go does.
const STATUS_0: &[u8] = b"\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x81\x07";
const STATUS_12: &[u8] = b"\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x02\x31\x32";

fn framed(request: &LoadRequest) -> FramedCalls {
    frame(request, "localhost:1", 4).unwrap()
}

fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while let Some(frame) = Frame::read(bytes).unwrap() {
        bytes = &bytes[frame.length()..];
        frames.push(frame);
    }
    assert!(bytes.is_empty());
    frames
}

/// Streams of which the first has been answered, and `number` are in flight, with start times from 100.
fn streams(number: u64) -> Streams {
    let mut streams = Streams::new(20);
    streams.open(0);
    assert_eq!((streams.in_flight(), streams.room(1), streams.room(5)), (0, 0, 4));
    assert_eq!(take(&mut streams, &reply(1, ALLOWED)), Ok(vec![]), "the first is not counted");
    streams.begin(100..100 + number);
    streams
}

/// Headers, a message, trailers.
fn reply(stream: u32, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, FrameKind::HEADERS, END_HEADERS, stream, &[0x88]);
    put(&mut bytes, FrameKind::DATA, 0, stream, message);
    put(&mut bytes, FrameKind::HEADERS, END_HEADERS | END_STREAM, stream, STATUS_0);
    bytes
}

fn one(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, kind, flags, stream, payload);
    bytes
}

/// Start times and verdicts of the answered requests.
fn take(streams: &mut Streams, bytes: &[u8]) -> Result<Vec<(u64, ReplyVerdict)>, ConnectionEnded> {
    let mut replies = Vec::new();
    let used = streams.take(bytes, &mut Vec::new(), |start, verdict, _| replies.push((start, verdict)))?;
    assert_eq!(used, bytes.len());
    Ok(replies)
}

fn answered(streams: &mut Streams, bytes: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    streams.take(bytes, &mut answer, |_, _, _| ()).unwrap();
    answer
}

#[test]
fn the_first_request_fills_the_header_table() {
    let framed =
        framed(&LoadRequest::post(PATH).header("X-Token", "abc").body(ProtobufMessage::new().text(1, "{key}")));
    let frames = frames(framed.opening.strip_prefix(PREFACE).unwrap());
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.stream)).collect();
    assert_eq!(
        kinds,
        [(FrameKind::SETTINGS, 0), (FrameKind::WINDOW_UPDATE, 0), (FrameKind::HEADERS, 1), (FrameKind::DATA, 1)]
    );
    let headers = b"\x83\x86\x44\x06/a.B/C\x41\x0blocalhost:1\x5f\x10application/grpc\x40\x02te\x08trailers\x40\x07x-token\x03abc";
    assert_eq!(frames[2].payload, headers);
    assert_eq!(frames[3].payload, b"\0\0\0\0\x12\x0a\x10key:000000000000");
    assert!(frames[2].is(END_HEADERS) && !frames[2].is(END_STREAM) && frames[3].is(END_STREAM));
}

#[test]
fn later_requests_index_the_headers_and_number_their_streams() {
    let mut framed =
        framed(&LoadRequest::post(PATH).header("x-key", "{key}").body(ProtobufMessage::new().text(1, "{key}")));
    let mut keys = KeySampler::new(1, Popularity::Uniform, 1);
    let sent = framed.template.next(2, &mut keys, 7).to_vec();
    let frames = frames(&sent);
    let streams: Vec<u32> = frames.iter().map(|frame| frame.stream).collect();
    assert_eq!(streams, [7, 7, 9, 9]);
    assert_eq!(frames[2].payload, b"\x83\x86\xc1\xc0\xbf\xbe\x00\x05x-key\x10key:000000000000");
    assert_eq!(frames[3].payload, b"\0\0\0\0\x12\x0a\x10key:000000000000");
}

#[test]
fn invalid_requests_are_rejected() {
    let refused = |request: &LoadRequest| frame(request, "a", 1).is_err();
    for path in ["/", "/a", "/a/", "//a", "/a/b/c", "/a/{key}"] {
        assert!(refused(&LoadRequest::post(path)), "{path}");
    }
    assert!(refused(&LoadRequest::get(PATH)));
    assert!(refused(&LoadRequest::post(PATH).body(vec![0; FRAME_MAX])));
    assert!(refused(&LoadRequest::post(PATH).header("a", &"b".repeat(FRAME_MAX))));
    assert!(
        !refused(&LoadRequest::post(PATH).header("a", &"b".repeat(5_000))),
        "longer than the table, and sent in full"
    );
}

#[test]
fn lengths_count_keys_and_not_placeholders() {
    let inner = ProtobufMessage::new().text(1, "user_id").text(2, "{key}");
    let message = ProtobufMessage::new().message(2, &inner).number(3, 300);
    assert_eq!(message.as_ref(), b"\x12\x1b\x0a\x07user_id\x12\x10{key}\x18\xac\x02");
}

#[test]
fn replies_match_their_requests_in_any_order() {
    let mut streams = streams(3);
    let replies = [reply(7, ALLOWED), reply(3, OVER_LIMIT)].concat();
    assert_eq!(take(&mut streams, &replies), Ok(vec![(102, ReplyVerdict::Allowed), (100, ReplyVerdict::Denied)]));
    assert_eq!((streams.in_flight(), streams.oldest(), streams.next()), (1, Some(101), 9));
    assert_eq!(take(&mut streams, &reply(5, EMPTY)), Ok(vec![(101, ReplyVerdict::Denied)]), "false is left out");
    assert_eq!((streams.in_flight(), streams.oldest(), streams.room(25)), (0, None, 25));
    streams.begin(std::iter::once(200));
    assert_eq!(take(&mut streams, &reply(9, ALLOWED)), Ok(vec![(200, ReplyVerdict::Allowed)]));
}

#[test]
fn a_message_may_arrive_in_pieces() {
    let mut streams = streams(1);
    let data = |bytes: &[u8], flags| one(FrameKind::DATA, flags, 3, bytes);
    let padded = data(&[2, ALLOWED[6], 0, 0], 0x8 | END_STREAM);
    let pieces = [data(&ALLOWED[..3], 0), data(b"", 0), data(&ALLOWED[3..6], 0), padded].concat();
    assert_eq!(take(&mut streams, &pieces), Ok(vec![(100, ReplyVerdict::Allowed)]));
}

#[test]
fn reads_the_list_of_statuses_of_gubernator() {
    for (message, verdict) in [
        (b"\0\0\0\0\x04\x0a\x02\x10\x05".as_slice(), ReplyVerdict::Allowed),
        (b"\0\0\0\0\x06\x0a\x04\x08\x01\x10\x05", ReplyVerdict::Denied),
        (b"\0\0\0\0\x02\x0a\x00", ReplyVerdict::Allowed),
    ] {
        assert_eq!(take(&mut streams(1), &reply(3, message)), Ok(vec![(100, verdict)]));
    }
}

#[test]
fn an_error_status_is_reported() {
    let failed = |bytes: &[u8]| take(&mut streams(1), bytes).map(|replies| replies[0].1);
    let trailers = |block: &[u8]| one(FrameKind::HEADERS, END_HEADERS | END_STREAM, 3, block);
    assert_eq!(failed(&trailers(STATUS_12)), Ok(ReplyVerdict::Failed(12)));
    assert_eq!(failed(&trailers(b"\x88\x40\x0bgrpc-status\x0214")), Ok(ReplyVerdict::Failed(14)));
    assert_eq!(
        failed(&trailers(b"\x88\xbe\xbf\xc0")),
        Ok(ReplyVerdict::Failed(2)),
        "by an index that is not looked up"
    );
    let twice = [trailers(STATUS_12), one(FrameKind::HEADERS, END_HEADERS | END_STREAM, 5, b"\xbe")].concat();
    let failed_twice = take(&mut streams(2), &twice);
    assert_eq!(
        failed_twice,
        Ok(vec![(100, ReplyVerdict::Failed(12)), (101, ReplyVerdict::Failed(12))]),
        "the same as the one before"
    );
    let after_message = [one(FrameKind::DATA, 0, 3, ALLOWED), trailers(STATUS_12)].concat();
    assert_eq!(failed(&after_message), Ok(ReplyVerdict::Failed(12)));
    assert_eq!(failed(&one(FrameKind::RST_STREAM, 0, 3, &7_u32.to_be_bytes())), Ok(ReplyVerdict::Failed(14)));
}

#[test]
fn settings_and_pings_are_acknowledged() {
    let mut streams = streams(0);
    assert_eq!(answered(&mut streams, &one(FrameKind::SETTINGS, 0, 0, &[])), one(FrameKind::SETTINGS, ACK, 0, &[]));
    assert_eq!(answered(&mut streams, &one(FrameKind::SETTINGS, ACK, 0, &[])), b"");
    assert_eq!(
        answered(&mut streams, &one(FrameKind::PING, 0, 0, b"12345678")),
        one(FrameKind::PING, ACK, 0, b"12345678")
    );
    assert_eq!(answered(&mut streams, &one(FrameKind(200), 0, 0, b"unknown")), b"");
}

#[test]
fn streams_and_windows_of_the_server_limit_requests() {
    let mut streams = streams(0);
    let most = [MAX_STREAMS.to_be_bytes().as_slice(), &2_u32.to_be_bytes()].concat();
    take(&mut streams, &one(FrameKind::SETTINGS, 0, 0, &most)).unwrap();
    assert_eq!(streams.room(25), 2);
    let mut streams = Streams::new(30_000);
    streams.open(0);
    assert_eq!(streams.room(25), 1, "65,535 bytes of window take two messages of this size");
    take(&mut streams, &one(FrameKind::WINDOW_UPDATE, 0, 0, &60_000_u32.to_be_bytes())).unwrap();
    assert_eq!(streams.room(25), 3);
    assert!(take(&mut streams, &one(FrameKind::WINDOW_UPDATE, 0, 0, &WINDOW_MAX.to_be_bytes())).is_err());
    let small = [wire::INITIAL_WINDOW.to_be_bytes().as_slice(), &10_u32.to_be_bytes()].concat();
    assert!(take(&mut streams, &one(FrameKind::SETTINGS, 0, 0, &small)).is_err());
}

#[test]
fn after_goaway_requests_in_flight_are_answered() {
    let goodbye = |code: u32| one(FrameKind::GOAWAY, 0, 0, &[5_u32.to_be_bytes(), code.to_be_bytes()].concat());
    let mut leaving = streams(2);
    assert_eq!(take(&mut leaving, &goodbye(0)), Ok(vec![]));
    assert_eq!(leaving.room(25), 0);
    assert_eq!(take(&mut leaving, &reply(3, ALLOWED)), Ok(vec![(100, ReplyVerdict::Allowed)]));
    assert_eq!(take(&mut leaving, &reply(5, ALLOWED)), Err(ConnectionEnded::Closed));
    assert_eq!(leaving.in_flight(), 0);
    assert!(matches!(take(&mut streams(2), &goodbye(11)), Err(ConnectionEnded::Malformed(_))));
}

#[test]
fn a_new_connection_starts_over() {
    let mut streams = streams(3);
    streams.clear();
    assert_eq!((streams.in_flight(), streams.next(), streams.oldest()), (0, 1, None));
}

#[test]
fn an_incomplete_reply_is_not_read() {
    let bytes = reply(3, ALLOWED);
    let last = bytes.len() - STATUS_0.len() - HEAD;
    for end in 0..bytes.len() {
        let mut streams = streams(1);
        let used = streams.take(&bytes[..end], &mut Vec::new(), |_, _, _| panic!("{end}")).unwrap();
        assert!(used <= last);
    }
}

#[test]
fn hostile_frames_are_rejected() {
    let cases = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        reply(5, ALLOWED),
        reply(2, ALLOWED),
        reply(1, ALLOWED),
        one(FrameKind::DATA, 0, 0, ALLOWED),
        one(FrameKind::DATA, 0x8, 3, &[9, 1]),
        one(FrameKind::SETTINGS, 0, 0, &[1, 2, 3]),
        one(FrameKind::GOAWAY, 0, 0, &[1]),
        one(FrameKind::RST_STREAM, 0, 3, &[1]),
        one(FrameKind::WINDOW_UPDATE, 0, 0, &[1]),
        one(FrameKind::PUSH_PROMISE, 0, 3, &[]),
    ];
    for case in cases {
        assert!(matches!(take(&mut streams(1), &case), Err(ConnectionEnded::Malformed(_))), "{case:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..10_u8, flags: u8) {
        let mut streams = streams(2);
        let _ = streams.take(&bytes, &mut Vec::new(), |_, _, _| ());
        let framed = one(FrameKind(kind), flags, 3, &bytes);
        let _ = streams.take(&framed, &mut Vec::new(), |_, _, _| ());
        prop_assert!(streams.in_flight() <= 2);
    }
}
