//! Rows of RELIABILITY 3.1 to 3.4 that are about callers of HTTP and have no other file here: G06, G17, H22, H23, N11, N13.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::app::App;
use crate::caller;
use crate::forwarding::in_flight;
use crate::frames::{Frames, HEADERS, RST_STREAM, begin, frame, get, stream};
use crate::rig::{Rig, until, within};
use crate::scripted::{Act, ScriptedApi, text};
use crate::servers::HyperApi;

const SLOTS: &str =
    "rules: [{ name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 200, slot_ttl: 1h } }]\n";

/// A gateway that waits for as long as this for a caller to read or to send on.
fn patient_for(time: Duration, rules: &str, upstream: String) -> Rig {
    Rig::with(rules, |config, _| {
        config.gateway.upstream = vec![upstream];
        (config.net.body_timeout, config.net.write_timeout) = (time, time);
    })
}

/// Everything is given back, and others are served.
async fn all_is_returned(rig: &Rig) {
    until(async || rig.get("/x").await.field("Ratelimit").is_some_and(|left| left.contains("r=199"))).await;
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
}

#[tokio::test]
async fn g06_a_window_of_nothing_holds_a_hundred_streams_at_most_and_not_for_ever() {
    let api = HyperApi::start().await;
    let rig = Rig::with(SLOTS, |config, _| {
        config.gateway.upstream = vec![api.url()];
        let time = Duration::from_secs(2);
        (config.net.idle_timeout, config.net.body_timeout, config.net.write_timeout) = (time, time, time);
    });
    let mut caller = caller::Caller::connect(rig.gateway).await;
    let no_window = begin(&[0, 4, 0, 0, 0, 0]); // SETTINGS_INITIAL_WINDOW_SIZE = 0
    let gets: Vec<u8> = (0..1000).flat_map(|count| get(count, "/x")).collect();
    let _ = caller.send([no_window, gets].concat()).await;
    let mut frames = Frames::default();
    while frames.next(&mut caller).await.is_some() {} // until the gateway gives it up
    all_is_returned(&rig).await;
    let seen = api.seen(0).await;
    // Those of `all_is_returned` came over HTTP/1.1, with another host.
    let streams = seen.iter().filter(|seen| !seen.contains("api.example.com")).count();
    assert!(streams <= 100, "{streams} requests were forwarded");
}

/// A call that is taken back is ended at the server too, is charged once at most, and leaves nothing behind.
#[tokio::test]
async fn g17_a_call_that_is_taken_back_is_charged_once_and_ended() {
    let app = App::start().await;
    let rules = "rules:
  - { name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 200, slot_ttl: 1h } }
  - { name: calls, key_by: ip, match: { endpoint: [/silent, /count] }, limit: { requests: 1000, window: 7d } }
";
    let rig = patient_for(Duration::from_secs(30), rules, app.url());
    let mut caller = caller::Caller::connect(rig.gateway).await;
    caller.send(begin(&[])).await.unwrap();
    for count in 0..50 {
        caller.send(get(count, "/silent")).await.unwrap();
        if count % 2 == 0 {
            until(async || in_flight(&rig.metrics().await).contains(&1)).await; // the server has it
        }
        caller.send(frame(RST_STREAM, 0, stream(count), &8u32.to_be_bytes())).await.unwrap();
        until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
    }
    all_is_returned(&rig).await;
    let answer = rig.get("/count").await;
    let (_, left) = answer.field("Ratelimit").unwrap().split_once("\"calls\";r=").unwrap();
    let left: u64 = left.split(';').next().unwrap().parse().unwrap();
    assert!((949..=999).contains(&left), "fifty calls and this one: {left}");
    assert!(app.seen().iter().filter(|seen| seen.starts_with("GET /silent ")).count() <= 50);
}

#[tokio::test]
async fn h22_a_caller_that_never_reads_is_let_go_and_its_slot_is_free() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n";
    let api = ScriptedApi::start(vec![vec![text(head), Act::Flood(vec![b'a'; 64 << 10])]]).await;
    let rig = patient_for(Duration::from_millis(300), SLOTS, api.url());
    for version in ["1.1", "2"] {
        let mut caller = caller::Caller::connect(rig.gateway).await;
        let request = match version {
            "2" => [begin(&[]), get(0, "/0")].concat(),
            _ => b"GET /0 HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        };
        caller.send(request).await.unwrap();
        // The head of the response has come; the rest of it is never read.
        match version {
            "2" => {
                let mut frames = Frames::default();
                while frames.next(&mut caller).await.expect("a response").kind != HEADERS {}
            }
            _ => assert!(caller.bytes().await.unwrap().starts_with(b"HTTP/1.1 200 ")),
        }
        all_is_returned(&rig).await;
        // The connection has ended: what is sent over it is not taken.
        within(async { while caller.stream.write_all(&[0; 1024]).await.is_ok() {} }).await;
    }
}

