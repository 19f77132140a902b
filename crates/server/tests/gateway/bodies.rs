//! Back-pressure: what one end does not read, the other end cannot send, and the gateway holds little of what is between.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::app::App;
use crate::caller;
use crate::frames::{begin, get};
use crate::rig::{Caller, Rig, until, within};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";
/// The bytes of a body repeat with this period, so that a piece that is lost or sent twice shows.
const PERIOD: usize = 251;
const BLOCK: usize = 256 * PERIOD;
/// 64 MB: more than the buffers of the kernel hold.
const BLOCKS: u64 = 1_000;
const BODY: u64 = BLOCKS * BLOCK as u64;
/// More than the gateway may hold of one exchange, and than these tests take for themselves.
const HEAP_MAX: u64 = 2 << 20;

fn block() -> Vec<u8> {
    (0..BLOCK).map(|at| (at % PERIOD) as u8).collect()
}

/// A server of large bodies that counts what it could send. It reads uploads only once it is told to.
struct LargeApi {
    address: SocketAddr,
    state: LargeState,
    begin_reading: watch::Sender<bool>,
    task: JoinHandle<()>,
}

#[derive(Clone, Default)]
struct LargeState {
    sent: Arc<AtomicU64>,
    closed: Arc<AtomicU64>,
}

impl Drop for LargeApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LargeApi {
    fn start() -> LargeApi {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(64 << 10).unwrap();
        socket.set_send_buffer_size(64 << 10).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        let (begin_reading, receiver) = watch::channel(false);
        let state = LargeState::default();
        let task = tokio::spawn(serve_all(listener, state.clone(), receiver));
        LargeApi { address, state, begin_reading, task }
    }

    fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// Exchanges that ended before their body did.
    fn closed(&self) -> u64 {
        self.state.closed.load(Ordering::SeqCst)
    }

    /// A gateway in front of it, whose deadlines are longer than any test takes.
    fn rig(&self) -> Rig {
        let url = format!("http://{}", self.address);
        let timeouts = "timeouts: { first_byte: 10m, idle: 10m }";
        let routes = format!("upstreams: {{ api: {{ servers: {url}, {timeouts} }} }}\nroutes: [{{ upstream: api }}]\n");
        Rig::with(NO_RULES, |config, dir| {
            std::fs::write(dir.join("routes.yaml"), routes).unwrap();
            config.gateway.routes = Some(dir.join("routes.yaml"));
            config.net.write_timeout = std::time::Duration::from_secs(600);
            config.net.body_timeout = std::time::Duration::from_secs(600);
        })
    }
}

