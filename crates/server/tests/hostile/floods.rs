//! F55, G01–G08: HTTP/2 as an attack. The connection ends or stays small, and the others are served.

use tokio::time::{Instant, timeout};
use tollgate_net::NetLimits;

use crate::caller::Caller;
use crate::flood::{self, BAD_REQUEST, ENHANCE_YOUR_CALM, End, OK, outcome, resident_kib};
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, Frames, HEADERS, PING, RST_STREAM, begin, block, frame, get, stream,
};
use crate::rig::{FULL, Rig, ms};

fn rig() -> Rig {
    let (idle_timeout, body_timeout, write_timeout) = (ms(500), ms(500), ms(500));
    Rig::open(NetLimits { idle_timeout, body_timeout, write_timeout, ..NetLimits::default() })
}

/// Floods a connection; the others are served all the same.
async fn flood(rig: &Rig, first: Vec<u8>, pieces: impl Iterator<Item = Vec<u8>> + Send + 'static) -> End {
    let end = flood::flood(rig.data, first, pieces).await;
    rig.answers_others().await;
    end
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g01_rapid_resets_are_told_to_calm_down() {
    let rig = rig();
    let pair = |count| [get(count, "/live"), frame(RST_STREAM, 0, stream(count), &8u32.to_be_bytes())].concat();
    let many = (0..100).map(move |hundred| (0..100).flat_map(|one| pair(hundred * 100 + one)).collect());
    let end = flood(&rig, Vec::new(), many).await;
    assert!(matches!(end, End::Away(ENHANCE_YOUR_CALM) | End::Closed), "{end:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g02_a_head_that_goes_on_and_on_ends_the_connection() {
    let rig = rig();
    let before = resident_kib();
    let first = frame(HEADERS, END_STREAM, 1, &block(2, b"/live"));
    let end = flood(&rig, first, flood::continuations()).await;
    assert!(matches!(end, End::Away(_) | End::Closed), "{end:?}");
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB for 64 MiB of continuations");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g03_a_small_block_that_unfolds_is_refused() {
    let rig = rig();
    let mut caller = Caller::connect(rig.data).await;
    let bomb = flood::bomb(block(3, b"/v1/check"));
    caller.send([begin(&[]), frame(HEADERS, END_HEADERS | END_STREAM, 1, &bomb)].concat()).await.unwrap();
    let told = outcome(&mut caller).await;
    assert!(
        !matches!(told, OK | Some(0x8c)),
        "neither 200 nor the 400 that an empty body gets: it is not read that far"
    );
    rig.answers_others().await;
    assert_eq!(rig.left_to_victim().await, FULL);
}

/// G04: none of them is worth memory; hyper may answer or end them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g04_floods_of_small_frames_stay_small() {
    let rig = rig();
    let before = resident_kib();
    for small in flood::small_frames() {
        let first = frame(HEADERS, END_HEADERS, 1, &block(3, b"/v1/check"));
        let piece = small.repeat(1000);
        let _bounded = flood(&rig, first, (0..100).map(move |_| piece.clone())).await;
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB");
}

/// A client that acknowledges nothing and reads nothing, while it makes the server answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_without_reading_stop_being_read() {
    let rig = rig();
    let before = resident_kib();
    let mut caller = Caller::connect(rig.data).await;
    caller.send(begin(&[])).await.unwrap();
    let pings = frame(PING, 0, 0, b"12345678").repeat(4000);
    let mut sent = 0;
    while let Ok(Ok(())) = timeout(ms(500), caller.send(&pings)).await {
        sent += pings.len();
        assert!(sent < 64 << 20, "the server reads on, though nobody takes its answers");
    }
    rig.answers_others().await;
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB");
}

/// G06: at most a hundred streams, and a window of nothing does not keep a connection for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g06_answers_that_may_not_be_sent_are_given_up() {
    let rig = rig();
    let mut caller = Caller::connect(rig.data).await;
    let no_window = begin(&[0, 4, 0, 0, 0, 0]); // SETTINGS_INITIAL_WINDOW_SIZE = 0
    let gets: Vec<u8> = (0..1000).flat_map(|count| get(count, "/live")).collect();
    let since = Instant::now();
    let _ = caller.send([no_window, gets].concat()).await;
    let mut frames = Frames::default();
    while frames.next(&mut caller).await.is_some() {}
    assert!(since.elapsed() >= ms(500), "{:?}", since.elapsed());
    rig.answers_others().await;
}

