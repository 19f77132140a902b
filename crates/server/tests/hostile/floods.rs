//! F55, G01–G08: HTTP/2 as an attack. The connection ends or stays small, and the others are served.

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout};
use tollgate_server::net::NetLimits;

use crate::caller::Caller;
use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE,
    begin, block, frame, get, stream,
};
use crate::house::{FULL, House, ms};
use crate::storm::resident_kib;

const ENHANCE_YOUR_CALM: u32 = 11;

fn house() -> House {
    let (idle_timeout, body_timeout, write_timeout) = (ms(500), ms(500), ms(500));
    House::open(NetLimits { idle_timeout, body_timeout, write_timeout, ..NetLimits::default() })
}

/// How a flooded connection ended.
#[derive(Debug, PartialEq)]
enum End {
    /// It was told to go away, with this code.
    Away(u32),
    /// It was just closed.
    Closed,
    /// Everything was taken in, and it is still open.
    Open,
}

/// Sends all the pieces, reading what comes back, and looks how it ends.
async fn flood(house: &House, pieces: impl Iterator<Item = Vec<u8>> + Send + 'static) -> End {
    let (reading, mut writing) = Caller::connect(house.data).await.stream.into_split();
    let write = tokio::spawn(async move {
        for piece in pieces {
            if writing.write_all(&piece).await.is_err() {
                return None;
            }
        }
        Some(writing)
    });
    let mut caller = Caller::over(tokio::io::join(reading, tokio::io::sink()));
    let mut frames = Frames::default();
    let end = loop {
        match timeout(ms(300), frames.next(&mut caller)).await {
            Ok(Some(frame)) => {
                if let Some(code) = frame.goaway().filter(|code| *code != 0) {
                    break End::Away(code);
                }
            }
            Ok(None) => break End::Closed,
            Err(_) if write.is_finished() => break End::Open,
            Err(_) => {}
        }
    };
    house.answers_others().await;
    write.abort();
    end
}

fn starting_with(
    first: Vec<u8>,
    rest: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> impl Iterator<Item = Vec<u8>> + Send {
    std::iter::once(first).chain(rest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g01_rapid_resets_are_told_to_calm_down() {
    let house = house();
    let pair = |count| [get(count, "/live"), frame(RST_STREAM, 0, stream(count), &8u32.to_be_bytes())].concat();
    let many = (0..100).map(move |hundred| (0..100).flat_map(|one| pair(hundred * 100 + one)).collect());
    let end = flood(&house, starting_with(begin(&[]), many)).await;
    assert!(matches!(end, End::Away(ENHANCE_YOUR_CALM) | End::Closed), "{end:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g02_a_head_that_goes_on_and_on_ends_the_connection() {
    let house = house();
    let before = resident_kib();
    let first = [begin(&[]), frame(HEADERS, END_STREAM, 1, &block(2, b"/live"))].concat();
    let more =
        (0..4096).map(|_| frame(CONTINUATION, 0, 1, &[b"\x00\x01a\x7f\x81\x7e".as_slice(), &[b'b'; 16_000]].concat()));
    let end = flood(&house, starting_with(first, more)).await;
    assert!(matches!(end, End::Away(_) | End::Closed), "{end:?}");
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB for 64 MiB of continuations");
}

/// G03: a field that is kept in the table once, and then named two thousand times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g03_a_small_block_that_unfolds_is_refused() {
    let house = house();
    let mut caller = Caller::connect(house.data).await;
    let mut bomb = block(3, b"/v1/check");
    bomb.extend(b"\x40\x01a\x7f\x81\x0f"); // literal, kept: `a`, then 127 + 1 + 15 × 128 bytes
    bomb.extend([b'b'; 2048]);
    bomb.extend([0xbe; 2000]); // the newest of the table, again and again
    caller.send([begin(&[]), frame(HEADERS, END_HEADERS | END_STREAM, 1, &bomb)].concat()).await.unwrap();
    let mut frames = Frames::default();
    let refused = loop {
        match frames.next(&mut caller).await {
            // Neither 200 nor the 400 that an empty body gets: it was not even read that far.
            Some(frame) if frame.kind == HEADERS => break !matches!(frame.payload.first(), Some(0x88 | 0x8c)),
            Some(frame) if frame.kind == RST_STREAM || frame.goaway().is_some() => break true,
            Some(_) => {}
            None => break true,
        }
    };
    assert!(refused);
    house.answers_others().await;
    assert_eq!(house.left_to_victim().await, FULL);
}

/// G04: none of them is worth memory; hyper may answer or end them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g04_floods_of_small_frames_stay_small() {
    let house = house();
    let before = resident_kib();
    let floods = [
        frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]),
        frame(PING, 0, 0, b"12345678"),
        frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7]),
        frame(DATA, 0, 1, b""),
        frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes()),
        frame(0xbe, 0, 0, b"what is this?"),
    ];
    for small in floods {
        let first = [begin(&[]), frame(HEADERS, END_HEADERS, 1, &block(3, b"/v1/check"))].concat();
        let piece = small.repeat(1000);
        let _bounded = flood(&house, starting_with(first, (0..100).map(move |_| piece.clone()))).await;
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB");
}

