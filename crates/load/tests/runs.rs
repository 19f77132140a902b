//! Whole runs against small servers, correct and faulty.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_load::{ErrorKind, LoadPace, LoadPlan, LoadReport, LoadRequest, ProtobufMessage, Target, WaitMode, run};

/// The reply to the n-th request, counted from 1 over all connections; `None` closes the connection.
type Answer = fn(u64) -> Option<&'static str>;

const ALLOWED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"allowed\":true}";
const DENIED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"allowed\":false}";
const LAST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy";

/// Answers every request. A request contains `mark` once.
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

/// An HTTP/1.1 server; every request ends with `}`.
fn server(with: Answer) -> (Target, Arc<AtomicU64>) {
    serve("http", "/v1/check", move |stream, count| answer(stream, b'}', with, count))
}

/// A server on a free port; it runs until the test process ends.
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
        let report = load(&target, &LoadPlan { pipeline, ..plan() });
        let served = count.load(Ordering::Relaxed) - before;
        assert!(served > 0);
        assert_eq!((report.sent, report.answered, report.errors.total()), (served, served, 0), "{report:?}");
        assert_eq!(report.allowed + report.denied, served);
        assert!(report.denied.abs_diff(served / 4) <= 1);
        assert!(report.rate > 0.0 && report.latency.max() >= report.latency.quantile(0.5));
        assert_eq!(report.seconds.len(), 1);
    }
}

#[test]
fn a_generator_that_yields_loses_no_reply() {
    let (target, count) = server(|_| Some(ALLOWED));
    for pace in [LoadPace::Closed, LoadPace::Open { per_second: 500.0 }] {
        let before = count.load(Ordering::Relaxed);
        let report = load(&target, &LoadPlan { pace, wait: WaitMode::Yield, ..plan() });
        let served = count.load(Ordering::Relaxed) - before;
        assert!(served > 0);
        assert_eq!((report.sent, report.answered, report.errors.total()), (served, served, 0), "{report:?}");
    }
}

#[test]
fn the_warm_up_does_not_count() {
    let (target, count) = server(|_| Some(ALLOWED));
    let report = load(&target, &LoadPlan { warm_up: Duration::from_millis(100), ..plan() });
    assert!(report.sent < count.load(Ordering::Relaxed));
}

#[test]
fn the_open_loop_keeps_its_rate() {
    let (target, count) = server(|_| Some(ALLOWED));
    let pace = LoadPace::Open { per_second: 1_000.0 };
    let report = load(&target, &LoadPlan { pace, duration: Duration::from_millis(500), ..plan() });
    assert_eq!(report.sent, count.load(Ordering::Relaxed));
    assert_eq!(report.sent, report.answered);
    assert!((report.sent + report.unsent).abs_diff(500) <= 1, "{report:?}");
}

#[test]
fn requests_that_cannot_be_sent_in_time_are_counted() {
    let (target, _) = server(|_| {
        std::thread::park_timeout(Duration::from_millis(20));
        Some(ALLOWED)
    });
    let pace = LoadPace::Open { per_second: 10_000.0 };
    let max_lateness = Duration::from_millis(50);
    let report = load(&target, &LoadPlan { pace, max_lateness, connections: 2, ..plan() });
    assert!(report.unsent > 1_000, "{report:?}");
    assert!((report.sent + report.unsent).abs_diff(2_000) <= 1, "{report:?}");
    assert!(report.latency.max() >= max_lateness, "waiting for a connection is part of the latency");
}

#[test]
fn closed_connections_are_reopened() {
    let (target, _) = server(|number| if number % 10 == 0 { None } else { Some(ALLOWED) });
    let report = load(&target, &plan());
    assert!(report.reconnects > 0 && report.allowed > 0, "{report:?}");
    assert_eq!(report.sent, report.answered + report.errors.closed);
    let (target, _) = server(|_| Some(LAST));
    let report = load(&target, &plan());
    assert!(report.reconnects > 0, "{report:?}");
    assert_eq!(report.errors.total(), 0, "a closed connection is not an error");
}

#[test]
fn a_silent_server_does_not_block_the_run() {
    let (target, _) = server(|_| {
        std::thread::park();
        None
    });
    let report = load(&target, &LoadPlan { timeout: Duration::from_millis(100), ..plan() });
    assert!(report.errors.timeout > 0, "{report:?}");
    assert_eq!(report.answered, 0);
}

#[test]
fn faulty_replies_are_counted_by_kind() {
    let (target, _) = server(|_| Some("220 smtp ready\r\n"));
    let report = load(&target, &plan());
    assert!(report.errors.malformed > 0 && report.answered == 0, "{report:?}");
    let (target, _) = server(|_| Some(BUSY));
    let report = load(&target, &plan());
    assert_eq!(report.errors.statuses.get(&503), Some(&report.answered));
    assert!(report.errors.first.as_deref().is_some_and(|text| text.ends_with("busy")), "{report:?}");
}

#[test]
fn a_target_that_does_not_listen_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let error = run(&target, &LoadRequest::get("/"), &plan(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
}

#[test]
fn invalid_plans_and_requests_are_rejected() {
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
fn a_unix_domain_socket_works_too() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("load-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path); // left by a run that was killed
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap(), b'}', |_| Some(ALLOWED), &AtomicU64::new(0)));
        }
    });
    let target = Target::parse(&format!("http://unix:{}:/v1/check", path.display())).unwrap();
    let report = load(&target, &plan());
    assert!(report.allowed > 0 && report.errors.total() == 0, "{report:?}");
    let _ = std::fs::remove_file(&path);
}

#[test]
fn commands_are_answered_and_counted() {
    let with = |number| Some(if number % 4 == 0 { "*2\r\n:1\r\n:9\r\n" } else { "*2\r\n:0\r\n:9\r\n" });
    let (target, count) = serve("redis", "", move |stream, count| answer(stream, b'*', with, count));
    let report = run(
        &target,
        &LoadRequest::command("CL.THROTTLE {key} 15 30 60"),
        &LoadPlan { pipeline: 16, ..plan() },
        &mut |_| {},
    );
    let (report, served) = (report.unwrap(), count.load(Ordering::Relaxed));
    assert!(served > 0);
    assert_eq!((report.sent, report.answered, report.errors.total()), (served, served, 0), "{report:?}");
    assert!(report.denied.abs_diff(served / 4) <= 1);
}

#[test]
fn the_error_of_a_rejected_command_is_kept() {
    let with = |_| Some("-ERR unknown command\r\n");
    let (target, _) = serve("redis", "", move |stream, count| answer(stream, b'*', with, count));
    let report = run(&target, &LoadRequest::command("NO {key}"), &plan(), &mut |_| {}).unwrap();
    assert_eq!(report.errors.statuses.get(&0), Some(&report.answered));
    assert_eq!(report.errors.first.as_deref(), Some("-ERR unknown command\r\n"));
}

/// Answers gRPC calls, those of one read in reverse order; every fourth is denied. Does not count the first call of a
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
        let report = run(&target, &request, &LoadPlan { connections, pipeline, ..plan() }, &mut |_| {}).unwrap();
        let served = count.load(Ordering::Relaxed) - before;
        assert!(served > 0);
        assert_eq!((report.sent, report.answered, report.errors.total()), (served, served, 0), "{report:?}");
        assert!(report.denied.abs_diff(served / 4) <= 1, "{report:?}");
    }
}
