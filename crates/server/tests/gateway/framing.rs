//! Messages that two readers could understand differently, in both directions: H01–H12 of the smuggling rows.

use crate::app::App;
use crate::rig::{Rig, until};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

#[tokio::test]
async fn h01_ambiguous_requests_never_reach_the_server() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    for ambiguous in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n",
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
    ] {
        let mut caller = rig.connect().await;
        caller.send(ambiguous).await;
        let answer = caller.head().await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{ambiguous:?}: {answer}");
    }
    assert!(app.seen().is_empty());
}

#[tokio::test]
async fn h02_pipelined_requests_are_as_many_at_the_server() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    let smuggled = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    caller.send(&format!("{smuggled}GET /x HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    assert!(caller.answer().await.body.starts_with("GET /admin"), "it came back as a body");
    assert_eq!(caller.answer().await.body, "from the app");
    assert_eq!(app.seen().len(), 2);
}

#[tokio::test]
async fn h07_responses_that_have_two_readings_are_not_passed_on() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    for path in ["/garbage", "/both", "/lengths", "/huge-head", "/hangup"] {
        let answer = rig.get(path).await;
        assert_eq!(answer.status, 502, "{path}");
        assert!(answer.body.contains("upstream_broken"), "{}", answer.body);
    }
}

#[tokio::test]
async fn h08_a_response_that_is_cut_is_seen_to_be_cut() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let text = caller.rest().await.to_lowercase();
    assert!(text.contains("content-length: 100") && text.ends_with("only this"), "{text}");
}

/// An early response leaves the rest of the body on the server's connection: no other request may go there.
#[tokio::test]
async fn h09_a_connection_with_an_unread_body_is_not_used_again() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\nGET /smuggled HT").await;
    let early = caller.answer().await;
    assert_eq!((early.status, early.body.as_str()), (413, "early"));
    assert_eq!(rig.get("/after").await.status, 200);
    until(async || app.connections() == 2).await;
    assert!(app.seen().iter().all(|seen| !seen.starts_with("GET /smuggled")));
}

#[tokio::test]
async fn a_body_that_stops_is_not_completed() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZZ\r\n").await;
    let answer = caller.rest().await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(app.seen().is_empty(), "the server saw no end of it");
}