/// A client that acknowledges nothing and reads nothing, while it makes the server answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_without_reading_stop_being_read() {
    let house = house();
    let before = resident_kib();
    let mut caller = Caller::connect(house.data).await;
    caller.send(begin(&[])).await.unwrap();
    let pings = frame(PING, 0, 0, b"12345678").repeat(4000);
    let mut sent = 0;
    while let Ok(Ok(())) = timeout(ms(500), caller.send(&pings)).await {
        sent += pings.len();
        assert!(sent < 64 << 20, "the server reads on, though nobody takes its answers");
    }
    house.answers_others().await;
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB");
}

/// G06: at most a hundred streams, and a window of nothing does not keep a connection for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g06_answers_that_may_not_be_sent_are_given_up() {
    let house = house();
    let mut caller = Caller::connect(house.data).await;
    let no_window = begin(&[0, 4, 0, 0, 0, 0]); // SETTINGS_INITIAL_WINDOW_SIZE = 0
    let gets: Vec<u8> = (0..1000).flat_map(|count| get(count, "/live")).collect();
    let since = Instant::now();
    let _ = caller.send([no_window, gets].concat()).await;
    let mut frames = Frames::default();
    while frames.next(&mut caller).await.is_some() {}
    assert!(since.elapsed() >= ms(500), "{:?}", since.elapsed());
    house.answers_others().await;
}

/// G06: bodies that do not come are told so after their time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_has_its_time_for_a_body() {
    let house = house();
    let mut caller = Caller::connect(house.data).await;
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
    assert_eq!(house.left_to_victim().await, FULL, "what did not end was not asked");
    while frames.next(&mut caller).await.is_some() {} // and the idle connection ends
}

/// G08, and other heads that HTTP/1 could not even carry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g08_heads_that_smuggle_are_refused() {
    let house = house();
    let body = b"{\"client_key\":\"victim\"}";
    let with = |field: &[u8]| [block(3, b"/v1/check").as_slice(), field].concat();
    let heads = [
        block(3, b"/v1/check HTTP/1.1\r\nHost: y\r\n\r\nGET /x"),
        block(3, b"/v1/check\r\nA: b"),
        block(3, b"/v1/\0check"),
        with(b"\x00\x01A\x01b"),                       // upper case
        with(b"\x00\x0aconnection\x0akeep-alive"),     // of HTTP/1
        with(b"\x00\x11transfer-encoding\x07chunked"), // of HTTP/1
        with(b"\x00\x01a\x04b\r\nc"),
        with(b"\x00\x0econtent-length\x0299"),
        with(b"\x00\x05:path\x05/live"),
        vec![0x83, 0x86], // no path
    ];
    for head in heads {
        let mut caller = Caller::connect(house.data).await;
        let opened = frame(HEADERS, END_HEADERS, 1, &head);
        caller.send([begin(&[]), opened, frame(DATA, END_STREAM, 1, body)].concat()).await.unwrap();
        let mut frames = Frames::default();
        loop {
            match frames.next(&mut caller).await {
                Some(frame) if frame.kind == HEADERS => {
                    assert_ne!(frame.payload.first(), Some(&0x88), "200 for {}", head.escape_ascii());
                    break;
                }
                Some(frame) if frame.kind == RST_STREAM || frame.goaway().is_some() => break,
                Some(_) => {}
                None => break,
            }
        }
        house.answers_others().await;
        assert_eq!(house.left_to_victim().await, FULL, "{} was charged", head.escape_ascii());
    }
}
