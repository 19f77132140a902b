//! Whole runs against servers of a few lines, good ones and bad ones.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_load::{ErrorKind, LoadPace, LoadPlan, LoadReport, LoadRequest, ProtobufMessage, Target, run};

/// What the server does with its n-th request, counted from 1 over all connections.
type Answer = fn(u64) -> Option<&'static str>;

const ALLOWED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"allowed\":true}";
const DENIED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"allowed\":false}";
const LAST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy";

/// Answers every request, which has one such mark; `None` closes the connection instead.
fn answer(mut stream: impl Read + Write, mark: u8, answer: Answer, count: &AtomicU64) {
    let mut buffer = [0; 4096];
    while let Ok(read) = stream.read(&mut buffer) {
        let asked = buffer[..read].iter().filter(|byte| **byte == mark).count();
        if read == 0 {
            return;
        }
        for _ in 0..asked {
            match answer(count.fetch_add(1, Ordering::Relaxed) + 1) {
                Some(reply) if stream.write_all(reply.as_bytes()).is_ok() => {}
                _ => return,
            }
        }
    }
}

/// A server of HTTP/1.1; every request ends with `}`.
fn server(with: Answer) -> (Target, Arc<AtomicU64>) {
    serve("http", "/v1/check", move |stream, count| answer(stream, b'}', with, count))
}

/// A server on a port of its own; it lasts as long as the test process.
fn serve(
    scheme: &str,
    path: &str,
    each: impl Fn(TcpStream, &AtomicU64) + Clone + Send + 'static,
) -> (Target, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::parse(&format!("{scheme}://{}{path}", listener.local_addr().unwrap())).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, counted, each) = (stream.unwrap(), Arc::clone(&counted), each.clone());
            std::thread::spawn(move || each(stream, &counted));
        }
    });
    (target, count)
}

fn plan() -> LoadPlan {
    LoadPlan {
        connections: 4,
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(200),
        timeout: Duration::from_secs(5),
        ..LoadPlan::default()
    }
}

fn load(target: &Target, plan: &LoadPlan) -> LoadReport {
    run(target, &LoadRequest::post(target.path()).body("{\"client_key\":\"{key}\"}"), plan, &mut |_| {}).unwrap()
}

#[test]
fn every_request_is_answered_and_counted() {
    let (target, count) = server(|number| Some(if number % 4 == 0 { DENIED } else { ALLOWED }));
    for pipeline in [1, 8] {
        let before = count.load(Ordering::Relaxed);
        let outcome = load(&target, &LoadPlan { pipeline, ..plan() });
        let served = count.load(Ordering::Relaxed) - before;
        assert!(served > 0);
        assert_eq!((outcome.sent, outcome.answered, outcome.errors.total()), (served, served, 0), "{outcome:?}");
        assert_eq!(outcome.allowed + outcome.denied, served);
        assert!(outcome.denied.abs_diff(served / 4) <= 1);
        assert!(outcome.rate > 0.0 && outcome.latency.max() >= outcome.latency.quantile(0.5));
        assert_eq!(outcome.seconds.len(), 1);
    }
}

#[test]
fn the_warm_up_does_not_count() {
    let (target, count) = server(|_| Some(ALLOWED));
    let outcome = load(&target, &LoadPlan { warm_up: Duration::from_millis(100), ..plan() });
    assert!(outcome.sent < count.load(Ordering::Relaxed));
}

#[test]
fn the_open_loop_keeps_its_rate() {
    let (target, count) = server(|_| Some(ALLOWED));
    let pace = LoadPace::Open { per_second: 1_000.0 };
    let outcome = load(&target, &LoadPlan { pace, duration: Duration::from_millis(500), ..plan() });
    assert_eq!(outcome.sent, count.load(Ordering::Relaxed));
    assert_eq!(outcome.sent, outcome.answered);
    assert!((outcome.sent + outcome.unsent).abs_diff(500) <= 5, "{outcome:?}");
}

