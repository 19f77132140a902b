//! F55, F56, G01–G08, G16: HTTP/2 as an attack on the gRPC port. The connection ends or stays small, others are served.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};
use tollgate_lab::patience::{Watch, until_async};
use tollgate_proto::v1::{BatchCheckRequest, StreamChecksRequest};
use tonic::Code;

use crate::caller::Caller;
use crate::flood::{self, BAD_REQUEST, ENHANCE_YOUR_CALM, End, OK, outcome, resident_kib};
use crate::frames::{DATA, END_HEADERS, END_STREAM, Frames, HEADERS, PING, RST_STREAM, begin, block, frame, stream};
use crate::raw::{BATCH, CHECK, Raw, framed, prefixed};
use crate::rig::{FULL, PATIENCE, RULES, Rig, about, with};

const STREAM: &str = "/tollgate.v1.Tollgate/StreamChecks";
const MEBIBYTE_KIB: u64 = 1 << 10;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn rig() -> Rig {
    Rig::with(RULES, |config, _| {
        config.net.idle_timeout = ms(500);
        config.net.body_timeout = ms(500);
        config.net.write_timeout = ms(500);
    })
}

/// A header block of a call.
fn head(path: &str) -> Vec<u8> {
    let mut head = block(3, path.as_bytes());
    head.extend(b"\x00\x0ccontent-type\x10application/grpc");
    head
}

/// A whole call.
fn call(count: u32, path: &str, body: &[u8]) -> Vec<u8> {
    let opened = frame(HEADERS, END_HEADERS, stream(count), &head(path));
    [opened, frame(DATA, END_STREAM, stream(count), body)].concat()
}

/// Floods a connection; the others are served all the same.
async fn flood(rig: &Rig, first: Vec<u8>, pieces: impl Iterator<Item = Vec<u8>> + Send + 'static) -> End {
    let end = flood::flood(rig.tcp(), first, pieces).await;
    rig.answers_others().await;
    end
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g01_rapid_resets_are_told_to_calm_down() {
    let rig = rig();
    let before = resident_kib();
    let body = framed(&about("victim"));
    for whole in [false, true] {
        let body = body.clone();
        let pair = move |count| {
            let opened = if whole {
                call(count, CHECK, &body)
            } else {
                frame(HEADERS, END_HEADERS, stream(count), &head(CHECK))
            };
            [opened, frame(RST_STREAM, 0, stream(count), &8u32.to_be_bytes())].concat()
        };
        let many = (0..100).map(move |hundred| (0..100).flat_map(|one| pair(hundred * 100 + one)).collect());
        let end = flood(&rig, Vec::new(), many).await;
        assert!(matches!(end, End::Away(ENHANCE_YOUR_CALM) | End::Closed), "{end:?}");
    }
    assert_eq!(rig.left_to("victim").await, FULL, "what was given up before it was looked at charged nothing");
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 * MEBIBYTE_KIB, "{grown} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g02_a_head_that_goes_on_and_on_ends_the_connection() {
    let rig = rig();
    let before = resident_kib();
    let end = flood(&rig, frame(HEADERS, 0, 1, &head(CHECK)), flood::continuations()).await;
    assert!(matches!(end, End::Away(_) | End::Closed), "{end:?}");
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 * MEBIBYTE_KIB, "{grown} KiB for 64 MiB of continuations");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g03_a_small_block_that_unfolds_is_refused() {
    let rig = rig();
    let mut caller = Caller::connect(rig.tcp()).await;
    let opened = frame(HEADERS, END_HEADERS, 1, &flood::bomb(head(CHECK)));
    let body = frame(DATA, END_STREAM, 1, &framed(&about("victim")));
    caller.send([begin(&[]), opened, body].concat()).await.unwrap();
    assert_ne!(outcome(&mut caller).await, OK);
    rig.answers_others().await;
    assert_eq!(rig.left_to("victim").await, FULL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g04_floods_of_small_frames_end_their_connection() {
    let rig = Rig::start(RULES);
    let before = resident_kib();
    for small in flood::small_frames() {
        let piece = small.repeat(1000);
        let pieces = (0..1000).map(move |_| piece.clone());
        let end = flood(&rig, frame(HEADERS, END_HEADERS, 1, &head(CHECK)), pieces).await;
        assert!(matches!(end, End::Away(_) | End::Closed), "{end:?} after {}", small.escape_ascii());
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 * MEBIBYTE_KIB, "{grown} KiB");
}

/// A client that makes the server answer, and reads nothing: neither pings nor calls are read for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_read_is_not_read_either_and_cut() {
    let rig = rig();
    let before = resident_kib();
    let body = framed(&about("payer"));
    let pings = frame(PING, 0, 0, b"12345678").repeat(4000);
    for asks in [false, true] {
        let mut caller = Caller::connect(rig.tcp()).await;
        caller.send(begin(&[0, 4, 0x7f, 0xff, 0xff, 0xff])).await.unwrap();
        let mut sent = 0;
        let mut count = 0;
        loop {
            let piece = if asks {
                (count..count + 1000).flat_map(|count| call(count, CHECK, &body)).collect()
            } else {
                pings.clone()
            };
            count += 1000;
            match timeout(ms(400), caller.stream.write_all(&piece)).await {
                Ok(Ok(())) => sent += piece.len(),
                _ => break,
            }
            assert!(sent < 64 << 20, "the server reads on, though nobody takes its answers");
        }
        rig.answers_others().await;
        let cut = async { while caller.stream.write_all(&pings).await.is_ok() {} };
        timeout(PATIENCE, cut).await.expect("the connection is cut when its time to write is over");
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 32 * MEBIBYTE_KIB, "{grown} KiB");
}

/// G06: at most a hundred streams, and a window of nothing keeps neither them nor the connection for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g06_answers_that_may_not_be_sent_are_given_up() {
    let rig = rig();
    for path in [CHECK, "/grpc.health.v1.Health/Check"] {
        let body = if path == CHECK { framed(&about("payer")) } else { prefixed(b"") };
        let mut caller = Caller::connect(rig.tcp()).await;
        let no_window = begin(&[0, 4, 0, 0, 0, 0]); // SETTINGS_INITIAL_WINDOW_SIZE = 0
        let calls: Vec<u8> = (0..1000).flat_map(|count| call(count, path, &body)).collect();
        let watch = Watch::start();
        let _ = caller.send([no_window, calls].concat()).await;
        let mut frames = Frames::default();
        let mut answered = 0;
        while let Some(frame) = frames.next(&mut caller).await {
            assert_ne!(frame.kind, DATA, "there is no window for it");
            answered += u32::from(frame.kind == HEADERS);
        }
        assert!(answered <= 100, "{answered} streams at once");
        assert!(watch.elapsed() < Duration::from_secs(15), "{:?}", watch.elapsed());
        rig.answers_others().await;
    }
}

/// G06: messages that do not come are told so after their time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_has_its_time_for_a_message() {
    let rig = rig();
    for path in [CHECK, "/tollgate.v1.Tollgate/Reserve", STREAM] {
        let raw = Raw::connect(&rig).await;
        let (response, mut sending) = raw.begin(path, &[]).await;
        sending.send_data(vec![0, 0].into(), false).unwrap();
        let answer = crate::raw::answer(response).await;
        assert_eq!(answer.code, Some(Code::DeadlineExceeded), "{path}: {answer:?}");
    }
    rig.answers_others().await;
}

