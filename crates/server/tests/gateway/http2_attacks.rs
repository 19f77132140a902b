//! Rows G01–G08 of the HTTP/2 corpus at the gateway: what a server behind could take for another request does not reach
//! it, and floods leave nothing behind.

use crate::caller;
use crate::flood::{self, BAD_REQUEST, ENHANCE_YOUR_CALM, End, OK, flood, outcome};
use crate::forwarding::in_flight;
use crate::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, begin, block, frame, get, stream};
use crate::rig::{Rig, until};
use crate::servers::HyperApi;

const SLOTS: &str =
    "rules: [{ name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 200, slot_ttl: 1h } }]\n";

/// What becomes of the first stream with this head, and with this body if there is one.
async fn ask(rig: &Rig, head: &[u8], body: Option<&[u8]>) -> Option<u8> {
    let mut caller = caller::Caller::connect(rig.gateway).await;
    let flags = if body.is_some() { END_HEADERS } else { END_HEADERS | END_STREAM };
    let data = body.map(|body| frame(DATA, END_STREAM, 1, body)).unwrap_or_default();
    caller.send([begin(&[]), frame(HEADERS, flags, 1, head), data].concat()).await.unwrap();
    outcome(&mut caller).await
}

/// Everything is given back, and others are served.
async fn all_is_returned(rig: &Rig) {
    until(async || rig.get("/x").await.field("Ratelimit").is_some_and(|left| left.contains("r=199"))).await;
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g01_rapid_resets_leave_no_slot_taken() {
    let api = HyperApi::start().await;
    let rig = Rig::start(SLOTS, &api.url());
    let pair = |count| [get(count, "/x"), frame(RST_STREAM, 0, stream(count), &8u32.to_be_bytes())].concat();
    let many = (0..50).map(move |hundred| (0..100).flat_map(|one| pair(hundred * 100 + one)).collect());
    let end = flood(rig.gateway, Vec::new(), many).await;
    assert!(matches!(end, End::Away(ENHANCE_YOUR_CALM) | End::Closed), "{end:?}");
    all_is_returned(&rig).await;
    assert!(api.seen(0).await.len() < 1_000, "most of it never reached the server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g02_g03_g04_floods_are_not_passed_on() {
    let api = HyperApi::start().await;
    let rig = Rig::start(SLOTS, &api.url());
    let end = flood(rig.gateway, frame(HEADERS, END_STREAM, 1, &block(2, b"/x")), flood::continuations()).await;
    assert!(matches!(end, End::Away(_) | End::Closed), "{end:?}");
    assert_ne!(ask(&rig, &flood::bomb(block(2, b"/x")), None).await, OK);
    for small in flood::small_frames() {
        let piece = small.repeat(500);
        let first = frame(HEADERS, END_HEADERS, 1, &block(3, b"/x"));
        let _bounded = flood(rig.gateway, first, (0..20).map(move |_| piece.clone())).await;
    }
    all_is_returned(&rig).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g08_heads_that_http_1_would_read_otherwise_reach_no_server() {
    let api = HyperApi::start().await;
    let rig = Rig::start(SLOTS, &api.url());
    let head = block(2, b"/x");
    assert_eq!(ask(&rig, &head, None).await, OK);
    assert_eq!(api.seen(1).await.len(), 1);
    let targets: [&[u8]; 8] = [
        b"/x HTTP/1.1\r\nHost: evil\r\n\r\nGET /admin",
        b"/x\r\nX-Evil: 1",
        b"/x y",
        b"/x\ty",
        b"/x\0",
        b"x",
        b"",
        b"http://other/x",
    ];
    let targets = targets.iter().map(|target| block(2, target));
    for bad in flood::odd_heads(&head).into_iter().chain(flood::ambiguous_heads(&head)).chain(targets) {
        let outcome = ask(&rig, &bad, None).await;
        assert!(matches!(outcome, None | BAD_REQUEST), "{outcome:?} for {}", bad.escape_ascii());
    }
    all_is_returned(&rig).await;
    let seen = api.seen(1).await;
    assert!(seen.iter().all(|seen| seen.starts_with("GET /x HTTP/1.1\r\nhost: api.example.com")), "{seen:?}");
}

/// A body that is longer or shorter than its length says would end inside or behind the next request of the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g08_a_body_of_another_length_completes_no_request() {
    let api = HyperApi::start().await;
    let rig = Rig::start(SLOTS, &api.url());
    let with_length = |length: &[u8]| {
        let head = block(3, b"/x");
        [&head[..], b"\x00\x0econtent-length", &[length.len() as u8], length].concat()
    };
    assert_eq!(ask(&rig, &with_length(b"5"), Some(b"hello")).await, OK);
    assert!(api.seen(1).await[0].ends_with("\r\n\r\nhello"));
    let longer = b"helloGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (length, body) in
        [(&b"5"[..], &longer[..]), (b"0", longer), (b"100", b"hello"), (b"+5", b"hello"), (b"5, 5", b"hello")]
    {
        let outcome = ask(&rig, &with_length(length), Some(body)).await;
        assert_ne!(outcome, OK, "{}", length.escape_ascii());
    }
    all_is_returned(&rig).await;
    let seen = api.seen(1).await;
    assert!(seen.iter().all(|seen| seen.starts_with("GET /x HTTP/1.1\r\n")), "{seen:?}");
}