/// The gateway decompresses nothing: what is coded passes as it is, and is refused unread where its content is priced.
#[tokio::test]
async fn h23_a_compressed_body_is_passed_on_or_refused_and_never_unpacked() {
    let app = App::start().await;
    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }} }}\nroutes:\n  - {{ path: /priced, upstream: api, cost: {{ units: {{ request: \
         {{ json: /a }} }} }} }}\n  - {{ upstream: api }}\n",
        app.url()
    );
    let rig = Rig::routed("rules: [{ meter: units, key_by: ip, limit: { amount: 100, window: 1h } }]\n", &routes);
    let bomb = "\x1f\x7f\x08 not even gzip ".repeat(700);
    let post = async |path: &str, length: usize, body: &str| {
        let mut caller = rig.connect().await;
        let fields = format!("Content-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: {length}");
        caller.send(&format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{body}")).await;
        caller.answer().await
    };
    let passed = post("/echo", bomb.len(), &bomb).await;
    assert!(passed.status == 200 && passed.body == bomb, "byte by byte");
    assert!(app.seen()[0].contains("content-encoding: gzip"));
    let refused = post("/priced", bomb.len(), "").await; // before a byte of the body has come
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("\"code\":\"bad_body\""), "{refused:?}");
    assert!(app.seen().is_empty());
}

#[tokio::test]
async fn n11_ids_in_a_path_share_the_bucket_of_their_route() {
    let app = App::start().await;
    let rules = "rules: [{ match: { endpoint: \"/users/{id}/orders\" }, key_by: \"ip:endpoint\", limit: { requests: 20, \
                 window: 7d } }]\n";
    let rig = Rig::start(rules, &app.url());
    for user in 0..20 {
        assert_eq!(rig.get(&format!("/users/{user:032x}/orders")).await.status, 200);
    }
    for user in 20..40 {
        assert_eq!(rig.get(&format!("/users/{user:032x}/orders")).await.status, 429);
    }
    assert_eq!(app.seen().len(), 20);
}

/// No method is a way around a rule about the same resource: HEAD is a GET, and a rule that names no method means all.
#[tokio::test]
async fn n13_head_and_options_do_not_escape_a_rule() {
    let app = App::start().await;
    let ask = async |rig: &Rig, method: &str, fields: &str| -> u16 {
        let mut caller = rig.connect().await;
        caller.send(&format!("{method} /login HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n")).await;
        caller.rest().await[9..12].parse().unwrap()
    };
    let rule = |endpoint: &str| {
        format!(
            "rules: [{{ match: {{ endpoint: \"{endpoint}\" }}, key_by: ip, limit: {{ requests: 1, window: 7d }} }}]\n"
        )
    };
    let any = Rig::start(&rule("/login"), &app.url());
    assert_eq!(ask(&any, "OPTIONS", "").await, 200);
    for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"] {
        assert_eq!(ask(&any, method, "").await, 429, "{method}");
    }
    for method in ["get", "Options"] {
        assert_eq!(ask(&any, method, "").await, 400, "{method}: no server is left to take it for another");
    }
    let get = Rig::start(&rule("GET /login"), &app.url());
    assert_eq!(ask(&get, "HEAD", "").await, 200);
    for method in ["GET", "HEAD"] {
        assert_eq!(ask(&get, method, "").await, 429, "{method}");
    }
    // Another method is another request, also for the server: what would make it a GET there is taken out.
    app.seen();
    let disguise = "X-HTTP-Method-Override: GET\r\nX-HTTP-Method: GET\r\nX-Method-Override: GET\r\n";
    for method in ["OPTIONS", "POST"] {
        assert_eq!(ask(&get, method, disguise).await, 200, "{method}");
        let seen = app.seen().remove(0);
        assert!(seen.starts_with(&format!("{method} /login ")) && !seen.to_lowercase().contains("override"), "{seen}");
    }
    assert_eq!(ask(&get, "OPTIONS", &format!("{disguise}Content-Length: 0\r\n")).await, 200);
}