async fn serve_all(listener: TcpListener, state: LargeState, begin_reading: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (state, begin_reading) = (state.clone(), begin_reading.clone());
        connections.spawn(async move {
            if serve(stream, &state, begin_reading).await.is_err() {
                state.closed.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
}

async fn serve(
    mut stream: TcpStream,
    state: &LargeState,
    mut begin_reading: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let block = block();
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return Ok(()),
            }
        }
        if head.starts_with(b"GET /large ") {
            stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").as_bytes()).await?;
            for _ in 0..BLOCKS {
                stream.write_all(&block).await?;
                state.sent.fetch_add(block.len() as u64, Ordering::SeqCst);
            }
            continue;
        }
        if head.starts_with(b"POST ") {
            let _ = begin_reading.wait_for(|begun| *begun).await;
            read_body(&mut stream).await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await?;
    }
}

/// Reads a body to its end, and checks every byte of it.
async fn read_body(stream: &mut TcpStream) {
    let (mut piece, expected) = (vec![0; BLOCK], block());
    for _ in 0..BLOCKS {
        stream.read_exact(&mut piece).await.unwrap();
        assert!(piece == expected, "a byte is not where it was");
    }
}

/// Waits until this count does not change any more, however often the gateway and the server have their turn. Fails if
/// everything was taken.
async fn until_stalled(rig: &Rig, mut count: impl FnMut() -> u64) {
    let (mut before, mut rounds) = (0, 0);
    while rounds < 10 {
        for _ in 0..5 {
            assert_eq!(rig.get("/small").await.status, 200, "others are served meanwhile");
        }
        let now = count();
        assert!(now < BODY, "all of it was taken, and none of it read");
        rounds = if now == before { rounds + 1 } else { 0 };
        before = now;
    }
}

/// A connection whose buffers at this end are small.
async fn connect(rig: &Rig) -> Caller {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.set_send_buffer_size(64 << 10).unwrap();
    Caller::over(within(socket.connect(rig.gateway)).await.unwrap())
}

/// Runs on this thread alone, whose allocations are counted: the most that was allocated at once.
fn heap_of(runtime: &Runtime, exchange: impl Future<Output = ()>) -> u64 {
    allocation_counter::measure(|| runtime.block_on(exchange)).bytes_max
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_caller_that_does_not_read_stalls_the_server_and_then_gets_every_byte() {
    let runtime = runtime();
    let (api, rig) = runtime.block_on(async {
        let api = LargeApi::start();
        let rig = api.rig();
        assert_eq!(rig.get("/warm").await.status, 200);
        (api, rig)
    });
    let heap = heap_of(&runtime, async {
        let mut caller = connect(&rig).await;
        caller.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
        until_stalled(&rig, || api.sent()).await;
        let mut first = Vec::new();
        while !first.ends_with(b"\r\n\r\n") {
            first.push(within(caller.stream.read_u8()).await.unwrap());
        }
        assert!(first.starts_with(b"HTTP/1.1 200 "));
        read_body(&mut caller.stream).await;
        assert_eq!(caller.get("/small", "").await.status, 200, "the connection serves the next request");
    });
    assert!(heap < HEAP_MAX, "{heap} bytes for a body of {BODY}");
}

#[test]
fn a_server_that_does_not_read_stalls_the_caller_and_then_gets_every_byte() {
    let runtime = runtime();
    let (api, rig) = runtime.block_on(async {
        let api = LargeApi::start();
        let rig = api.rig();
        assert_eq!(rig.get("/warm").await.status, 200);
        (api, rig)
    });
    let heap = heap_of(&runtime, async {
        let mut caller = connect(&rig).await;
        caller.send(&format!("POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY}\r\n\r\n")).await;
        let sent = AtomicU64::new(0);
        let (mut read, mut write) = caller.stream.split();
        let upload = async {
            let block = block();
            for _ in 0..BLOCKS {
                write.write_all(&block).await.unwrap();
                sent.fetch_add(block.len() as u64, Ordering::SeqCst);
            }
        };
        let watch = async {
            until_stalled(&rig, || sent.load(Ordering::SeqCst)).await;
            api.begin_reading.send_replace(true);
        };
        tokio::join!(upload, watch);
        let mut answer = [0; 12];
        within(read.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    });
    assert!(heap < HEAP_MAX, "{heap} bytes for a body of {BODY}");
}

/// A stream of HTTP/2 has a window: beyond it, nothing is asked of the server.
#[test]
fn a_window_that_is_not_opened_stalls_the_server_and_its_stream_ends_with_the_connection() {
    let runtime = runtime();
    let (api, rig) = runtime.block_on(async {
        let api = LargeApi::start();
        let rig = api.rig();
        assert_eq!(rig.get("/warm").await.status, 200);
        (api, rig)
    });
    let heap = heap_of(&runtime, async {
        let mut caller = caller::Caller::connect(rig.gateway).await;
        let request = [begin(&[]), get(0, "/large")].concat();
        caller.send(request).await.unwrap();
        until(async || api.sent() > 0).await;
        until_stalled(&rig, || api.sent()).await;
        drop(caller);
        until(async || api.closed() == 1).await;
    });
    assert!(heap < HEAP_MAX, "{heap} bytes for a body of {BODY}");
}

/// Four bodies of 64 KiB may be on their way.
fn cramped(app: &App) -> Rig {
    Rig::with(NO_RULES, |config, _| {
        config.gateway.upstream = vec![app.url()];
        config.net.max_in_transit = 256 << 10;
    })
}

/// Takes all the room: streams that wait for the server.
async fn fill(app: &App, rig: &Rig) -> Vec<Caller> {
    let mut holders = Vec::new();
    for _ in 0..4 {
        let mut caller = rig.connect().await;
        caller.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(caller.head().await.starts_with("HTTP/1.1 200 "));
        holders.push(caller);
    }
    app.seen();
    holders
}

#[tokio::test]
async fn what_finds_no_room_in_transit_is_503_and_passes_once_there_is_some() {
    let app = App::start().await;
    let rig = cramped(&app);
    let mut holders = fill(&app, &rig).await;
    for _ in 0..3 {
        let refused = rig.get("/x").await;
        assert_eq!((refused.status, refused.field("Retry-After")), (503, Some("1")));
        assert!(refused.body.contains("\"code\":\"no_room\""), "{}", refused.body);
    }
    app.released.send_replace(3);
    for caller in &mut holders {
        assert!(caller.until("0\r\n\r\n").await.contains("data: 3"), "those that have room keep it");
    }
    until(async || rig.get("/x").await.status == 200).await;
}

/// The caller did nothing wrong, and neither did the server.
#[tokio::test]
async fn an_upload_that_finds_no_room_is_503_too() {
    let app = App::start().await;
    let rig = cramped(&app);
    let _holders = fill(&app, &rig).await;
    for framing in ["Content-Length: 100000", "Transfer-Encoding: chunked"] {
        let mut caller = rig.connect().await;
        caller.send(&format!("POST /echo HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n")).await;
        let refused = caller.answer().await;
        assert_eq!(refused.status, 503, "{framing}: {refused:?}");
        assert!(refused.body.contains("\"code\":\"no_room\""), "{framing}: {}", refused.body);
    }
    assert!(app.seen().is_empty(), "the server saw no whole request");
}
