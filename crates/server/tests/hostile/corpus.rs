//! The rows of RELIABILITY 3.1 and 3.5, replayed: `fixtures/http/ID.bin` is sent, `ID.expect` says which statuses come
//! back and whether the connection is open afterwards. However the bytes are cut, the answers are the same, nothing is
//! charged, and the next caller is served.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tollgate_net::NetLimits;

use crate::caller::{Caller, PATIENCE};
use crate::rig::{FULL, GOOD, Rig, ms, post};

pub struct Case {
    name: String,
    bytes: Vec<u8>,
    statuses: Vec<u16>,
    stays_open: bool,
}

impl Case {
    /// Cases that wait for a deadline are not repeated more often than needed.
    fn is_slow(&self) -> bool {
        self.statuses.is_empty() || self.statuses.contains(&408)
    }
}

/// How the bytes of a case arrive.
#[derive(Clone, Copy)]
pub enum Cut {
    Whole,
    Bytes,
    After(usize),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sent_at_once() {
    replay(Rig::open, |_| vec![Cut::Whole], "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sent_byte_by_byte() {
    replay(Rig::open, |_| vec![Cut::Bytes], "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sent_behind_a_good_request() {
    replay(Rig::open, |_| vec![Cut::Whole], GOOD).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_at_every_place() {
    replay(Rig::open, each_place, "").await;
}

/// Some cases, cut at every place.
pub fn each_place(case: &Case) -> Vec<Cut> {
    const FEW: [&str; 6] = ["h01-", "h08-chunk-bare", "h10-surplus-is-the", "h12-upgrade-is", "h14-one-bare", "h24-"];
    match FEW.iter().any(|few| case.name.starts_with(few)) {
        true => (1..case.bytes.len()).map(Cut::After).collect(),
        false => Vec::new(),
    }
}

fn limits(deadline: Duration) -> NetLimits {
    NetLimits { head_timeout: deadline, body_timeout: deadline, ..NetLimits::default() }
}

pub async fn replay(open: fn(NetLimits) -> Rig, cuts: impl Fn(&Case) -> Vec<Cut>, before: &str) {
    let cases = cases();
    assert!(cases.len() > 100, "{} cases", cases.len());
    // Only those that wait for a deadline meet one that is soon: a busy machine delays the others.
    let (soon, late) = (open(limits(ms(1500))), open(limits(PATIENCE)));
    // The slow ones at the same time, or their deadlines would add up.
    let slow = cases.iter().filter(|case| case.is_slow());
    let slow = slow.flat_map(|case| cuts(case).into_iter().map(move |cut| (case, cut)));
    let slow: Vec<_> = slow.map(|(case, cut)| meet(&soon, case, cut, before)).collect();
    let quick = async {
        for case in cases.iter().filter(|case| !case.is_slow()) {
            for cut in cuts(case) {
                meet(&late, case, cut, before).await;
            }
        }
    };
    tokio::join!(all(slow), quick);
    assert_eq!((soon.close().await, late.close().await), (0, 0), "connections are left");
}

async fn all(futures: Vec<impl Future<Output = ()>>) {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// One case, and what the world is like after it.
async fn meet(rig: &Rig, case: &Case, cut: Cut, before: &str) {
    let mut caller = Caller::connect(rig.data).await;
    let bytes = [before.as_bytes(), &case.bytes].concat();
    send(&mut caller, &bytes, cut).await;
    let before = if before.is_empty() { None } else { Some(200) };
    let expected: Vec<u16> = before.into_iter().chain(case.statuses.iter().copied()).collect();
    let statuses = if case.stays_open {
        let mut statuses = Vec::new();
        for _ in &expected {
            statuses.extend(caller.answer().await.unwrap().map(|answer| answer.status));
        }
        assert_eq!(caller.ask(GOOD).await.status, 200, "{}: the connection stays open", case.name);
        statuses
    } else {
        caller.rest().await
    };
    assert_eq!(statuses, expected, "{}", case.name);
    rig.answers_others().await;
    assert_eq!(rig.left_to_victim().await, FULL, "{} was charged", case.name);
}

/// Write errors are ignored: a request that is refused early need not be read to the end.
async fn send(caller: &mut Caller, bytes: &[u8], cut: Cut) {
    match cut {
        Cut::Whole => drop(caller.send(bytes).await),
        Cut::Bytes => {
            for byte in bytes {
                let _ = caller.send([*byte]).await;
                tokio::task::yield_now().await;
            }
        }
        Cut::After(place) => {
            let _ = caller.send(&bytes[..place]).await;
            // Time, because what tells whether the first part was read (`until_read`) costs more, hundreds of times.
            tokio::time::sleep(ms(1)).await;
            let _ = caller.send(&bytes[place..]).await;
        }
    }
}

fn cases() -> Vec<Case> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let folder = PathBuf::from(here).join("tests/fixtures/http");
    let mut cases: Vec<Case> = fs::read_dir(&folder).unwrap().filter_map(|file| case(&file.unwrap().path())).collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

fn case(path: &Path) -> Option<Case> {
    path.extension().filter(|ending| *ending == "bin")?;
    let expected = fs::read_to_string(path.with_extension("expect")).expect("every case says what it expects");
    let mut words: Vec<&str> = expected.split_whitespace().collect();
    let stays_open = match words.pop() {
        Some("open") => true,
        Some("close") => false,
        other => panic!("{}: {other:?} is neither `open` nor `close`", path.display()),
    };
    let statuses = words.iter().map(|word| word.parse().expect("a status")).collect();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    Some(Case { name, bytes: fs::read(path).unwrap(), statuses, stays_open })
}

/// H15, J02: too large to keep as files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_refused_whole() {
    refuses_what_is_too_large(Rig::open(NetLimits::default())).await;
}

pub async fn refuses_what_is_too_large(rig: Rig) {
    let body = |length: usize| format!("{{\"client_key\":\"victim\",\"tier\":\"{}\"}}", "x".repeat(length));
    let cases = [
        ("request line of 64 KiB", format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(64 << 10)), 414),
        ("head of 20 KiB", format!("GET /live HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: 0123456789\r\n".repeat(1400)), 431),
        ("one field of 17 KiB", format!("GET /live HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "b".repeat(17 << 10)), 431),
        ("a head without end", format!("GET /live HTTP/1.1\r\nHost: x\r\n{}", "A: b\r\n".repeat(4000)), 431),
        ("empty lines without end", "\r\n".repeat(10_000), 431),
        ("a body of 64 KiB and a bit", post("/v1/check", &body(64 << 10)), 413),
        ("H11: 1 MiB that nobody asked for", post("/nowhere", &body(1 << 20)), 404),
        ("a batch of 1 MiB and a bit", post("/v1/check/batch", &body(1 << 20)), 413),
    ];
    for (name, bytes, status) in cases {
        let (reading, mut writing) = Caller::connect(rig.data).await.stream.into_split();
        let writing = tokio::spawn(async move {
            let _ = writing.write_all(bytes.as_bytes()).await; // refused before its end, most likely
            writing
        });
        let answer = Caller::over(tokio::io::join(reading, tokio::io::sink())).answer().await.unwrap().unwrap();
        assert_eq!(answer.status, status, "{name}");
        assert!(answer.closes(), "{name}");
        drop(writing);
        rig.answers_others().await;
        assert_eq!(rig.left_to_victim().await, FULL, "{name} was charged");
    }
}
