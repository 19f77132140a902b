//! Every way in which a request can end, in random order and many at once: afterwards no slot is taken and nothing is in
//! flight. `script/slots` runs many more than the test does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::app::App;
use crate::forwarding::in_flight;
use crate::rig::{Caller, Rig, until, within};
use crate::upstreams::closed_port;

/// Slots of the rule: more than workers, and each worker has one request at a time.
const SLOTS: usize = 64;
const WORKERS: usize = 16;
/// Requests of the test.
const ENDS: usize = 3_000;
/// Another number of them, for a longer run.
const ENDS_VARIABLE: &str = "TOLLGATE_SLOT_ENDS";

const RULES: &str = "rules:
  - { name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 64, slot_ttl: 1d } }
  - { name: points, key_by: ip, meter: points, limit: { amount: 1000000000, window: 7d, algorithm: fixed_window } }
  - { name: refused, match: { endpoint: /limited }, limit: { requests: 1, window: 7d } }
";

/// What a caller does, and the first line of what it gets; none if it does not wait for it.
const ENDS_OF_GETS: &[(&str, &[u16])] = &[
    ("/ok", &[200]),
    ("/empty", &[204]),
    ("/trailers", &[200]),
    ("/hold", &[200]),
    ("/fails", &[500]),
    ("/hangup", &[502]),
    ("/garbage", &[502]),
    ("/both", &[502]),
    ("/lengths", &[502]),
    ("/huge-head", &[502]),
    ("/cut", &[200, 0]), // 0: the end came before the head was sent
    ("/silent", &[504]),
    ("/stream", &[200, 0]), // pauses for longer than it may
    ("/early", &[413]),
    ("/limited", &[200, 429]),
    ("/bad%2Fpath", &[400]),
    ("/dead/x", &[502, 503]),
    ("/full/silent", &[503, 504]),
    ("/queue/silent", &[503, 504]),
    ("/total/stream", &[200, 0]),
    ("/priced/priced", &[200]),
    ("/priced/cut", &[200, 0]),
    ("/priced/hangup", &[502]),
];