/// G06: bodies that do not come are told so after their time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_has_its_time_for_a_body() {
    let rig = rig();
    let mut caller = Caller::connect(rig.data).await;
    let since = Instant::now();
    let opened = frame(HEADERS, END_HEADERS, 1, &block(3, b"/v1/check"));
    caller.send([begin(&[]), opened, frame(DATA, 0, 1, b"{\"client_key\":\"victim\"}")].concat()).await.unwrap();
    let mut frames = Frames::default();
    let answered = loop {
        let frame = frames.next(&mut caller).await.expect("an answer");
        if frame.kind == HEADERS {
            break frame;
        }
    };
    assert!(since.elapsed() >= ms(500), "{:?}", since.elapsed());
    assert_eq!(answered.stream, 1);
    assert_eq!(rig.left_to_victim().await, FULL, "what did not end was not asked");
    while frames.next(&mut caller).await.is_some() {} // and the idle connection ends
}

/// G08, and other heads that HTTP/1 could not even carry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g08_heads_that_smuggle_are_refused() {
    let rig = rig();
    let body = b"{\"client_key\":\"victim\"}";
    let own = [
        block(3, b"/v1/check HTTP/1.1\r\nHost: y\r\n\r\nGET /x"),
        block(3, b"/v1/check\r\nA: b"),
        block(3, b"/v1/\0check"),
    ];
    for head in own.into_iter().chain(flood::odd_heads(&block(3, b"/v1/check"))) {
        let mut caller = Caller::connect(rig.data).await;
        let opened = frame(HEADERS, END_HEADERS, 1, &head);
        caller.send([begin(&[]), opened, frame(DATA, END_STREAM, 1, body)].concat()).await.unwrap();
        assert_ne!(outcome(&mut caller).await, OK, "200 for {}", head.escape_ascii());
        rig.answers_others().await;
        assert_eq!(rig.left_to_victim().await, FULL, "{} was charged", head.escape_ascii());
    }
}

/// G09, H16: who names two hosts names none. What names one twice is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g09_heads_that_name_two_hosts_are_refused() {
    let rig = rig();
    let body = b"{\"client_key\":\"victim\"}";
    let head = block(3, b"/v1/check");
    let zeros = [&head[..], b"\x00\x0econtent-length\x040023"].concat();
    let no_host = [&head[..2], &head[5..]].concat();
    let own = [block(3, b"*"), zeros, no_host];
    for head in flood::ambiguous_heads(&head).into_iter().chain(own) {
        let mut caller = Caller::connect(rig.data).await;
        let opened = frame(HEADERS, END_HEADERS, 1, &head);
        caller.send([begin(&[]), opened, frame(DATA, END_STREAM, 1, body)].concat()).await.unwrap();
        assert_eq!(outcome(&mut caller).await, BAD_REQUEST, "{}", head.escape_ascii());
        assert_eq!(rig.left_to_victim().await, FULL, "{} was charged", head.escape_ascii());
    }
    let head = [&head[..], b"\x00\x04host\x04X:80"].concat();
    let mut caller = Caller::connect(rig.data).await;
    let opened = frame(HEADERS, END_HEADERS, 1, &head);
    caller.send([begin(&[]), opened, frame(DATA, END_STREAM, 1, body)].concat()).await.unwrap();
    assert_eq!(outcome(&mut caller).await, OK);
    rig.answers_others().await;
}
