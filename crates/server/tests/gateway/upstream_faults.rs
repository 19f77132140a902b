//! Rows F49–F52: servers that are dead, slow, trickle, break off, or do not keep to HTTP. What the caller gets, that no
//! connection of theirs serves another request, and that slots and places come back.

use crate::forwarding::in_flight;
use crate::rig::{Rig, until};
use crate::scripted::{Act, ScriptedApi, text};
use crate::upstreams::closed_port;

const ONE_SLOT: &str =
    "rules: [{ name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 1, slot_ttl: 1h } }]\n";

fn routes(api: &ScriptedApi, options: &str) -> String {
    format!("upstreams: {{ api: {{ servers: {}{options} }} }}\nroutes: [{{ upstream: api }}]\n", api.url())
}

/// The slot is free, and no request is in flight.
async fn all_is_returned(rig: &Rig) {
    until(async || rig.get("/free").await.status == 200).await;
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
}

#[tokio::test]
async fn f49_a_dead_server_holds_no_slot() {
    let (_socket, dead) = closed_port();
    let rig = Rig::start(ONE_SLOT, &dead);
    for _ in 0..5 {
        until(async || rig.get("/").await.status == 502).await; // 429 while the last slot is on its way back
    }
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
}

#[tokio::test]
async fn f50_a_server_that_says_nothing_is_504_and_others_are_not_slower() {
    let slow = ScriptedApi::start(vec![vec![Act::Stall]]).await;
    let other = ScriptedApi::start(vec![]).await;
    let rules = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";
    let routes = format!(
        "upstreams:\n  slow: {{ servers: {}, max_in_flight: 8, timeouts: {{ first_byte: 1s }} }}\n  other: {{ servers: {} }}\n\
         routes:\n  - {{ path: /0, upstream: slow }}\n  - {{ upstream: other }}\n",
        slow.url(),
        other.url()
    );
    let rig = Rig::routed(rules, &routes);
    let mut callers = Vec::new();
    for _ in 0..8 {
        let mut caller = rig.connect().await;
        caller.send("GET /0 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        callers.push(caller);
    }
    until(async || in_flight(&rig.metrics().await).contains(&8)).await;
    for _ in 0..20 {
        assert_eq!(rig.get("/x").await.status, 200, "while the slow one is full");
    }
    for mut caller in callers {
        assert_eq!(caller.answer().await.status, 504);
    }
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
}

/// A server that does not read is at fault, not the caller whose body waits: it is 504, and counts for the breaker.
#[tokio::test]
async fn f50_a_server_that_takes_no_body_is_504_and_blamed() {
    let api = ScriptedApi::start(vec![vec![Act::Stall]]).await;
    let options = ", timeouts: { first_byte: 300ms }, breaker: { failures: 1, open: 1h, open_max: 1h }";
    let rig = Rig::routed(ONE_SLOT, &routes(&api, options));
    let mut caller = rig.connect().await;
    caller.send("POST /0 HTTP/1.1\r\nHost: a\r\nContent-Length: 67108864\r\n\r\n").await;
    let (mut read, mut write) = caller.stream.split();
    let upload = async {
        let piece = vec![b'a'; 64 << 10];
        while tokio::io::AsyncWriteExt::write_all(&mut write, &piece).await.is_ok() {}
    };
    let answer = async {
        let mut head = vec![0; 12];
        tokio::io::AsyncReadExt::read_exact(&mut read, &mut head).await.unwrap();
        head
    };
    let head = crate::rig::within(async {
        tokio::select! {
            head = answer => head,
            () = async { upload.await; std::future::pending().await } => unreachable!(),
        }
    })
    .await;
    assert_eq!(String::from_utf8_lossy(&head), "HTTP/1.1 504");
    drop(caller);
    until(async || rig.get("/x").await.status == 503).await; // the breaker is open
}

#[tokio::test]
async fn f50_a_body_that_trickles_passes_and_one_that_stops_is_cut() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n";
    let body = "a".repeat(300);
    let api = ScriptedApi::start(vec![
        vec![Act::Trickle(format!("{head}{body}").into_bytes())],
        vec![text(&format!("{head}aaa")), Act::Stall],
    ])
    .await;
    let rig = Rig::routed(ONE_SLOT, &routes(&api, ", timeouts: { idle: 500ms }"));
    assert_eq!(rig.get("/0").await.body, body);
    all_is_returned(&rig).await;
    let before = api.connections();
    let mut caller = rig.connect().await;
    caller.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(caller.rest().await.ends_with("\r\n\r\naaa"), "cut, not completed");
    all_is_returned(&rig).await;
    assert_eq!(api.connections(), before + 1, "what has stopped serves no other request");
}

