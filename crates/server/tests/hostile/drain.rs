//! P28, F65: a server that ends answers what it was asked, says that it ends, and ends in time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpStream;
use tokio::time::Instant;
use tollgate_lab::patience::until_async;
use tollgate_net::NetLimits;

use crate::caller::{Caller, PATIENCE};
use crate::frames::{Frames, GOAWAY, HEADERS, begin, get};
use crate::rig::{GOOD, Rig, ms};

const READY: &str = "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_request_gets_its_answer() {
    let rig = Rig::open(NetLimits::default());
    let answered = Arc::new(AtomicUsize::new(0));
    let load: Vec<_> = (0..32).map(|_| tokio::spawn(ask_until_told(rig.data, answered.clone()))).collect();
    until_async("two thousand answers", PATIENCE, async || answered.load(Ordering::Relaxed) >= 2000).await;
    let since = Instant::now();
    rig.drain.begin();
    for caller in load {
        caller.await.unwrap().expect("an answer to every request");
    }
    assert_eq!(rig.served.await.unwrap(), 0, "connections were cut");
    assert!(since.elapsed() < NetLimits::default().drain_timeout, "{:?}", since.elapsed());
}

/// One request after the other, until an answer says that it is the last.
async fn ask_until_told(at: std::net::SocketAddr, answered: Arc<AtomicUsize>) -> io::Result<()> {
    let mut caller = Caller::connect(at).await;
    loop {
        caller.send(GOOD).await?;
        let answer = caller.answer().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        assert_eq!(answer.status, 200);
        answered.fetch_add(1, Ordering::Relaxed);
        if answer.closes() {
            return Ok(());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_connected_is_told_and_nobody_else_comes_in() {
    let rig = Rig::open(NetLimits::default());
    let mut open = Caller::connect(rig.data).await;
    assert_eq!(open.ask(READY).await.status, 200);
    let mut piped = Caller::connect(rig.data).await;
    assert_eq!(piped.ask(READY).await.status, 200);
    let mut idle = Caller::connect(rig.data).await;
    rig.drain.begin();
    let answer = open.ask(READY).await;
    assert_eq!((answer.status, answer.closes()), (503, true), "{answer:?}");
    assert!(open.rest().await.is_empty());
    piped.send(format!("{GOOD}{GOOD}{READY}")).await.unwrap();
    assert_eq!(piped.rest().await, [200, 200, 503], "all that was sent at once");
    let refused = TcpStream::connect(rig.data).await.map_err(|error| error.kind());
    assert_eq!(refused.map(drop), Err(io::ErrorKind::ConnectionRefused));
    assert!(idle.rest().await.is_empty(), "a proper end, without a word");
    assert_eq!(rig.served.await.unwrap(), 0);
}

/// A connection that the kernel has and the server has not seen yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_connected_just_before_is_answered() {
    for _ in 0..20 {
        let rig = Rig::open(NetLimits::default());
        let mut caller = Caller::connect(rig.data).await;
        caller.send(GOOD).await.unwrap();
        rig.drain.begin();
        assert_eq!(caller.rest().await, [200]);
        drop(caller);
        assert_eq!(rig.served.await.unwrap(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_requests_do_not_hold_the_end_up() {
    let rig = Rig::open(NetLimits { drain_timeout: ms(600), ..NetLimits::default() });
    let mut slow = Caller::connect(rig.data).await;
    slow.send("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{").await.unwrap();
    let mut patient = Caller::connect(rig.data).await;
    assert_eq!(patient.ask(READY).await.status, 200);
    patient.send("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{").await.unwrap();
    slow.until_read().await;
    patient.until_read().await;
    let since = Instant::now();
    rig.drain.begin();
    let is_closed = async || TcpStream::connect(rig.data).await.is_err();
    until_async("no new connection", PATIENCE, is_closed).await;
    let answer = patient.ask("\"client_key\":\"payer\"}").await;
    assert_eq!((answer.status, answer.closes()), (200, true), "one that ends in time is answered");
    drop(patient); // or it is waited for, so that its answer is not reset away
    assert_eq!(rig.served.await.unwrap(), 1, "the other is cut");
    assert!(since.elapsed() >= ms(600), "{:?}", since.elapsed());
    assert!(since.elapsed() < ms(600) + ms(8000), "{:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_connections_are_sent_away_even_if_they_answer_no_pings() {
    let rig = Rig::open(NetLimits::default());
    let mut caller = Caller::connect(rig.data).await;
    caller.send([begin(&[]), get(0, "/live")].concat()).await.unwrap();
    let mut frames = Frames::default();
    while frames.next(&mut caller).await.expect("an answer").kind != HEADERS {}
    rig.drain.begin();
    let mut away = false;
    while let Some(frame) = frames.next(&mut caller).await {
        away |= frame.kind == GOAWAY && frame.goaway() == Some(0);
    }
    assert!(away);
    assert_eq!(rig.served.await.unwrap(), 0);
}
