//! Upstreams that fail, come back, change and share the load: F49–F52.

use tokio::net::TcpListener;

use crate::app::App;
use crate::rig::{Rig, until};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

fn routes(servers: &[String], options: &str) -> String {
    let servers = servers.join(", ");
    format!("upstreams: {{ api: {{ servers: [{servers}]{options} }} }}\nroutes: [{{ upstream: api }}]\n")
}

/// A port on which nothing listens, and which no other test gets while the socket lives.
pub fn closed_port() -> (tokio::net::TcpSocket, String) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    (socket, url)
}

#[tokio::test]
async fn f49_a_dead_server_is_502_and_tells_nothing_of_itself() {
    let (_socket, dead) = closed_port();
    let rig = Rig::start(NO_RULES, &dead);
    let answer = rig.get("/").await;
    assert_eq!(answer.status, 502);
    assert!(answer.body.contains("upstream_unreachable") && !answer.body.contains("127.0.0.1"), "{}", answer.body);
}

#[tokio::test]
async fn f50_a_server_that_fails_is_left_out() {
    let (_socket, dead) = closed_port();
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&[dead, app.url()], ", ejection: { after: 2, for: 1h }"));
    let mut failures = 0;
    for _ in 0..40 {
        failures += usize::from(rig.get("/").await.status != 200);
    }
    assert_eq!(failures, 2, "as many as it takes to leave it out");
    assert!(
        rig.metrics()
            .await
            .lines()
            .any(|line| line.starts_with("tollgate_upstream_available{") && line.ends_with(" 0"))
    );
}

#[tokio::test]
async fn f51_answers_that_do_not_come_are_504() {
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&[app.url()], ", timeouts: { first_byte: 20ms }"));
    let answer = rig.get("/silent").await;
    assert_eq!(answer.status, 504);
    assert!(answer.body.contains("upstream_timeout"), "{}", answer.body);
    let rig = Rig::routed(NO_RULES, &routes(&[app.url()], ", timeouts: { total: 50ms }"));
    let mut caller = rig.connect().await;
    caller.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let text = caller.rest().await;
    assert!(text.starts_with("HTTP/1.1 200 ") && !text.ends_with("0\r\n\r\n"), "the stream is cut: {text}");
}

#[tokio::test]
async fn health_checks_take_a_server_out_and_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = App::on(listener);
    let health = ", health: { path: /ok, every: 10ms, timeout: 5s, healthy_after: 1, unhealthy_after: 1 }";
    let rig = Rig::routed(NO_RULES, &routes(&[app.url()], health));
    assert_eq!(rig.get("/").await.status, 200);
    drop(app);
    until(async || rig.get("/").await.status == 503).await;
    let answer = rig.get("/").await;
    assert!(answer.body.contains("\"code\":\"no_server\""), "{}", answer.body);
    let wait: u64 = answer.field("Retry-After").unwrap().parse().unwrap();
    assert!((30..=45).contains(&wait), "{wait}");
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    let _app = App::on(socket.listen(16).unwrap());
    until(async || rig.get("/").await.status == 200).await;
}

#[tokio::test]
async fn a_caller_stays_with_its_server_and_load_is_shared() {
    let apps = [App::start().await, App::start().await, App::start().await];
    let servers: Vec<String> = apps.iter().map(App::url).collect();
    let rig = Rig::routed(NO_RULES, &routes(&servers, ", balance: caller"));
    for _ in 0..20 {
        assert_eq!(rig.get("/").await.status, 200);
    }
    let mut counts: Vec<usize> = apps.iter().map(|app| app.seen().len()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 20]);
    let rig = Rig::routed(NO_RULES, &routes(&servers, ""));
    for _ in 0..60 {
        assert_eq!(rig.get("/").await.status, 200);
    }
    assert!(apps.iter().all(|app| !app.seen().is_empty()), "each got some");
}

#[tokio::test]
async fn an_upstream_takes_no_more_at_once_than_it_may() {
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&[app.url()], ", max_in_flight: 1"));
    let mut caller = rig.connect().await;
    caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !app.seen().is_empty()).await;
    let refused = rig.get("/x").await;
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("\"code\":\"overload\"") && refused.field("Retry-After").is_some());
    app.released.send_replace(1);
    assert_eq!(caller.answer().await.status, 200);
    until(async || rig.get("/x").await.status == 200).await;
}

/// A routes file that changes is in force soon; one with a mistake changes nothing; requests under way go on.
#[tokio::test]
async fn routes_are_loaded_again_without_losing_a_request() {
    let (one, two) = (App::start().await, App::start().await);
    let rig = Rig::routed(NO_RULES, &routes(&[one.url()], ""));
    let path = rig.dir.path().join("routes.yaml");
    let mut caller = rig.connect().await;
    caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !one.seen().is_empty()).await;
    std::fs::write(&path, routes(&[two.url()], "")).unwrap();
    until(async || rig.get("/x").await.status == 200 && !two.seen().is_empty()).await;
    std::fs::write(&path, "routes: [{ upstream: nowhere }]\n").unwrap();
    for _ in 0..10 {
        assert_eq!(rig.get("/x").await.status, 200);
    }
    one.released.send_replace(1);
    assert_eq!(caller.answer().await.body, "held");
}

/// Servers close connections that have been idle; a request that meets this moment is sent once more.
#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used() {
    let app = App::start().await;
    let rig = Rig::start(NO_RULES, &app.url());
    let mut caller = rig.connect().await;
    for _ in 0..3 {
        caller.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(caller.answer().await.status, 200);
        caller.send("GET /hangup HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(caller.answer().await.status, 502, "a request that was read is not sent twice");
    }
    assert_eq!(app.seen().iter().filter(|seen| seen.starts_with("GET /hangup")).count(), 3);
}

/// A caller that sends its body slowly, or more than it may, says nothing about the server.
#[tokio::test]
async fn a_slow_or_oversized_upload_is_not_the_servers_fault() {
    let app = App::start().await;
    let routes = format!(
        "upstreams: {{ api: {{ servers: {}, timeouts: {{ first_byte: 50ms }}, breaker: {{ failures: 1, open: 1h, open_max: 1h }} }} }}
routes: [{{ upstream: api, max_body: 8 }}]\n",
        app.url()
    );
    let rig = Rig::routed(NO_RULES, &routes);
    let mut caller = rig.connect().await;
    caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhal").await;
    assert!(caller.rest().await.starts_with("HTTP/1.1 408 "));
    let mut caller = rig.connect().await;
    caller.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n").await;
    assert!(caller.head().await.starts_with("HTTP/1.1 413 "), "before a byte of it was sent");
    assert_eq!(rig.get("/x").await.status, 200, "the breaker is closed");
    assert_eq!(app.seen().len(), 1, "neither upload was completed");
}