/// Single bytes do not extend the time limit of a message; whole messages do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_not_given_more_time_for_every_byte() {
    let rig = Rig::with(RULES, |config, _| config.net.body_timeout = ms(1500));
    let raw = Raw::connect(&rig).await;
    for path in [BATCH, "/tollgate.v1.Tollgate/Reserve", STREAM] {
        let (response, mut sending) = raw.begin(path, &[]).await;
        sending.send_data(vec![0, 0, 0, 1, 0].into(), false).unwrap();
        let answer = tokio::spawn(crate::raw::answer(response));
        let is_over = async || {
            let _ = sending.send_data(vec![0x7a].into(), false); // fails once it is over
            answer.is_finished()
        };
        until_async(&format!("the end of {path}"), PATIENCE, is_over).await;
        assert_eq!(answer.await.unwrap().code, Some(Code::DeadlineExceeded), "{path}");
    }
    let (response, mut sending) = raw.begin(STREAM, &[]).await;
    for _ in 0..10 {
        sending.send_data(framed(&StreamChecksRequest::default()).into(), false).unwrap();
        sleep(ms(300)).await;
    }
    sending.send_data(Bytes::new(), true).unwrap();
    let answer = crate::raw::answer(response).await;
    assert_eq!(answer.code, Some(Code::Ok), "{answer:?}");
}

/// What is announced takes no room, what is there does, also in many small messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_do_not_end_take_no_more_than_their_budget() {
    let rig = Rig::with(RULES, |config, _| config.net.max_in_transit = 512 << 10);
    let greedy = Raw::connect(&rig).await;
    let mut announced = Vec::new();
    for _ in 0..90 {
        let (response, mut sending) = greedy.begin(BATCH, &[]).await;
        sending.send_data(vec![0, 0, 0x10, 0, 0, 0].into(), false).unwrap(); // a mebibyte
        announced.push((response, sending));
    }
    let batch = framed(&BatchCheckRequest { requests: vec![with(&[("note", &"x".repeat(200))]); 500] });
    assert!(batch.len() > 100 << 10);
    assert_eq!(Raw::connect(&rig).await.call(BATCH, &[], batch.clone()).await.code, Some(Code::Ok));
    drop((announced, greedy));

    let almost = [&[0, 0, 0, 0x10, 0][..], &[0; 4085]].concat();
    let (mut crowds, mut held, mut refused) = (Vec::new(), Vec::new(), 0);
    for _ in 0..4 {
        let crowd = Raw::connect(&rig).await;
        for _ in 0..100 {
            let (mut response, mut sending) = crowd.begin(CHECK, &[]).await;
            let _ = sending.send_data(almost.clone().into(), false); // fails if it was refused already
            match timeout(ms(20), &mut response).await {
                Ok(_) => refused += 1,
                Err(_) => held.push((response, sending)),
            }
        }
        crowds.push(crowd);
    }
    assert!(held.len() < 200 && refused > 200, "{} are held, {refused} were refused", held.len());
    rig.answers_others().await;
    drop(held);
    let again =
        async { while Raw::connect(&rig).await.call(BATCH, &[], batch.clone()).await.code != Some(Code::Ok) {} };
    timeout(PATIENCE, again).await.expect("room comes back");
}