fn routes(app: &App, dead: &str) -> String {
    let url = app.url();
    let quick = "ejection: { after: 0 }, timeouts: { first_byte: 20ms, idle: 20ms }";
    format!(
        "upstreams:
  api: {{ servers: {url}, {quick} }}
  dead: {{ servers: {dead}, breaker: {{ failures: 20, open: 50ms, open_max: 50ms }} }}
  full: {{ servers: {url}, {quick}, max_in_flight: 1 }}
  queue: {{ servers: {url}, {quick}, concurrency: 1, queue: {{ max: 1, max_wait: 100ms }} }}
  total: {{ servers: {url}, timeouts: {{ total: 20ms }} }}
routes:
  - {{ path: /dead/*, upstream: dead }}
  - {{ path: /full/*, upstream: full, strip_prefix: /full }}
  - {{ path: /queue/*, upstream: queue, strip_prefix: /queue }}
  - {{ path: /total/*, upstream: total, strip_prefix: /total }}
  - {{ path: /priced/*, upstream: api, strip_prefix: /priced, cost: {{ points: {{ response: {{ header: x-points }}, estimate: 10 }} }} }}
  - {{ path: /graphql, upstream: api, cost: {{ points: {{ request: graphql, max: 100 }} }} }}
  - {{ upstream: api, max_body: 8 }}
"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_way_to_end_leaks_a_slot() {
    let ends = std::env::var(ENDS_VARIABLE).map_or(ENDS, |ends| ends.parse().expect("a number of requests"));
    let app = App::start().await;
    app.released.send_replace(1);
    let (_socket, dead) = closed_port();
    let rig = Arc::new(Rig::routed(RULES, &routes(&app, &dead)));
    let (begun, counts) = (Arc::new(AtomicUsize::new(0)), Arc::new(Counts::default()));
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (rig, begun, counts) = (rig.clone(), begun.clone(), counts.clone());
        workers.spawn(async move {
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ worker as u64);
            while begun.fetch_add(1, Ordering::Relaxed) < ends {
                end(&rig, &mut random, &counts).await;
            }
        });
    }
    while let Some(ended) = within_minutes(workers.join_next()).await {
        ended.unwrap();
        app.seen();
    }
    let all_free = (SLOTS - 1).to_string(); // but the one of the request that asks
    until(async || {
        rig.get("/ok").await.field("Ratelimit").is_some_and(|left| left.contains(&format!("\"slots\";r={all_free}")))
    })
    .await;
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
    println!("{ends} requests, slots still taken: 0; what callers saw: {}", counts.report());
    assert!(counts.kinds() >= 10, "{}", counts.report());
}

async fn within_minutes<T>(awaited: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(3 * 3600), awaited).await.expect("in time")
}

/// One request, to one end.
async fn end(rig: &Rig, random: &mut Random, counts: &Counts) {
    let gets = ENDS_OF_GETS.len() as u64;
    match random.below(gets + 12) {
        number if number < gets => {
            let (path, expected) = ENDS_OF_GETS[number as usize];
            let mut caller = rig.connect().await;
            caller.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
            let status = status_of(&caller.rest().await);
            let is_late = status == 504; // on a busy machine anything can be
            assert!(expected.contains(&status) || is_late, "{path}: {status}");
            counts.saw(status);
        }
        number => counts.saw(other_end(rig, random, number - gets).await),
    }
}

/// Ends that are more than a GET and its answer. Returns the status that the caller saw; 0 if it did not wait for one.
async fn other_end(rig: &Rig, random: &mut Random, number: u64) -> u16 {
    let mut caller = rig.connect().await;
    let post = "POST /echo HTTP/1.1\r\nHost: a\r\n";
    let upgrade = "Host: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    match number {
        // The caller hangs up: in its head, behind it, in its body, before the answer, in the answer.
        0 => caller.send("GET /ok HTTP/1.1\r\nHo").await,
        1 => caller.send("GET /ok HTTP/1.1\r\nHost: a\r\n\r\n").await,
        2 => caller.send(&format!("{post}Content-Length: 8\r\n\r\nhal")).await,
        3 => {
            caller.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n").await;
            for _ in 0..random.below(200) {
                tokio::task::yield_now().await;
            }
        }
        4 => {
            caller.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n").await;
            within(caller.stream.readable()).await.unwrap(); // or cut before its head, on a busy machine
        }
        5 => {
            caller.stream.set_zero_linger().unwrap(); // with a reset
            caller.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n").await;
        }
        // Bodies that are too long, broken, or fine.
        6 => {
            caller.send(&format!("{post}Transfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n")).await;
            return expected(&caller.head().await, &[413]);
        }
        7 => {
            caller.send(&format!("{post}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZZ\r\n")).await;
            return expected(&caller.head().await, &[400]);
        }
        8 => {
            caller
                .send("POST /graphql HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\n{bad")
                .await;
            return expected(&caller.rest().await, &[400]);
        }
        // Tunnels, and one that is not agreed to.
        9 => {
            caller.send(&format!("GET /tunnel HTTP/1.1\r\n{upgrade}ping")).await;
            let head = caller.head().await;
            if random.below(2) == 0 {
                within(caller.stream.readable()).await.unwrap(); // the echo, or the end of a silent tunnel
            }
            if random.below(2) == 0 {
                caller.rest().await; // until it was silent for too long
            }
            return expected(&head, &[101]);
        }
        10 => {
            caller.send(&format!("GET /ok HTTP/1.1\r\n{upgrade}")).await;
            return expected(&beginning(&mut caller).await, &[200, 0]); // 0: a pause came before the head was sent
        }
        _ => return over_http2(rig, random).await,
    }
    0
}

/// The first bytes of an answer; none if the connection ends instead.
async fn beginning(caller: &mut Caller) -> String {
    let mut bytes = [0; 512];
    let read = within(caller.stream.read(&mut bytes)).await.unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// A stream of HTTP/2 that ends, or is reset by the caller.
async fn over_http2(rig: &Rig, random: &mut Random) -> u16 {
    let stream = within(TcpStream::connect(rig.gateway)).await.unwrap();
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = within(handshake).await.unwrap();
    let connection = tokio::spawn(connection);
    let path = ["ok", "silent", "stream", "fails", "hangup"][random.below(5) as usize];
    let request = http::Request::get(format!("http://a/{path}")).body(Empty::<Bytes>::new()).unwrap();
    let answer = sender.send_request(request);
    let status = match random.below(2) {
        0 => within(answer).await.unwrap().status().as_u16(),
        _ => {
            let yields = random.below(100);
            tokio::select! {
                biased;
                answered = answer => answered.unwrap().status().as_u16(),
                () = async { for _ in 0..yields { tokio::task::yield_now().await } } => 0, // RST_STREAM
            }
        }
    };
    if random.below(2) == 0 {
        drop(sender);
        let _ = within(connection).await; // GOAWAY, and what is under way ends
    } else {
        connection.abort();
    }
    status
}

fn status_of(answer: &str) -> u16 {
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default()
}

fn expected(answer: &str, statuses: &[u16]) -> u16 {
    let status = status_of(answer);
    assert!(statuses.contains(&status) || matches!(status, 408 | 504), "{statuses:?}: {answer}");
    status
}

/// What callers saw, by status.
#[derive(Default)]
struct Counts(std::sync::Mutex<std::collections::BTreeMap<u16, usize>>);

impl Counts {
    fn saw(&self, status: u16) {
        *self.0.lock().unwrap().entry(status).or_default() += 1;
    }

    fn kinds(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn report(&self) -> String {
        let counts = self.0.lock().unwrap();
        let shown = counts.iter().map(|(status, count)| match status {
            0 => format!("{count} hung up"),
            _ => format!("{count} x {status}"),
        });
        shown.collect::<Vec<String>>().join(", ")
    }
}

/// The same sequence in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}
