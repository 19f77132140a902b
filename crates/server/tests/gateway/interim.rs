//! Interim responses of a server: passed on before the response, to callers that know them.

use crate::app::App;
use crate::rig::{Rig, within};
use crate::scripted::{Act, ScriptedApi, text};

const RULES: &str = "rules: [{ key_by: ip, limit: { requests: 100, window: 1h } }]\n";
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PASSED: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";

#[tokio::test]
async fn hints_reach_the_caller_while_the_server_is_at_work() {
    let api = ScriptedApi::start(vec![vec![text(HINTS), Act::Stall]]).await;
    let rig = Rig::start(RULES, &api.url());
    let mut caller = rig.connect().await;
    caller.send("GET /0 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(caller.head().await, PASSED);
    // Also while the rest of a body is waited for.
    let mut caller = rig.connect().await;
    caller.send("POST /0 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel").await;
    assert_eq!(caller.head().await, PASSED);
}

#[tokio::test]
async fn interim_responses_come_in_front_of_their_own_response() {
    let many = format!("{HINTS}HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n{OK}");
    let api = ScriptedApi::start(vec![vec![text(&many)], vec![text(&format!("{HINTS}{OK}"))]]).await;
    let rig = Rig::start(RULES, &api.url());
    let mut caller = rig.connect().await;
    for _ in 0..3 {
        caller.send("GET /0 HTTP/1.1\r\nHost: a\r\n\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(caller.head().await, PASSED);
        assert_eq!(caller.head().await, "HTTP/1.1 102 Processing\r\n\r\n", "and the gateway's own is not the server's");
        assert_eq!(caller.answer().await.body, "ok");
        assert_eq!(caller.head().await, PASSED);
        assert_eq!(caller.answer().await.body, "ok");
    }
    assert_eq!(api.connections(), 1);
}

/// A caller that reads nothing has the end of a long response in front of it when the next request is at work.
#[tokio::test]
async fn hints_for_the_next_request_wait_for_the_end_of_a_long_response() {
    let long = "x".repeat(8 << 20);
    let first = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{long}", long.len());
    let api = ScriptedApi::start(vec![vec![text(&first)], vec![text(HINTS), text(OK)]]).await;
    let rig = Rig::start(RULES, &api.url());
    let mut caller = rig.connect().await;
    caller.send(&"GET /0 HTTP/1.1\r\nHost: a\r\n\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2)).await;
    for _ in 0..2 {
        assert!(caller.answer().await.body == long, "nothing is between its bytes");
        let mut head = caller.head().await;
        if head == PASSED {
            head = caller.head().await; // they are dropped where the response has already begun
        }
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert_eq!(caller.until("ok").await, "ok");
    }
}

#[tokio::test]
async fn callers_that_cannot_be_sent_any_get_the_response_alone() {
    let api = ScriptedApi::start(vec![vec![text(&format!("{HINTS}{OK}"))]]).await;
    let rig = Rig::start(RULES, &api.url());
    let mut caller = rig.connect().await;
    caller.send("GET /0 HTTP/1.0\r\n\r\n").await;
    let answer = caller.rest().await;
    assert!(answer.contains(" 200 OK\r\n") && !answer.contains("103"), "HTTP/1.0 has none: {answer}");
    let stream = within(tokio::net::TcpStream::connect(rig.gateway)).await.unwrap();
    let (client, connection) = within(h2::client::handshake(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut client = within(client.ready()).await.unwrap();
    let request = http::Request::get(format!("http://{}/0", rig.gateway)).body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    assert_eq!(within(response).await.unwrap().status(), 200, "hyper cannot send them over HTTP/2");
    connection.abort();
}

#[tokio::test]
async fn a_field_that_a_route_removes_is_in_no_interim_response() {
    let api = ScriptedApi::start(vec![vec![text(&format!("{HINTS}{OK}"))]]).await;
    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }} }}\nroutes: [{{ upstream: api, response_headers: {{ remove: link }} }}]\n",
        api.url()
    );
    let rig = Rig::routed(RULES, &routes);
    let mut caller = rig.connect().await;
    caller.send("GET /0 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(caller.head().await, "HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_eq!(caller.answer().await.body, "ok");
}

/// A body is asked for once, by the gateway, and the server's own 100 is not passed on.
#[tokio::test]
async fn a_caller_that_waits_to_continue_is_told_once() {
    let app = App::start().await;
    let rig = Rig::start(RULES, &app.url());
    let mut caller = rig.connect().await;
    caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n").await;
    assert!(caller.head().await.starts_with("HTTP/1.1 100 "));
    caller.send("hello").await;
    assert_eq!(caller.answer().await.body, "hello");
}
