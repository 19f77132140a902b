//! Requests that are sent once more: only what is safe, to another server, and within a budget.

use crate::app::App;
use crate::rig::{Answer, Rig, until};
use crate::upstreams::closed_port;

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

fn routes(servers: &[String], options: &str) -> String {
    let servers = servers.join(", ");
    format!(
        "upstreams: {{ api: {{ servers: [{servers}], ejection: {{ after: 0 }}, {options} }} }}\nroutes: [{{ upstream: \
         api }}]\n"
    )
}

async fn post(rig: &Rig, path: &str) -> Answer {
    let mut caller = rig.connect().await;
    caller.send(&format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")).await;
    caller.answer().await
}

async fn retries(rig: &Rig, outcome: &str) -> u64 {
    let line = format!("tollgate_upstream_retries_total{{upstream=\"api\",outcome=\"{outcome}\"}} ");
    let metrics = rig.metrics().await;
    metrics.lines().find_map(|own| own.strip_prefix(&line)).expect("the family").parse().unwrap()
}

#[tokio::test]
async fn without_retries_a_dead_server_is_an_error() {
    let (_socket, dead) = closed_port();
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&[dead, app.url()], "balance: least_loaded"));
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(rig.get("/x").await.status);
    }
    assert!(statuses.contains(&502) && statuses.contains(&200), "{statuses:?}");
}

#[tokio::test]
async fn a_request_of_which_nothing_was_sent_goes_to_another_server() {
    let (_socket, dead) = closed_port();
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&[dead, app.url()], "retries: { attempts: 1, budget: 100% }"));
    for _ in 0..20 {
        assert_eq!(rig.get("/x").await.status, 200);
        let posted = post(&rig, "/echo").await;
        assert_eq!((posted.status, posted.body.as_str()), (200, "hello"), "nothing of the body was sent before");
    }
    assert_eq!(app.seen().len(), 40);
    assert!(retries(&rig, "sent").await > 0);
    assert_eq!(retries(&rig, "over_budget").await, 0);
}

#[tokio::test]
async fn what_may_have_been_done_is_done_twice_only_if_that_changes_nothing() {
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&[app.url()], "retries: { attempts: 2 }"));
    assert_eq!(rig.get("/hangup").await.status, 502);
    assert_eq!(app.seen().len(), 3, "GET is idempotent");
    assert_eq!(post(&rig, "/hangup").await.status, 502);
    assert_eq!(app.seen().len(), 1, "POST is not");
    let mut caller = rig.connect().await;
    caller.send("PUT /hangup HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(caller.answer().await.status, 502);
    assert_eq!(app.seen().len(), 1, "the body of a PUT is gone");
}

#[tokio::test]
async fn an_answer_is_never_asked_for_again() {
    let app = App::start().await;
    let options = "retries: { attempts: 2 }, timeouts: { first_byte: 20ms }";
    let rig = Rig::routed(NO_RULES, &routes(&[app.url()], options));
    for (path, status) in [("/fails", 500), ("/garbage", 502), ("/both", 502), ("/silent", 504)] {
        assert_eq!(rig.get(path).await.status, status, "{path}");
        assert_eq!(app.seen().len(), 1, "{path}");
    }
    let mut caller = rig.connect().await;
    caller.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(caller.rest().await.ends_with("only this"), "a part of a response was passed on");
    assert_eq!(app.seen().len(), 1);
}

#[tokio::test]
async fn retries_are_a_share_of_requests() {
    let app = App::start().await;
    let rig = Rig::routed(NO_RULES, &routes(&[app.url()], "retries: { attempts: 1, budget: 10%, burst: 2 }"));
    for _ in 0..50 {
        assert_eq!(rig.get("/hangup").await.status, 502);
    }
    let sent = app.seen().len();
    // The burst, and one more for each ten of the others.
    assert_eq!((sent, retries(&rig, "sent").await, retries(&rig, "over_budget").await), (56, 6, 44));
}

#[tokio::test]
async fn retries_end_with_the_time_for_the_whole_exchange() {
    let app = App::start().await;
    let options = "retries: { attempts: 10 }, timeouts: { total: 200ms }";
    let rig = Rig::routed(NO_RULES, &routes(&[app.url()], options));
    let mut caller = rig.connect().await;
    caller.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(caller.answer().await.status, 504);
    assert_eq!(app.seen().len(), 1);
    until(async || rig.get("/x").await.status == 200).await;
}
