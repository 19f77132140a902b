//! `tollgate serve` as a process: start, invalid settings, signals, and limits of the system.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use support::Dir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::{Instant, timeout};
use tollgate_lab::patience::{eventually, until_async};

/// Timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(30);

const RULES: &str = "rules:\n  - { name: only, key_by: client_key, limit: { requests: 1000000, window: 1d } }\n";
const CHECK: &str = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{\"client_key\":\"payer\"}";
const HALF: &str = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{";

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A running server; killed when dropped.
struct Served {
    child: Child,
    at: SocketAddr,
}

impl Served {
    fn start(dir: &Dir, arguments: &[&str]) -> Served {
        Served::run(dir.tollgate().arg("serve").args(["--admin", "off", "--drain-delay", "0s"]).args(arguments))
    }

    /// Starts the server, and reads its address from its first line.
    fn run(command: &mut Command) -> Served {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let at = where_it_listens(&mut BufReader::new(child.stdout.take().unwrap()));
        Served { child, at }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The exit status.
    async fn ended(&mut self) -> ExitStatus {
        eventually("its end", PATIENCE, async || self.child.try_wait().unwrap()).await
    }

    /// Resident memory in KiB.
    fn resident_kib(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in the first line; 0.0.0.0:0 for a Unix domain socket.
fn where_it_listens(stdout: &mut impl BufRead) -> SocketAddr {
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    let at = first.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("it printed {first:?}"));
    at.strip_prefix("http://").map_or(SocketAddr::from(([0; 4], 0)), |at| at.parse().unwrap())
}

/// A loopback address.
fn source(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 2, last))
}

async fn connect(source: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(source, 0))?;
    timeout(PATIENCE, socket.connect(to)).await.expect("waited in vain")
}

/// Sends a request, and reads one response.
async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    answer(stream).await
}