/// G08, and other heads that HTTP/1 could not even carry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g08_heads_that_smuggle_are_refused() {
    let rig = rig();
    let body = framed(&about("victim"));
    let own = [head("/tollgate.v1.Tollgate/Check\r\nA: b"), head("/tollgate.v1.Tollgate/\0Check")];
    for head in own.into_iter().chain(flood::odd_heads(&head(CHECK))) {
        let mut caller = Caller::connect(rig.tcp()).await;
        let opened = frame(HEADERS, END_HEADERS, 1, &head);
        caller.send([begin(&[]), opened, frame(DATA, END_STREAM, 1, &body)].concat()).await.unwrap();
        assert_ne!(outcome(&mut caller).await, OK, "200 for {}", head.escape_ascii());
        assert_eq!(rig.left_to("victim").await, FULL, "{} was charged", head.escape_ascii());
    }
    rig.answers_others().await;
}

/// G09: who names two hosts names none; gRPC allows to name none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g09_heads_that_name_two_hosts_are_refused() {
    let rig = rig();
    let body = framed(&about("victim"));
    let good = head(CHECK);
    let zeros = [&good[..], b"\x00\x0econtent-length\x03", format!("{:03}", body.len()).as_bytes()].concat();
    for head in flood::ambiguous_heads(&good).into_iter().chain([head("*"), zeros]) {
        let mut caller = Caller::connect(rig.tcp()).await;
        let opened = frame(HEADERS, END_HEADERS, 1, &head);
        caller.send([begin(&[]), opened, frame(DATA, END_STREAM, 1, &body)].concat()).await.unwrap();
        assert_eq!(outcome(&mut caller).await, BAD_REQUEST, "{}", head.escape_ascii());
        assert_eq!(rig.left_to("victim").await, FULL, "{} was charged", head.escape_ascii());
    }
    let at = good.windows(3).position(|three| three == b"\x01\x01x").unwrap();
    for head in [[&good[..], b"\x00\x04host\x01X"].concat(), [&good[..at], &good[at + 3..]].concat()] {
        let mut caller = Caller::connect(rig.tcp()).await;
        let opened = frame(HEADERS, END_HEADERS, 1, &head);
        caller.send([begin(&[]), opened, frame(DATA, END_STREAM, 1, &body)].concat()).await.unwrap();
        assert_eq!(outcome(&mut caller).await, OK, "{}", head.escape_ascii());
    }
    assert_eq!(rig.left_to("victim").await, FULL - 2);
}

/// G16: methods that there are not, by the thousand; the metrics know one name for all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_unknown_methods_make_no_series() {
    let rig = rig();
    let raw = Raw::connect(&rig).await;
    for number in 0..500 {
        let answer = raw.call(&format!("/a.B/C{number}"), &[], prefixed(b"")).await;
        assert_eq!(answer.code, Some(Code::Unimplemented));
    }
    let figures = rig.metrics().await;
    let series: Vec<&str> = figures.lines().filter(|line| line.starts_with("tollgate_grpc_requests_total")).collect();
    assert_eq!(series.len(), 1, "{series:?}");
    assert!(series[0].contains("UNIMPLEMENTED") && series[0].ends_with(" 500"), "{series:?}");
    rig.answers_others().await;
}

/// F56: bytes that are not HTTP/2, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f56_storms_of_noise_end_their_own_connections() {
    let rig = rig();
    let before = resident_kib();
    let mut dice = 0x9e37_79b9_7f4a_7c15u64;
    let mut roll = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice
    };
    for round in 0..300 {
        let mut caller = Caller::connect(rig.tcp()).await;
        let mut noise = if round % 2 == 0 { begin(&[]) } else { Vec::new() };
        for _ in 0..20 {
            let payload: Vec<u8> = (0..roll() % 40).map(|_| roll() as u8).collect();
            noise.extend(frame(roll() as u8 % 12, roll() as u8, (roll() % 8) as u32, &payload));
        }
        let _ = caller.send(noise).await;
    }
    rig.answers_others().await;
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 64 * MEBIBYTE_KIB, "{grown} KiB");
}