#[test]
fn what_cannot_be_sent_in_time_is_counted() {
    let (target, _) = server(|_| {
        std::thread::park_timeout(Duration::from_millis(20));
        Some(ALLOWED)
    });
    let pace = LoadPace::Open { per_second: 10_000.0 };
    let max_lateness = Duration::from_millis(50);
    let outcome = load(&target, &LoadPlan { pace, max_lateness, connections: 2, ..plan() });
    assert!(outcome.unsent > 1_000, "{outcome:?}");
    assert!((outcome.sent + outcome.unsent).abs_diff(2_000) <= 50, "{outcome:?}");
    assert!(outcome.latency.max() >= max_lateness, "waiting for a connection is part of the latency");
}

#[test]
fn closed_connections_are_opened_again() {
    let (target, _) = server(|number| if number % 10 == 0 { None } else { Some(ALLOWED) });
    let outcome = load(&target, &plan());
    assert!(outcome.reconnects > 0 && outcome.allowed > 0, "{outcome:?}");
    assert_eq!(outcome.sent, outcome.answered + outcome.errors.closed);
    let (target, _) = server(|_| Some(LAST));
    let outcome = load(&target, &plan());
    assert!(outcome.reconnects > 0, "{outcome:?}");
    assert_eq!(outcome.errors.total(), 0, "a goodbye is no error");
}

#[test]
fn a_silent_server_does_not_hold_the_run() {
    let (target, _) = server(|_| {
        std::thread::park_timeout(Duration::from_secs(60));
        None
    });
    let outcome = load(&target, &LoadPlan { timeout: Duration::from_millis(100), ..plan() });
    assert!(outcome.errors.timeout > 0, "{outcome:?}");
    assert_eq!(outcome.answered, 0);
}

#[test]
fn bad_replies_are_told_apart() {
    let (target, _) = server(|_| Some("220 smtp ready\r\n"));
    let outcome = load(&target, &plan());
    assert!(outcome.errors.malformed > 0 && outcome.answered == 0, "{outcome:?}");
    let (target, _) = server(|_| Some(BUSY));
    let outcome = load(&target, &plan());
    assert_eq!(outcome.errors.statuses.get(&503), Some(&outcome.answered));
    assert!(outcome.errors.first.as_deref().is_some_and(|text| text.ends_with("busy")), "{outcome:?}");
}

#[test]
fn where_nobody_listens_no_run_begins() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let error = run(&target, &LoadRequest::get("/"), &plan(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (target, _) = server(|_| Some(ALLOWED));
    let good = LoadRequest::get("/");
    let plans = [
        LoadPlan { connections: 0, ..plan() },
        LoadPlan { pipeline: 0, ..plan() },
        LoadPlan { keys: 0, ..plan() },
        LoadPlan { duration: Duration::ZERO, ..plan() },
        LoadPlan { pace: LoadPace::Open { per_second: 0.0 }, ..plan() },
        LoadPlan { pace: LoadPace::Open { per_second: f64::NAN }, ..plan() },
    ];
    for plan in plans {
        assert_eq!(run(&target, &good, &plan, &mut |_| {}).unwrap_err().kind(), ErrorKind::Invalid, "{plan:?}");
    }
    for request in
        [LoadRequest::get("x"), LoadRequest::get("/").header("a b", ""), LoadRequest::get("/").header("a", "\r\nb: c")]
    {
        assert_eq!(run(&target, &request, &plan(), &mut |_| {}).unwrap_err().kind(), ErrorKind::Invalid, "{request:?}");
    }
}

#[test]
fn a_socket_in_the_file_system_serves_as_well() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("load-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path); // left by a run that was killed
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap(), b'}', |_| Some(ALLOWED), &AtomicU64::new(0)));
        }
    });
    let target = Target::parse(&format!("http://unix:{}:/v1/check", path.display())).unwrap();
    let outcome = load(&target, &plan());
    assert!(outcome.allowed > 0 && outcome.errors.total() == 0, "{outcome:?}");
    let _ = std::fs::remove_file(&path);
}