async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut text = Vec::new();
    loop {
        let message = String::from_utf8_lossy(&text).to_ascii_lowercase();
        if let Some((head, body)) = message.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map(|text| text.parse());
            if body.len() >= length.unwrap_or(Ok(0)).unwrap() {
                return Ok(message);
            }
        }
        if timeout(PATIENCE, stream.read_buf(&mut text)).await.expect("waited in vain")? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn refused(dir: &Dir, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = dir.tollgate().arg("serve").args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// After SIGTERM health checks fail while requests are still served, for load balancers; SIGINT stops at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serves_during_the_drain_after_sigterm_and_stops_at_once_after_sigint() {
    const READY: &str = "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const HEALTH: &str = "GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let dir = Dir::new("serve-delay");
    for (signal, serves_on) in [(Signal::TERM, true), (Signal::INT, false)] {
        let arguments = ["--admin", "off", "--http", "127.0.0.1:0", "--drain-delay", "1h"];
        let mut served = Served::run(dir.tollgate().arg("serve").args(arguments));
        let mut open = connect(source(1), served.at).await.unwrap();
        assert!(ask(&mut open, READY).await.unwrap().contains(" 200 "));
        served.signal(signal);
        if serves_on {
            let says_so = async || (!ask(&mut open, READY).await.unwrap().contains(" 200 ")).then_some(());
            eventually("an answer that it goes", PATIENCE, says_so).await;
            let mut new = connect(source(1), served.at).await.unwrap();
            assert!(ask(&mut new, HEALTH).await.unwrap().contains(" 500 "));
            assert!(ask(&mut new, CHECK).await.unwrap().contains(" 200 "), "it still answers");
            drop(served); // it would wait for an hour
        } else {
            drop(open);
            assert!(served.ended().await.success());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_under_load_stops_it_after_every_response() {
    let dir = Dir::new("serve-load");
    dir.write("rules.yaml", RULES);
    let mut served = Served::start(&dir, &["--http", "127.0.0.1:0", "--rules", "rules.yaml"]);
    let answered = Arc::new(AtomicUsize::new(0));
    let load: Vec<_> = (0..32).map(|_| tokio::spawn(ask_until_told(served.at, answered.clone()))).collect();
    let enough = async || (answered.load(Ordering::Relaxed) >= 2000).then_some(());
    eventually("two thousand answers", PATIENCE, enough).await;
    served.signal(Signal::TERM);
    for caller in load {
        caller.await.unwrap().expect("an answer to every request");
    }
    assert_eq!(served.ended().await.code(), Some(0));
}

/// Sends requests until a response announces the end of the connection.
async fn ask_until_told(at: SocketAddr, answered: Arc<AtomicUsize>) -> io::Result<()> {
    let mut stream = connect(at.ip(), at).await?;
    loop {
        let answer = ask(&mut stream, CHECK).await?;
        assert!(answer.starts_with("http/1.1 200 "), "{answer}");
        answered.fetch_add(1, Ordering::Relaxed);
        if answer.contains("\r\nconnection: close") {
            return Ok(());
        }
    }
}

/// Connections that are not accepted yet when the signal arrives are served as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_before_the_signal_are_answered() {
    let dir = Dir::new("serve-last");
    for _ in 0..30 {
        let mut served = Served::start(&dir, &["--http", "127.0.0.1:0"]);
        let mut stream = connect(served.at.ip(), served.at).await.unwrap();
        stream.write_all(CHECK.as_bytes()).await.unwrap();
        served.signal(Signal::TERM);
        let answer = answer(&mut stream).await.expect("an answer");
        assert!(answer.starts_with("http/1.1 200 "), "{answer}");
        drop(stream);
        assert_eq!(served.ended().await.code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_flight_delay_the_end_until_the_second_signal() {
    let dir = Dir::new("serve-twice");
    let mut served = Served::start(&dir, &["--http", "127.0.0.1:0"]);
    let mut slow = connect(served.at.ip(), served.at).await.unwrap();
    slow.write_all(HALF.as_bytes()).await.unwrap();
    let mut other = connect(served.at.ip(), served.at).await.unwrap();
    assert!(ask(&mut other, CHECK).await.is_ok());
    served.signal(Signal::TERM);
    let ready = loop {
        let ready = ask(&mut other, "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        if !ready.starts_with("http/1.1 200 ") || ready.contains("connection: close") {
            break ready; // the signal has arrived
        }
    };
    // The signal may also have arrived before the last header, which then announces the end.
    let is_told = ready.starts_with("http/1.1 503 ") && ready.contains("draining");
    assert!(is_told || ready.contains("connection: close"), "{ready}");
    assert!(served.child.try_wait().unwrap().is_none(), "a request is still on its way");
    let since = Instant::now();
    let is_over = async || {
        let is_over = served.child.try_wait().unwrap().is_some();
        if !is_over {
            served.signal(Signal::TERM); // a signal right after the first counts as its duplicate
        }
        is_over
    };
    until_async("its end", PATIENCE, is_over).await;
    assert_ne!(served.ended().await.code(), Some(0), "this end was not a clean one");
    assert!(since.elapsed() < ms(5000), "{:?}", since.elapsed());
}

/// A wrapper forwards a signal that the whole process group received already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_signal_is_ignored() {
    let dir = Dir::new("serve-echo");
    let mut served = Served::start(&dir, &["--http", "127.0.0.1:0"]);
    let mut waits = connect(served.at.ip(), served.at).await.unwrap();
    assert!(ask(&mut waits, CHECK).await.is_ok());
    served.signal(Signal::INT);
    served.signal(Signal::TERM);
    served.signal(Signal::INT);
    assert_eq!(served.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_request_is_cut_at_the_deadline() {
    let dir = Dir::new("serve-slow");
    let mut served = Served::start(&dir, &["--http", "127.0.0.1:0", "--drain-timeout", "1s"]);
    let mut slow = connect(served.at.ip(), served.at).await.unwrap();
    slow.write_all(HALF.as_bytes()).await.unwrap();
    let mut other = connect(served.at.ip(), served.at).await.unwrap();
    assert!(ask(&mut other, CHECK).await.is_ok());
    drop(other);
    let since = Instant::now();
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
    assert!(since.elapsed() >= ms(1000), "{:?}", since.elapsed());
    assert!(answer(&mut slow).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sighups_do_not_affect_clients() {
    let dir = Dir::new("serve-hang-up");
    dir.write("rules.yaml", RULES);
    let mut served = Served::start(&dir, &["--http", "127.0.0.1:0", "--rules", "rules.yaml"]);
    let mut stream = connect(served.at.ip(), served.at).await.unwrap();
    for number in 0..300 {
        served.signal(Signal::HUP);
        if number % 10 == 0 {
            dir.write("rules.yaml", format!("{RULES}# {number}\n"));
        }
        let answer = ask(&mut stream, CHECK).await.unwrap();
        assert!(answer.starts_with("http/1.1 200 ") && answer.contains("\"rule\":\"only\""), "{answer}");
    }
    drop(stream);
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unix_socket_is_served_removed_and_taken_over() {
    let dir = Dir::new("serve-unix");
    let listen = ["--http", "unix:tollgate.sock"];
    let mut served = Served::start(&dir, &listen);
    let path = dir.path("tollgate.sock");
    let mut stream = UnixStream::connect(&path).await.unwrap();
    assert!(ask(&mut stream, CHECK).await.unwrap().starts_with("http/1.1 200 "));
    let (code, message) = refused(&dir, &[&listen[..], &["--admin", "off"]].concat());
    assert!(code == Some(2) && message.contains("another process listens there"), "{message}");
    served.child.kill().unwrap();
    served.ended().await;
    assert!(path.exists(), "a killed process tidies nothing");

    let mut served = Served::start(&dir, &listen);
    let mut stream = UnixStream::connect(&path).await.unwrap();
    assert!(ask(&mut stream, CHECK).await.unwrap().starts_with("http/1.1 200 "));
    drop(stream);
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
    assert!(!path.exists());
    dir.write("tollgate.sock", "precious");
    let (code, message) = refused(&dir, &[&listen[..], &["--admin", "off"]].concat());
    assert!(code == Some(2) && message.contains("no socket"), "{message}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test]
async fn start_errors_are_clear() {
    let dir = Dir::new("serve-refuses");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, message) = refused(&dir, &["--http", &address]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains(&address) && message.contains("in use") && message.contains("--http"), "{message}");

    dir.write("broken.yaml", "rules:\n  - name: x\n    limit: { requests: many, window: 1s }\n");
    let (code, message) = refused(&dir, &["--http", "127.0.0.1:0", "--rules", "broken.yaml"]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("broken.yaml:3:"), "{message}");
    let (code, message) = refused(&dir, &["--http", "127.0.0.1:0", "--rules", "nowhere.yaml"]);
    assert!(code == Some(2) && message.contains("nowhere.yaml"), "{message}");

    let (code, message) = refused(&dir, &["--http", "0.0.0.0:0"]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("token"), "{message}");
}

/// F64: a decision log that is not read fills up. Lines are dropped, clients do not wait, and the server stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_log_does_not_delay_requests() {
    let dir = Dir::new("serve-stuck");
    dir.write("rules.yaml", RULES);
    let mut command = dir.tollgate();
    command.args(["serve", "--admin", "off", "--http", "127.0.0.1:0", "--rules", "rules.yaml", "--decision-log", "-"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()); // open and not read until the end
    let at = where_it_listens(&mut stdout);
    let mut served = Served { child, at };
    let mut stream = connect(at.ip(), at).await.unwrap();
    for _ in 0..5000 {
        let answer = ask(&mut stream, CHECK).await.unwrap();
        assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    }
    drop(stream);
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
}

/// F41: out of file descriptors. Open connections are served, new ones are rejected, and accepted again later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_out_of_descriptors_rejects_new_connections_only() {
    let dir = Dir::new("serve-descriptors");
    let mut command = Command::new("sh");
    command.current_dir(dir.path("")).env_clear().args(["-c", "ulimit -n 128 && exec \"$0\" \"$@\""]);
    command.arg(env!("CARGO_BIN_EXE_tollgate")).args(["serve", "--admin", "off", "--http", "127.0.0.1:0"]);
    let mut served = Served::run(&mut command);
    let mut first = connect(source(1), served.at).await.unwrap();
    assert!(ask(&mut first, CHECK).await.is_ok());
    let mut guests = Vec::new();
    let mut turned_away = 0;
    for _ in 0..300 {
        let mut stream = connect(source(2), served.at).await.unwrap();
        match ask(&mut stream, CHECK).await {
            Ok(answer) if answer.starts_with("http/1.1 200 ") => guests.push(stream),
            Ok(answer) => {
                assert!(answer.starts_with("http/1.1 503 "), "{answer}");
                turned_away += 1;
            }
            Err(_) => turned_away += 1, // closed before the response
        }
    }
    assert!(guests.len() >= 64, "{} guests of 128 descriptors", guests.len());
    assert!(turned_away >= 300 - 128, "{turned_away} turned away");
    assert!(ask(&mut first, CHECK).await.unwrap().starts_with("http/1.1 200 "), "who is in is served");
    guests.clear();
    let is_accepted = async || {
        let mut stream = connect(source(3), served.at).await.unwrap();
        ask(&mut stream, CHECK).await.is_ok_and(|answer| answer.starts_with("http/1.1 200 "))
    };
    until_async("a connection is accepted, as there is room", PATIENCE, is_accepted).await;
    drop(first);
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
}

/// F53, P23: ten thousand idle connections, some of which grew their buffers before. They cost at most 32 KiB each, do
/// not affect others, and one more is rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_connections_cost_little() {
    const MANY: usize = 10_000;
    raise_limit(MANY as u64 + 300);
    let dir = Dir::new("serve-idle");
    dir.write("rules.yaml", RULES);
    let most = (MANY + 1).to_string();
    let mut served =
        Served::start(&dir, &["--http", "127.0.0.1:0", "--rules", "rules.yaml", "--max-connections", &most]);
    let mut active = connect(source(1), served.at).await.unwrap();
    assert!(ask(&mut active, CHECK).await.is_ok());
    let before = served.resident_kib();
    let mut idle = Vec::with_capacity(MANY);
    let mut slowest = Duration::ZERO;
    for number in 0..MANY {
        let mut stream = connect(source(10 + (number % 10) as u8), served.at).await.unwrap();
        if let Some(request) = request_before_idling(number) {
            assert!(ask(&mut stream, &request).await.unwrap().starts_with("http/1.1 200 "));
        }
        idle.push(stream);
        if number % 100 == 0 {
            let since = Instant::now();
            assert!(ask(&mut active, CHECK).await.unwrap().starts_with("http/1.1 200 "));
            slowest = slowest.max(since.elapsed());
        }
    }
    assert!(ask(&mut active, CHECK).await.unwrap().starts_with("http/1.1 200 "));
    let each = (served.resident_kib() - before) * 1024 / MANY;
    println!("{each} bytes of each idle connection; the slowest answer meanwhile took {slowest:?}");
    assert!(each <= 32 << 10, "{each} bytes of each idle connection");
    assert!(slowest < ms(2000), "{slowest:?}");
    let mut one_more = connect(source(2), served.at).await.unwrap();
    let message = answer(&mut one_more).await.unwrap();
    assert!(message.starts_with("http/1.1 503 ") && message.contains("too_many_connections"), "{message}");
    drop((idle, active));
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
}

/// Memory of a server before the first request, without the pages of the program. The allocator does not use huge
/// pages, of two megabytes each and mostly unused, and disables them where they are the default.
#[tokio::test]
async fn a_server_starts_small() {
    let dir = Dir::new("serve-small");
    let mut command = dir.tollgate();
    if fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").is_ok_and(|modes| modes.contains("[always]")) {
        command.env("MIMALLOC_ALLOW_THP", "0");
    }
    command.args(["serve", "--admin", "off", "--http", "127.0.0.1:0", "--drain-delay", "0s"]);
    let served = Served::run(&mut command);
    let memory = fs::read_to_string(format!("/proc/{}/smaps_rollup", served.child.id())).unwrap();
    let kib = |name: &str| -> usize {
        let line = memory.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    assert_eq!(kib("AnonHugePages:"), 0, "{memory}");
    assert!(kib("Anonymous:") <= 8 << 10, "{memory}");
}

/// F53 for gRPC, for used and unused connections. HTTP/2 allocates 28 KiB of buffers for each and touches few of them;
/// huge pages would make them all resident, so they are off here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_grpc_connections_cost_little() {
    const MANY: usize = 3_000;
    raise_limit(MANY as u64 + 300);
    let dir = Dir::new("serve-idle-grpc");
    let grpc = SocketAddr::from(([127, 0, 0, 1], tollgate_lab::ports::free()));
    let mut command = dir.tollgate();
    command.env("MIMALLOC_ALLOW_THP", "0").args(["serve", "--admin", "off", "--http", "127.0.0.1:0"]);
    command.args(["--grpc", &grpc.to_string(), "--idle-timeout", "1h", "--drain-delay", "0s"]);
    let mut served = Served::run(&mut command);
    let mut idle = Vec::with_capacity(MANY);
    let mut before = 0;
    for number in 0..MANY + 100 {
        if number == 100 {
            before = served.resident_kib(); // after one-time allocations
        }
        let mut stream = connect(source(10 + (number % 10) as u8), grpc).await.unwrap();
        shake_hands(&mut stream, number % 2 == 0).await.unwrap();
        idle.push(stream);
    }
    let each = (served.resident_kib() - before) * 1024 / MANY;
    println!("{each} bytes of each idle connection");
    assert!(each <= 32 << 10, "{each} bytes of each idle connection");
    drop(idle);
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
}

/// Opens an HTTP/2 connection, and optionally calls the health service and reads its whole response.
async fn shake_hands(stream: &mut TcpStream, asks: bool) -> io::Result<()> {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    // Headers: POST, http, the path, the content type; then an empty message.
    const HEAD: &[u8] = b"\x83\x86\x04\x1c/grpc.health.v1.Health/Check\x0f\x10\x10application/grpc";
    const BODY: &[u8] = b"\0\0\x05\0\x01\0\0\0\x01\0\0\0\0\0";
    let mut sent = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SETTINGS].concat();
    if asks {
        sent.extend([0, 0, HEAD.len() as u8, 1, 4, 0, 0, 0, 1]);
        sent.extend([HEAD, BODY].concat());
    }
    stream.write_all(&sent).await?;
    loop {
        let mut head = [0; 9];
        timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("waited in vain")?;
        let [_, high, low, kind, flags, ..] = head;
        let mut payload = vec![0; usize::from(high) << 8 | usize::from(low)];
        timeout(PATIENCE, stream.read_exact(&mut payload)).await.expect("waited in vain")?;
        match (asks, kind, flags & 1) {
            (false, 4, 1) | (true, 1, 1) => return Ok(()), // settings acknowledged, or trailers received
            _ => {}
        }
    }
}

/// The request of the nth connection before it idles: most send none, some a check, some a large one.
fn request_before_idling(number: usize) -> Option<String> {
    let (body, spaces) = ("{\"client_key\":\"payer\"", " ".repeat(60 << 10));
    let chunked = |path: &str, body: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
        format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
    };
    match number % 20 {
        0 => Some(CHECK.to_owned()),
        1 => Some(chunked("/v1/check", &format!("{body}{spaces}}}"))),
        2 => {
            let body = format!("{body}{spaces}}}");
            Some(format!("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
        }
        3 => Some(chunked(
            "/v1/check/batch",
            &format!("{{\"requests\":[{}]}}", [format!("{body}}}").as_str(); 300].join(",")),
        )),
        _ => None,
    }
}

/// Raises the limit of file descriptors: this process needs as many as the server.
fn raise_limit(wanted: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    assert!(
        maximum.is_none_or(|maximum| maximum >= wanted),
        "this test needs {wanted} open files; raise the hard limit: prlimit --nofile={wanted}:{wanted} --pid $$"
    );
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
