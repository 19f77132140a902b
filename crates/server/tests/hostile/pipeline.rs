//! Many requests in one write, bodies in odd pieces, and clients that stop sending before they have been answered.

use tokio::io::AsyncWriteExt;
use tollgate_net::NetLimits;

use crate::caller::Caller;
use crate::rig::{GOOD, Rig, post};

/// H24: all of them, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_in_one_write_are_answered_in_order() {
    let rig = Rig::open(NetLimits::default());
    let mut caller = Caller::connect(rig.data).await;
    caller.send(post("/v1/check", "{\"client_key\":\"many\"}").repeat(1000)).await.unwrap();
    for number in 0..1000 {
        let answer = caller.answer().await.unwrap().expect("an answer");
        let answer: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(answer["remaining"].as_u64(), Some(999 - number), "request {number}");
    }
    assert_eq!(caller.ask(GOOD).await.status, 200, "and the connection goes on");
}

/// The reply to what was sent whole arrives, whether or not the client can still speak.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stops_sending_is_still_answered() {
    let rig = Rig::open(NetLimits::default());
    for count in [1, 2, 500] {
        let mut caller = Caller::connect(rig.data).await;
        caller.send(GOOD.repeat(count)).await.unwrap();
        caller.stream.shutdown().await.unwrap();
        assert_eq!(caller.rest().await, vec![200; count]);
    }
    let mut caller = Caller::connect(rig.data).await;
    caller.send(format!("{GOOD}POST /v1/check HTT")).await.unwrap();
    caller.stream.shutdown().await.unwrap();
    assert_eq!(caller.rest().await, [200], "half a request is no request");
}

/// A body in chunks is the same body, wherever the pieces end and whatever came before it on the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_behind_a_large_request_arrive_whole() {
    let rig = Rig::open(NetLimits::default());
    let large = |kib: usize| post("/v1/check", &format!("{{\"client_key\":\"payer\"{}}}", " ".repeat(kib << 10)));
    let chunked = "POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0a\r\n{\"client_k\r\n";
    for (first, second) in [(0, 0), (9, 10), (20, 20), (9, 20), (3, 10)] {
        let mut caller = Caller::connect(rig.data).await;
        // The first makes the buffer grow, the second more so, until it holds the beginning of the third as well.
        assert_eq!(caller.ask(large(first)).await.status, 200);
        assert_eq!(caller.ask(format!("{}{chunked}", large(second))).await.status, 200);
        for piece in ["0", "8\r", "\ney\":\"", "pay\r\n5\r\ner\"", "} \r\n", "0\r\n\r\n"] {
            caller.until_read().await;
            caller.send(piece).await.unwrap();
        }
        let answer = caller.answer().await.unwrap().unwrap();
        assert_eq!(answer.status, 200, "behind {first} and {second} KiB: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_continue_is_said_once_and_then_the_body_is_taken() {
    let rig = Rig::open(NetLimits::default());
    let mut caller = Caller::connect(rig.data).await;
    let head = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(caller.ask(head).await.status, 100);
    assert_eq!(caller.ask("{\"client_key\":\"payer\"}").await.status, 200);
    let whole = format!("{head}{{\"client_key\":\"payer\"}}");
    assert_eq!(caller.ask(whole).await.status, 200, "nobody has to be asked for what is there");
}
