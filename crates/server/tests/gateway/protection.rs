//! The protections of an upstream that take time to decide, from end to end: shedding by utilisation, throttling towards an
//! upstream that refuses, CoDel and LIFO, the reserved share, the limit that follows the upstream, the breaker's probes,
//! and the server that a key prefers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tollgate_lab::fault_proxy::{Direction, FaultProxy, LinkMode};

use crate::app::App;
use crate::overload::{NO_RULES, ask, occupy, routes, waiting};
use crate::rig::{Caller, Rig, until};

/// A series of the page of metrics.
async fn figure(rig: &Rig, series: &str) -> u64 {
    let metrics = rig.metrics().await;
    let mut found = metrics.lines().filter_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    found.next().unwrap_or_else(|| panic!("no {series}: {metrics}"))
}

/// Requests of every route that had this outcome.
async fn outcome(rig: &Rig, name: &str) -> u64 {
    let (metrics, label) = (rig.metrics().await, format!("outcome=\"{name}\""));
    let counts =
        metrics.lines().filter(|line| line.starts_with("tollgate_gateway_requests_total{") && line.contains(&label));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Kinds of requests, from those that are shed last to those that are shed first.
const LADDER: [(&str, &str); 6] = [
    ("GET", "/critical/x"),
    ("POST", "/x"),
    ("GET", "/x"),
    ("POST", "/bulk/x"),
    ("GET", "/bulk/x"),
    ("POST", "/tests/x"),
];

/// Asks for one of each kind, in the order of the ladder; which of them were shed.
async fn shed_of_the_ladder(caller: &mut Caller) -> [bool; 6] {
    let mut shed = [false; 6];
    for (at, (method, path)) in LADDER.iter().enumerate() {
        caller.send(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")).await;
        let answer = caller.answer().await;
        shed[at] = answer.status == 503;
        assert!(shed[at] || answer.status == 200, "{path}: {answer:?}");
        assert!(!shed[at] || answer.body.contains("\"code\":\"overload\""), "{path}: {answer:?}");
    }
    shed
}

/// While workers are busy, shedding only grows. So whatever is shed, all that is asked for after it, which is of lower bands,
/// is shed, too.
#[tokio::test]
async fn busy_workers_shed_tests_then_reads_then_writes_and_critical_requests_last() {
    let app = App::start().await;
    let tests = "  - { path: /tests/*, upstream: api, priority: test }\n";
    let shed = "max_in_flight: 40, shed: { good: 40%, bad: 50%, wait: 1s, ramp: 4s }";
    let routes = routes(&app, shed).replace("routes:\n", &format!("routes:\n{tests}"));
    let rig = Rig::routed(NO_RULES, &routes);
    let mut busy = Vec::new();
    for _ in 0..32 {
        busy.push(ask(&rig, "/hold").await);
    }
    let mut held = 0;
    until(async || {
        held += app.seen().len();
        held == busy.len()
    })
    .await;
    let mut caller = rig.connect().await;
    assert_eq!(shed_of_the_ladder(&mut caller).await, [false; 6], "nothing is shed before `wait`");
    let mut rounds: Vec<[bool; 6]> = Vec::new();
    until(async || {
        let shed = shed_of_the_ladder(&mut caller).await;
        assert!(shed.is_sorted(), "from the lowest band on: {shed:?}");
        rounds.push(shed);
        shed[0]
    })
    .await;
    rounds.dedup();
    assert!(rounds.len() > 2, "slowly: {rounds:?}");
    assert!(outcome(&rig, "utilisation").await > 0);
    app.released.send_replace(1);
    for mut caller in busy {
        assert_eq!(caller.answer().await.status, 200, "what is under way is not shed");
    }
    until(async || shed_of_the_ladder(&mut caller).await == [false; 6]).await;
}

/// A server that can do so much and refuses the rest.
struct Refusing {
    url: String,
    room: Arc<AtomicUsize>,
    seen: Arc<AtomicUsize>,
}

impl Refusing {
    async fn start() -> Refusing {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (room, seen): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
        let shared = (room.clone(), seen.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (room, seen) = shared.clone();
                let service = service_fn(move |_: Request<Incoming>| {
                    seen.fetch_add(1, Ordering::Relaxed);
                    let took = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(1));
                    let status = if took.is_ok() { 200 } else { 503 };
                    let response = Response::builder().status(status).body(Empty::<Bytes>::new());
                    async move { response }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Refusing { url, room, seen }
    }

    fn seen(&self) -> usize {
        self.seen.swap(0, Ordering::Relaxed)
    }
}

fn throttled(server: &Refusing, window: &str) -> Rig {
    let url = &server.url;
    let throttle = format!("throttle: {{ k: 2, window: {window} }}");
    let routes = format!("upstreams: {{ api: {{ servers: {url}, {throttle} }} }}\nroutes: [{{ upstream: api }}]\n");
    Rig::routed(NO_RULES, &routes)
}

/// K = 2: about twice as many calls as are accepted reach an upstream that refuses the rest.
#[tokio::test]
async fn an_upstream_that_refuses_gets_about_twice_what_it_accepts() {
    const ROUNDS: usize = 120;
    const ROUND: usize = 20;
    const ROOM: usize = 3;
    let server = Refusing::start().await;
    let rig = throttled(&server, "1h");
    let mut caller = rig.connect().await;
    let mut refused = 0;
    for round in 0..ROUNDS {
        if round == ROUNDS / 2 {
            server.seen();
            refused = 0;
        }
        server.room.store(ROOM, Ordering::Relaxed);
        for _ in 0..ROUND {
            caller.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
            refused += usize::from(caller.answer().await.status == 503);
        }
    }
    let (sent, asked) = (server.seen(), ROUNDS / 2 * ROUND);
    let accepted = asked - refused;
    // It balances where twice what was accepted is what was sent; far from chance on either side.
    assert!(sent * 2 > accepted * 3 && sent < accepted * 3, "{asked} asked, {sent} sent, {accepted} accepted");
    assert!(outcome(&rig, "throttled").await > 0);
}

#[tokio::test]
async fn an_upstream_that_accepts_again_gets_everything_again() {
    let server = Refusing::start().await;
    let rig = throttled(&server, "1s");
    let mut caller = rig.connect().await;
    let mut is_served = async || {
        caller.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        caller.answer().await.status == 200
    };
    for _ in 0..100 {
        assert!(!is_served().await);
    }
    server.room.store(usize::MAX, Ordering::Relaxed);
    let mut row = 0;
    until(async || {
        row = if is_served().await { row + 1 } else { 0 };
        row == 30
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_only_refuses_gets_a_twentieth_as_probes() {
    let server = Refusing::start().await;
    let rig = throttled(&server, "1h");
    let mut caller = rig.connect().await;
    for _ in 0..1_000 {
        caller.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let answer = caller.answer().await;
        assert_eq!(answer.status, 503);
        // The upstream's own refusal has no body; that of the gateway says why.
        assert!(answer.body.is_empty() || answer.body.contains("\"code\":\"overload\""), "{answer:?}");
    }
    let sent = server.seen();
    assert!((10..=150).contains(&sent), "about fifty of a thousand, and the first few: {sent}");
    assert_eq!(outcome(&rig, "throttled").await as usize, 1_000 - sent);
}

/// A queue that stands is no burst: CoDel sheds what waits in it, long before its maximum.
#[tokio::test]
async fn codel_sheds_what_waits_in_a_queue_that_stands() {
    let app = App::start().await;
    let options = "concurrency: 1, queue: { max: 10, max_wait: 1m, overload: codel, target: 5ms, interval: 100ms }";
    let rig = Rig::routed(NO_RULES, &routes(&app, options));
    let start = Instant::now();
    let mut first = occupy(&rig, &app).await;
    let mut callers = Vec::new();
    for _ in 0..5 {
        callers.push(ask(&rig, "/x").await);
    }
    for mut caller in callers {
        let answer = caller.answer().await; // within the patience of tests, which is less than `max_wait`
        assert_eq!(answer.status, 503);
        assert!(answer.body.contains("\"code\":\"overload\"") && answer.field("Retry-After").is_some(), "{answer:?}");
    }
    assert!(start.elapsed() >= Duration::from_millis(100), "a burst may wait for an interval");
    assert_eq!(outcome(&rig, "stale").await, 5);
    app.released.send_replace(1);
    assert_eq!(first.answer().await.status, 200);
    assert!(app.seen().is_empty(), "nothing of it reached the server");
    until(async || rig.get("/x").await.status == 200).await;
}

/// Whose caller is still there: the newest. Only in a queue that stands; before that, order is order.
#[tokio::test]
async fn lifo_serves_the_newest_first_when_the_queue_stands() {
    let app = App::start().await;
    let options = "concurrency: 1, queue: { max: 10, max_wait: 1m, overload: lifo, interval: 100ms }";
    let rig = Rig::routed(NO_RULES, &routes(&app, options));
    let mut first = occupy(&rig, &app).await;
    let mut callers = Vec::new();
    for at in 1..=4 {
        callers.push(ask(&rig, &format!("/{at}")).await);
        until(async || waiting(&rig).await == at).await;
    }
    let full = Instant::now();
    until(async || full.elapsed() > Duration::from_millis(100)).await;
    app.released.send_replace(1);
    assert_eq!(first.answer().await.status, 200);
    for caller in &mut callers {
        assert_eq!(caller.answer().await.status, 200);
    }
    let seen = app.seen();
    let order: Vec<&str> = seen.iter().filter_map(|seen| seen.split(' ').nth(1)).collect();
    assert_eq!(order, ["/4", "/3", "/2", "/1"]);
}

/// Of two slots, one is the share that only critical requests may use.
#[tokio::test]
async fn a_reserved_share_is_left_to_critical_requests() {
    let app = App::start().await;
    let options = "concurrency: 2, queue: { max: 10, max_wait: 1m, overload: fifo }, shed: { reserved: 50% }";
    let rig = Rig::routed(NO_RULES, &routes(&app, options));
    let mut first = occupy(&rig, &app).await;
    let mut second = ask(&rig, "/x").await;
    until(async || waiting(&rig).await == 1).await;
    assert_eq!(rig.get("/critical/x").await.status, 200, "at once, though another waits");
    assert_eq!(waiting(&rig).await, 1);
    app.released.send_replace(1);
    for caller in [&mut first, &mut second] {
        assert_eq!(caller.answer().await.status, 200);
    }
}

/// Row F50: a server that becomes slow is asked for less, without any setting that knows how fast it is.
#[tokio::test]
async fn f50_the_adaptive_limit_shrinks_when_the_upstream_gets_slow() {
    const LIMIT: &str = "tollgate_upstream_limit{upstream=\"api\"}";
    let app = App::start().await;
    let slow = FaultProxy::start(app.address.port());
    let routes = format!(
        "upstreams: {{ api: {{ servers: \"http://127.0.0.1:{}\", concurrency: {{ algorithm: gradient, initial: 20, min: 2, max: \
         40 }}, queue: {{ max: 1000, max_wait: 1m, overload: fifo }} }} }}\nroutes: [{{ upstream: api }}]\n",
        slow.port()
    );
    let rig = Arc::new(Rig::routed(NO_RULES, &routes));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let rig = rig.clone();
        callers.spawn(async move {
            let mut caller = rig.connect().await;
            loop {
                caller.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
                assert_eq!(caller.answer().await.status, 200, "all of them have a place");
            }
        });
    }
    until(async || figure(&rig, LIMIT).await >= 15).await;
    slow.set_only(Direction::Replies, LinkMode::Delay(Duration::from_millis(500)));
    until(async || figure(&rig, LIMIT).await <= 6).await;
    assert!(callers.try_join_next().is_none(), "no caller was shed");
}

/// After its pause one probe at a time is let through; as many as are wanted close it.
#[tokio::test]
async fn an_open_breaker_lets_one_probe_at_a_time_through_and_closes_after_those_that_succeed() {
    let app = App::start().await;
    let breaker = "breaker: { failures: 3, open: 50ms, open_max: 50ms, probes: 2 }";
    let rig = Rig::routed(NO_RULES, &routes(&app, breaker));
    for _ in 0..3 {
        assert_eq!(rig.get("/fails").await.status, 500);
    }
    app.seen();
    let mut probe = loop {
        let mut caller = ask(&rig, "/hold").await;
        tokio::select! {
            answer = caller.answer() => assert_eq!(answer.status, 503, "until the pause is over"),
            () = until(async || !app.seen().is_empty()) => break caller,
        }
    };
    for _ in 0..5 {
        let refused = rig.get("/x").await;
        assert!(refused.status == 503 && refused.body.contains("\"code\":\"no_server\""), "one at a time: {refused:?}");
    }
    assert!(app.seen().is_empty());
    app.released.send_replace(1);
    assert_eq!(probe.answer().await.status, 200);
    for _ in 0..20 {
        assert_eq!(rig.get("/x").await.status, 200, "another probe, and then it is closed");
    }
    assert_eq!(figure(&rig, "tollgate_upstream_breaker_open{upstream=\"api\"}").await, 0);
}

#[tokio::test]
async fn a_probe_that_fails_opens_the_breaker_again() {
    let app = App::start().await;
    let breaker = "breaker: { failures: 1, open: 50ms, open_max: 1h, probes: 1 }";
    let rig = Rig::routed(NO_RULES, &routes(&app, breaker));
    let (mut opened, start) = (0, Instant::now());
    until(async || {
        opened += usize::from(rig.get("/fails").await.status == 500);
        opened == 3
    })
    .await;
    assert_eq!(app.seen().len(), 3, "the breaker let nothing else through");
    assert!(
        start.elapsed() >= Duration::from_millis(50 + 100),
        "and each pause is twice as long: {:?}",
        start.elapsed()
    );
}

/// A gateway whose requests prefer a server by their path.
fn by_path(servers: &[&App]) -> Rig {
    let servers: Vec<String> = servers.iter().map(|app| app.url()).collect();
    let servers = servers.join(", ");
    let options = "balance: path, ejection: { after: 1, for: 1h, share: 50% }";
    Rig::routed(
        NO_RULES,
        &format!("upstreams: {{ api: {{ servers: [{servers}], {options} }} }}\nroutes: [{{ upstream: api }}]\n"),
    )
}

/// Which of the servers got each of many paths.
async fn placed(rig: &Rig, servers: &[&App]) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for number in 0..90 {
        let path = format!("/orders/{number}");
        let status = rig.get(&path).await.status;
        let found: Vec<usize> = (0..servers.len()).filter(|at| !servers[*at].seen().is_empty()).collect();
        if status == 200 {
            assert_eq!(found.len(), 1, "{path}");
            places.insert(path, found[0]);
        }
    }
    places
}

/// Every gateway finds the same server for a key, and when one leaves, only its keys move.
#[tokio::test]
async fn keys_keep_their_server_when_another_one_leaves() {
    let apps = [App::start().await, App::start().await, App::start().await];
    let [one, two, three] = &apps;
    let all = [one, two, three];
    let rig = by_path(&all);
    let before = placed(&rig, &all).await;
    assert_eq!(before.len(), 90);
    for at in 0..3 {
        let share = before.values().filter(|server| **server == at).count();
        assert!((10..=50).contains(&share), "about thirty each: {share}");
    }
    assert_eq!(placed(&by_path(&all), &all).await, before, "at another gateway");
    let fewer = placed(&by_path(&[three, one]), &all).await;
    for (path, server) in &before {
        assert!(*server == 1 || fewer[path] == *server, "{path} was not that of the server that left");
        assert_ne!(fewer[path], 1);
    }
    let moved: Vec<usize> = before.iter().filter(|(_, server)| **server == 1).map(|(path, _)| fewer[path]).collect();
    assert!(moved.contains(&0) && moved.contains(&2), "to all others: {moved:?}");
}

/// The same while it runs: a server that dies loses its keys, and no other does.
#[tokio::test]
async fn keys_of_a_server_that_dies_move_and_no_others() {
    let (one, two, three) = (App::start().await, App::start().await, App::start().await);
    let rig = by_path(&[&one, &two, &three]);
    let before = placed(&rig, &[&one, &two, &three]).await;
    drop(two);
    let others = [&one, &three];
    placed(&rig, &others).await; // the first of its keys fails, and leaves it out
    let after = placed(&rig, &others).await;
    assert_eq!(after.len(), 90, "every key has a server");
    for (path, server) in before {
        let wanted = [Some(0), None, Some(1)][server];
        assert!(wanted.is_none_or(|wanted| after[&path] == wanted), "{path}");
    }
}
