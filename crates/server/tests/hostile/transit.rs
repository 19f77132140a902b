//! Bytes in transit share one budget, and no connection is cut while a response is on its way.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tollgate_net::NetLimits;

use crate::caller::{Caller, within};
use crate::rig::{GOOD, Rig};

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_end_take_no_more_than_their_budget() {
    let rig = Rig::open(NetLimits { max_in_transit: 2 * MIB, ..NetLimits::default() });
    let head = format!("POST /v1/check/batch HTTP/1.1\r\nHost: x\r\nContent-Length: {MIB}\r\n\r\n{{");
    let mut holders = Vec::new();
    for _ in 0..2 {
        let mut caller = Caller::connect(rig.data).await;
        caller.send(&head).await.unwrap();
        holders.push(caller);
    }
    // Which of them the server has read already is its business: ask until there is no room.
    within(async {
        loop {
            let mut caller = Caller::connect(rig.data).await;
            caller.send(&head).await.unwrap();
            tokio::select! {
                answer = caller.answer() => {
                    let answer = answer.unwrap().expect("an answer");
                    assert_eq!((answer.status, answer.closes()), (503, true), "{answer:?}");
                    assert!(answer.body.contains("\"no_room\""), "{answer:?}");
                    return;
                }
                () = sleep(Duration::from_millis(200)) => holders.push(caller),
            }
        }
    })
    .await;
    assert!(holders.len() <= 3, "{} hold a body", holders.len());
    rig.answers_others().await;
    holders.clear();
    let one = "{\"client_key\":\"payer\"}";
    let body = format!("{{\"requests\":[{}]}}", vec![one; 1000].join(","));
    let batch = format!("POST /v1/check/batch HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut status = 0;
    within(async {
        while status != 200 {
            status = Caller::connect(rig.data).await.ask(&batch).await.status;
        }
    })
    .await;
    assert_eq!(rig.close().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_http_2_connection_is_not_idle() {
    let idle_timeout = Duration::from_millis(400);
    let rig = Rig::open(NetLimits { idle_timeout, ..NetLimits::default() });
    let stream = TokioIo::new(TcpStream::connect(rig.data).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let start = Instant::now();
    while start.elapsed() < 4 * idle_timeout {
        let request = http::Request::get("http://x/live").body(Full::<Bytes>::default()).unwrap();
        let response = within(sender.send_request(request)).await.expect("a connection that is in use stays");
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
    }
    within(connection).await.unwrap().unwrap();
    assert!(start.elapsed() >= 9 * idle_timeout / 2, "ended {:?} after it began", start.elapsed());
    rig.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_have_places_of_their_own_and_see_the_end() {
    let rig = Rig::open(NetLimits { max_connections: 2, ..NetLimits::default() });
    let mut one = Caller::connect(rig.data).await;
    let mut two = Caller::connect(rig.data).await;
    assert_eq!((one.ask(GOOD).await.status, two.ask(GOOD).await.status), (200, 200));
    let ready = "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(Caller::connect(rig.admin).await.ask(ready).await.status, 200, "the data port is full");
    one.send(&GOOD[..GOOD.len() - 1]).await.unwrap(); // something to wait for at the end
    one.until_read().await;
    rig.drain.begin();
    assert_eq!(Caller::connect(rig.admin).await.ask(ready).await.status, 503, "who asks while it ends is told");
    one.send("}").await.unwrap();
    assert_eq!(one.answer().await.unwrap().expect("an answer").status, 200);
    assert_eq!(within(rig.served).await.unwrap(), 0);
}
