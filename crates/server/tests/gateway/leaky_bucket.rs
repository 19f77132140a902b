//! Leaky buckets with `max_delay` delay requests: one leaves per interval, in the order in which they came, none waits longer
//! than the rule says, and a caller that leaves gives its place back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tollgate_config::StoreSettings;
use tollgate_lab::redis::RedisServer;

use crate::app::App;
use crate::rig::{Caller, PATIENCE, Rig, until};

/// One an hour, and a wait of at most two.
const ONE_AN_HOUR: &str = "rules: [{ name: queue, key_by: ip, limit: { algorithm: leaky_bucket, requests: 1, window: 1h, \
                           max_delay: 2h } }]\n";

/// An API that knows when each request came.
struct Timed {
    url: String,
    seen: Arc<Mutex<Vec<(String, Instant)>>>,
}

impl Timed {
    async fn start() -> Timed {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<(String, Instant)>>> = Arc::default();
        let shared = seen.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = shared.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    seen.lock().unwrap().push((request.uri().to_string(), Instant::now()));
                    async { Ok::<_, hyper::Error>(Response::new(Empty::<Bytes>::new())) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Timed { url, seen }
    }
}

/// Requests that were admitted so far, those included that still wait for their turn.
async fn admitted(rig: &Rig) -> u64 {
    let metrics = rig.metrics().await;
    let counts = metrics.lines().filter(|line| line.starts_with("tollgate_requests_allowed_total{"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Sends a request, and does not wait for its answer.
async fn ask(rig: &Rig, path: &str) -> Caller {
    let mut caller = rig.connect().await;
    caller.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    caller
}

/// Asks until the rule admits it; the request waits then.
async fn until_admitted(rig: &Rig, path: &str) -> Caller {
    let before = admitted(rig).await;
    loop {
        let mut caller = ask(rig, path).await;
        tokio::select! {
            answer = caller.answer() => assert_eq!(answer.status, 429),
            () = until(async || admitted(rig).await > before) => return caller,
        }
    }
}

#[tokio::test]
async fn requests_of_one_key_leave_in_their_order_one_per_interval() {
    const INTERVAL: Duration = Duration::from_millis(100);
    let api = Timed::start().await;
    let rules = "rules: [{ name: queue, key_by: endpoint, limit: { algorithm: leaky_bucket, requests: 10, window: 1s, \
                 max_delay: 1m } }]\n";
    let rig = Rig::start(rules, &api.url);
    let start = Instant::now();
    let mut callers = Vec::new();
    for number in 0..8 {
        callers.push(ask(&rig, &format!("/one?{number}")).await);
        until(async || admitted(&rig).await == number + 1).await;
    }
    callers.push(ask(&rig, "/two?0").await); // another key, another queue
    for caller in &mut callers {
        assert_eq!(caller.answer().await.status, 200);
    }
    let seen = std::mem::take(&mut *api.seen.lock().unwrap());
    let of_one: Vec<&(String, Instant)> = seen.iter().filter(|(target, _)| target.starts_with("/one")).collect();
    let order: Vec<&str> = of_one.iter().map(|(target, _)| target.as_str()).collect();
    assert_eq!(order, ["/one?0", "/one?1", "/one?2", "/one?3", "/one?4", "/one?5", "/one?6", "/one?7"]);
    for (number, (_, at)) in (0..).zip(&of_one) {
        assert!(*at - start >= INTERVAL * number, "request {number} after {:?}", *at - start);
    }
}

/// One an hour, and a wait of at most two: the first passes, two wait, and the rest is refused at once.
#[tokio::test]
async fn what_would_wait_longer_than_max_delay_is_refused_at_once() {
    let app = App::start().await;
    let rig = Rig::start(ONE_AN_HOUR, &app.url());
    assert_eq!(rig.get("/x").await.status, 200);
    let mut waiting = Vec::new();
    for number in 1..=2 {
        waiting.push(ask(&rig, "/waits").await);
        until(async || admitted(&rig).await == number + 1).await;
    }
    for _ in 0..20 {
        let refused = rig.get("/x").await;
        assert_eq!((refused.status, refused.field("X-RateLimit-Remaining")), (429, Some("0")), "{refused:?}");
        let wait: u64 = refused.field("Retry-After").unwrap().parse().unwrap();
        assert!((3_000..=6_000).contains(&wait), "an hour, until one more may wait: {wait}");
    }
    let seen = app.seen();
    assert!(seen.len() == 1 && seen[0].starts_with("GET /x "), "none of those that wait was sent: {seen:?}");
}

#[tokio::test]
async fn a_caller_that_hangs_up_while_it_waits_gives_its_place_back() {
    let app = App::start().await;
    places_come_back(&Rig::start(ONE_AN_HOUR, &app.url()), &app).await;
}

#[tokio::test]
async fn a_place_comes_back_to_the_store_that_gateways_share() {
    let (app, redis) = (App::start().await, RedisServer::start());
    let place = redis.url().parse().expect("a URL");
    let store = StoreSettings { place, timeout: PATIENCE, decision_deadline: PATIENCE, ..StoreSettings::default() };
    let rig = Rig::open(ONE_AN_HOUR, |config, _| {
        config.gateway.upstream = vec![app.url()];
        config.store = store;
    });
    places_come_back(&rig.await, &app).await;
}

/// The place of the last one in the queue is free again; the others keep their turns.
async fn places_come_back(rig: &Rig, app: &App) {
    assert_eq!(rig.get("/x").await.status, 200);
    let first = until_admitted(rig, "/first").await;
    for _ in 0..3 {
        let second = until_admitted(rig, "/second").await;
        assert_eq!(rig.get("/x").await.status, 429, "both places are taken");
        drop(second);
    }
    let second = until_admitted(rig, "/second").await;
    // The turns of those behind a place in the middle do not change, so that place stays empty.
    drop(first);
    for _ in 0..10 {
        assert_eq!(rig.get("/x").await.status, 429);
    }
    drop(second);
    drop(until_admitted(rig, "/third").await);
    assert_eq!(app.seen().len(), 1, "none of them was sent");
}

/// The same where the request has more to settle: what it reserved of other meters comes back, too, and its slot.
#[tokio::test]
async fn a_place_comes_back_with_reserved_amounts_and_slots() {
    let app = App::start().await;
    let rules = "rules:
  - { name: queue, match: { endpoint: /slow }, limit: { algorithm: leaky_bucket, requests: 1, window: 1h, max_delay: 1h } }
  - { name: units, meter: units, limit: { amount: 100, window: 7d, algorithm: fixed_window } }
  - { name: slots, match: { endpoint: /slow }, limit: { algorithm: concurrency, slots: 1, slot_ttl: 1h } }
";
    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }} }}\nroutes:\n  - {{ path: /left, upstream: api, cost: {{ units: 0 }} }}\n  - {{ \
         upstream: api, cost: {{ units: {{ response: bytes, estimate: 30 }} }} }}\n",
        app.url()
    );
    let rig = Rig::routed(rules, &routes);
    let left = async || rig.get("/left").await.field("X-RateLimit-Remaining").unwrap().to_owned();
    assert_eq!(rig.get("/slow").await.status, 200);
    until(async || left().await == "88").await; // twelve bytes
    for _ in 0..3 {
        let caller = until_admitted(&rig, "/slow").await;
        assert_eq!(left().await, "58");
        drop(caller);
        until(async || left().await == "88").await;
    }
}