#[test]
fn commands_are_answered_and_counted() {
    let with = |number| Some(if number % 4 == 0 { "*2\r\n:1\r\n:9\r\n" } else { "*2\r\n:0\r\n:9\r\n" });
    let (target, count) = serve("redis", "", move |stream, count| answer(stream, b'*', with, count));
    let outcome = run(
        &target,
        &LoadRequest::command("CL.THROTTLE {key} 15 30 60"),
        &LoadPlan { pipeline: 16, ..plan() },
        &mut |_| {},
    );
    let (outcome, served) = (outcome.unwrap(), count.load(Ordering::Relaxed));
    assert!(served > 0);
    assert_eq!((outcome.sent, outcome.answered, outcome.errors.total()), (served, served, 0), "{outcome:?}");
    assert!(outcome.denied.abs_diff(served / 4) <= 1);
}

#[test]
fn a_refused_command_tells_what_the_server_said() {
    let with = |_| Some("-ERR unknown command\r\n");
    let (target, _) = serve("redis", "", move |stream, count| answer(stream, b'*', with, count));
    let outcome = run(&target, &LoadRequest::command("NO {key}"), &plan(), &mut |_| {}).unwrap();
    assert_eq!(outcome.errors.statuses.get(&0), Some(&outcome.answered));
    assert_eq!(outcome.errors.first.as_deref(), Some("-ERR unknown command\r\n"));
}

/// Answers calls as they come in, those of a read in reverse; every fourth is denied. Counts those after the first of a
/// connection.
fn answer_calls(mut stream: TcpStream, count: &AtomicU64) {
    let (mut buffer, mut bytes) = ([0; 4096], Vec::new());
    let mut is_greeted = false;
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..read]);
        if !is_greeted && bytes.len() >= 24 {
            assert!(bytes.starts_with(b"PRI * HTTP/2.0"));
            bytes.drain(..24);
            is_greeted = true;
        }
        let mut asked = Vec::new();
        while let Some(head) = bytes.first_chunk::<9>().copied().filter(|_| is_greeted) {
            let end = 9 + usize::from(head[1]) * 256 + usize::from(head[2]);
            if bytes.len() < end {
                break;
            }
            if head[3] == 0 {
                asked.push([head[5], head[6], head[7], head[8]]);
            }
            bytes.drain(..end);
        }
        let mut replies = Vec::new();
        for [a, b, c, d] in asked.into_iter().rev() {
            let is_first = [a, b, c, d] == [0, 0, 0, 1];
            let number = if is_first { 1 } else { count.fetch_add(1, Ordering::Relaxed) + 1 };
            let code = if number % 4 == 0 { 2 } else { 1 };
            replies.extend([0, 0, 1, 1, 4, a, b, c, d, 0x88]);
            replies.extend([0, 0, 7, 0, 0, a, b, c, d, 0, 0, 0, 0, 2, 8, code]);
            replies.extend([0, 0, 1, 1, 5, a, b, c, d, 0xbe]);
        }
        if stream.write_all(&replies).is_err() {
            return;
        }
    }
}

#[test]
fn calls_are_answered_in_any_order_and_counted() {
    let (target, count) = serve("grpc", "/a.B/C", answer_calls);
    for (connections, pipeline) in [(4, 1), (2, 25)] {
        let before = count.load(Ordering::Relaxed);
        let request = LoadRequest::post(target.path()).body(ProtobufMessage::new().text(1, "{key}"));
        let outcome = run(&target, &request, &LoadPlan { connections, pipeline, ..plan() }, &mut |_| {}).unwrap();
        let served = count.load(Ordering::Relaxed) - before;
        assert!(served > 0);
        assert_eq!((outcome.sent, outcome.answered, outcome.errors.total()), (served, served, 0), "{outcome:?}");
        assert!(outcome.denied.abs_diff(served / 4) <= 1, "{outcome:?}");
    }
}