/// Ends in the middle of a response, at any byte of it: 502, or a response that is seen to be cut.
#[tokio::test]
async fn f51_a_response_that_breaks_off_is_never_taken_for_a_whole_one() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX-One: 1\r\n\r\n0123456789";
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n";
    let mut scripts = Vec::new();
    for whole in [length, chunks] {
        for end in 0..whole.len() {
            scripts.push(vec![text(&whole[..end]), if end % 2 == 0 { Act::Close } else { Act::Reset }]);
        }
    }
    let count = scripts.len();
    let api = ScriptedApi::start(scripts).await;
    let rig = Rig::routed(ONE_SLOT, &routes(&api, ", ejection: { after: 0 }"));
    for number in 0..count {
        let mut answer = String::new();
        until(async || {
            let mut caller = rig.connect().await;
            caller.send(&format!("GET /{number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
            answer = caller.rest().await;
            !answer.starts_with("HTTP/1.1 429 ")
        })
        .await;
        let is_whole = answer.ends_with("0123456789") || answer.ends_with("\r\n0\r\n\r\n");
        assert!(!is_whole, "{number}: {answer}");
        // Nothing at all, where the end came with the head.
        let is_cut = answer.is_empty() || answer.starts_with("HTTP/1.1 200 ");
        assert!(is_cut || answer.starts_with("HTTP/1.1 502 "), "{number}: {answer}");
    }
    all_is_returned(&rig).await;
}

#[tokio::test]
async fn f52_framing_that_has_two_readings_is_502() {
    let bad = [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "Content-Length: 3, 3\r\n\r\nabc",
        "Content-Length: +3\r\n\r\nabc",
        "Content-Length: 3 3\r\n\r\nabc",
        "Content-Length: -1\r\n\r\nabc",
        "Content-Length: 99999999999999999999\r\n\r\nabc",
        "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "Transfer-Encoding: identity\r\n\r\nhi",
        "Transfer-Encoding: xchunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "X-One: 1\r\n folded\r\nContent-Length: 2\r\n\r\nhi",
        "X-One: a\0b\r\nContent-Length: 2\r\n\r\nhi",
        "X One: 1\r\nContent-Length: 2\r\n\r\nhi",
    ];
    let mut scripts: Vec<Vec<Act>> =
        bad.iter().map(|bad| vec![text(&format!("HTTP/1.1 200 OK\r\n{bad}")), Act::Close]).collect();
    for line in [
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 99 Low\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
    ] {
        scripts.push(vec![text(line), Act::Close]);
    }
    let count = scripts.len();
    let api = ScriptedApi::start(scripts).await;
    let rig = Rig::routed(ONE_SLOT, &routes(&api, ", ejection: { after: 0 }"));
    for number in 0..count {
        let mut status = 429;
        until(async || {
            status = rig.get(&format!("/{number}")).await.status;
            status != 429
        })
        .await;
        assert_eq!(status, 502, "{:?}", bad.get(number));
    }
    all_is_returned(&rig).await;
}

/// A tunnel that was not asked for: the caller must not believe in one, and no other request may go there.
#[tokio::test]
async fn f52_a_protocol_that_was_not_asked_for_is_502() {
    let unasked = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\nsmuggled";
    let api = ScriptedApi::start(vec![vec![text(unasked)]]).await;
    let rig = Rig::routed(ONE_SLOT, &routes(&api, ""));
    let answer = rig.get("/0").await;
    assert_eq!(answer.status, 502, "{answer:?}");
    all_is_returned(&rig).await;
    assert_eq!(api.connections(), 2, "on another connection");
}

#[tokio::test]
async fn f52_interim_responses_are_bounded_and_not_taken_for_the_answer() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let api = ScriptedApi::start(vec![
        vec![text(&format!("{}{ok}", early.repeat(50)))],
        vec![Act::Flood(early.as_bytes().to_vec())],
    ])
    .await;
    let rig = Rig::routed(ONE_SLOT, &routes(&api, ", timeouts: { first_byte: 300ms }"));
    // The response behind all interim ones, and how many of those there are.
    let final_answer = async |path: &str| {
        let (mut caller, mut hints) = (rig.connect().await, 0);
        let mut answer = caller.get(path, "").await;
        while answer.status == 103 {
            hints += 1;
            answer = caller.answer().await;
        }
        (hints, answer)
    };
    let (hints, answer) = final_answer("/0").await;
    assert_eq!((hints, answer.body.as_str()), (50, "ok"));
    let (mut hints, mut status) = (0, 429);
    until(async || {
        let (count, answer) = final_answer("/1").await;
        (hints, status) = (count, answer.status);
        status != 429
    })
    .await;
    assert!(matches!(status, 502 | 504), "a flood of them ends: {status}");
    assert!(hints <= (16 << 10) / early.len(), "no more than 16 KiB are passed on: {hints}");
    all_is_returned(&rig).await;
}

/// Bytes behind a response would be the answer to the next request, perhaps of another caller.
#[tokio::test]
async fn f52_what_follows_a_response_answers_no_other_request() {
    let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let api = ScriptedApi::start(vec![
        vec![text(&format!("{ok}{evil}"))],
        vec![text(&format!("HTTP/1.1 204 No Content\r\n\r\n{evil}"))],
        vec![text(&format!("HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n{evil}"))],
        vec![text(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{evil}"))],
    ])
    .await;
    let rig = Rig::routed(
        "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n",
        &routes(&api, ", ejection: { after: 0 }"),
    );
    for round in 0..40 {
        for number in 0..4 {
            let mut caller = rig.connect().await;
            let method = if round % 4 == 3 { "HEAD" } else { "GET" };
            caller.send(&format!("{method} /{number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
            let answer = caller.rest().await;
            assert!(!answer.contains("evil"), "{number}: {answer}");
            let next = rig.get("/next").await;
            // 502 where the bytes came with the request already under way: it is not known to be unanswered.
            assert!(matches!((next.status, next.body.as_str()), (200, "/next") | (502, _)), "{number}: {next:?}");
        }
    }
}
