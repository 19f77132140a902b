//! Clients that take their time: F54, H09, H18, H21. Each deadline holds in all, not per byte, and costs the others nothing.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tollgate_net::NetLimits;

use crate::caller::Caller;
use crate::rig::{GOOD, Rig, ms};

const HEAD: Duration = ms(400);
const BODY: Duration = ms(500);
/// Between two crumbs: many of them fit into every deadline.
const CRUMB: Duration = ms(50);
/// By how much a loaded machine may be late.
const LATE: Duration = Duration::from_secs(8);

fn rig() -> Rig {
    Rig::open(limits())
}

fn limits() -> NetLimits {
    NetLimits { head_timeout: HEAD, body_timeout: BODY, idle_timeout: ms(300), ..NetLimits::default() }
}

/// Sends the start, then crumbs until the server has had enough; answers the statuses it said, and when it ended.
async fn feed(rig: &Rig, start: &str, crumbs: &str) -> (Vec<u16>, Duration) {
    let mut caller = Caller::connect(rig.data).await;
    let since = Instant::now();
    caller.send(start).await.unwrap();
    let mut statuses = Vec::new();
    let mut crumbs = crumbs.as_bytes().iter().cycle();
    loop {
        match timeout(CRUMB, caller.answer()).await {
            Ok(Ok(Some(answer))) => statuses.push(answer.status),
            Ok(Ok(None) | Err(_)) => return (statuses, since.elapsed()),
            Err(_) => {}
        }
        if let Some(crumb) = crumbs.next() {
            let _ = caller.send([*crumb]).await;
        }
        assert!(since.elapsed() < HEAD + BODY + LATE, "still there: {start:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_has_its_time_and_no_byte_buys_more() {
    heads_have_their_time(Rig::open).await;
}

pub async fn heads_have_their_time(open: fn(NetLimits) -> Rig) {
    let rig = open(limits());
    let unending = "GET /live HTTP/1.1\r\nHost: x\r\nA: ";
    let cases = [
        ("G", ""),
        ("G", "E"),
        (unending, ""),
        (unending, "a"),
        ("GET /live HTTP/1.1\r\nHost: x\r\n", "A: b\r\n"),
        ("\r\n", "\r\n"),
        ("\r\n\r\n", ""),
        ("PRI * HTTP/2.0\r\n\r\n", ""),
    ];
    let fed = cases.map(|(start, crumbs)| feed(&rig, start, crumbs));
    for ((start, crumbs), (statuses, after)) in cases.iter().zip(together(fed).await) {
        assert_eq!(statuses, [0u16; 0], "{start:?} and {crumbs:?}: closed without a word");
        assert!(after >= HEAD, "{start:?} and {crumbs:?}: ended after {after:?}");
    }
    rig.answers_others().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_has_its_time_and_is_told_when_it_is_over() {
    bodies_have_their_time(Rig::open).await;
}

pub async fn bodies_have_their_time(open: fn(NetLimits) -> Rig) {
    let rig = open(limits());
    let known = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
    let chunked = "POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let continued = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    let in_chunk = format!("{chunked}80\r\n");
    let cases = [
        (known, "", &[408][..]),
        (known, " ", &[408]),
        (chunked, "", &[408]),
        (chunked, "1\r\n \r\n", &[408]),
        (&in_chunk, " ", &[408]),
        (continued, "", &[100, 408]),
    ];
    let fed = cases.map(|(start, crumbs, _)| feed(&rig, start, crumbs));
    for ((start, crumbs, expected), (statuses, after)) in cases.iter().zip(together(fed).await) {
        assert_eq!(statuses, *expected, "{start:?} and {crumbs:?}");
        assert!(after >= BODY, "{start:?} and {crumbs:?}: ended after {after:?}");
    }
    rig.answers_others().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_nothing_is_let_go_after_a_while() {
    let rig = rig();
    let since = Instant::now();
    let mut silent = Caller::connect(rig.data).await;
    let mut served = Caller::connect(rig.data).await;
    assert_eq!(served.ask(GOOD).await.status, 200);
    assert_eq!(silent.rest().await, [0u16; 0]);
    assert_eq!(served.rest().await, [0u16; 0]);
    assert!(since.elapsed() >= ms(300), "{:?}", since.elapsed());
    // Whoever asks now and then is not idle.
    let mut caller = Caller::connect(rig.data).await;
    let since = Instant::now();
    while since.elapsed() < ms(900) {
        assert_eq!(caller.ask(GOOD).await.status, 200);
        sleep(ms(60)).await;
    }
}

/// F54: hundreds of them, and others are answered at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_by_the_hundred_slow_nobody_down() {
    let rig = rig();
    let mut crowd = Vec::new();
    for number in 0..900 {
        let mut caller = Caller::connect(rig.data).await;
        let start = match number % 3 {
            0 => "G",
            1 => "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
            _ => "POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n80\r\n{",
        };
        caller.send(start).await.unwrap();
        crowd.push(caller);
        if number % 100 == 0 {
            rig.answers_others().await;
        }
    }
    for (number, mut caller) in crowd.into_iter().enumerate() {
        let expected: &[u16] = if number % 3 == 0 { &[] } else { &[408] };
        assert_eq!(caller.rest().await, expected, "caller {number}");
    }
}

/// All of them at the same time.
async fn together<T, const N: usize>(futures: [impl Future<Output = T>; N]) -> Vec<T> {
    let mut futures = futures.map(|future| (Box::pin(future), None));
    std::future::poll_fn(|cx| {
        let mut ready = true;
        for (future, done) in &mut futures {
            if done.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *done = Some(value),
                    std::task::Poll::Pending => ready = false,
                }
            }
        }
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    futures.into_iter().filter_map(|(_, done)| done).collect()
}
