//! `tollgate serve` as a process: how it starts, what it refuses to start with, signals, and limits of the system.

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
use tokio::time::{Instant, sleep, timeout};

/// Whatever is awaited comes within this time, or the test fails.
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

    /// Starts it, and reads from its first line where it listens.
    fn run(command: &mut Command) -> Served {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let at = where_it_listens(&mut BufReader::new(child.stdout.take().unwrap()));
        Served { child, at }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// How it ended.
    async fn ended(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "it does not end");
            sleep(ms(10)).await;
        }
    }

    /// Memory that is resident, in KiB.
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

/// What the first line says; nowhere, of a Unix domain socket.
fn where_it_listens(stdout: &mut impl BufRead) -> SocketAddr {
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    let at = first.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said {first:?}"));
    at.strip_prefix("http://").map_or(SocketAddr::from(([0; 4], 0)), |at| at.parse().unwrap())
}

/// One of the addresses of this machine.
fn source(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 2, last))
}

async fn connect(source: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(source, 0))?;
    timeout(PATIENCE, socket.connect(to)).await.expect("waited in vain")
}

/// Sends, and reads one answer: its head and its body.
async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    answer(stream).await
}

async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut text = Vec::new();
    loop {
        let said = String::from_utf8_lossy(&text).to_ascii_lowercase();
        if let Some((head, body)) = said.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map(|text| text.parse());
            if body.len() >= length.unwrap_or(Ok(0)).unwrap() {
                return Ok(said);
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

/// SIGTERM: balancers learn of it while everybody is still served. A person at a terminal does not wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serves_on_for_a_while_after_sigterm_and_ends_at_once_after_sigint() {
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
            let since = Instant::now();
            while ask(&mut open, READY).await.unwrap().contains(" 200 ") {
                assert!(since.elapsed() < PATIENCE, "it does not say that it goes");
                sleep(ms(5)).await;
            }
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
async fn a_signal_under_load_ends_it_after_every_answer() {
    let dir = Dir::new("serve-load");
    dir.write("rules.yaml", RULES);
    let mut served = Served::start(&dir, &["--http", "127.0.0.1:0", "--rules", "rules.yaml"]);
    let answered = Arc::new(AtomicUsize::new(0));
    let load: Vec<_> = (0..32).map(|_| tokio::spawn(ask_until_told(served.at, answered.clone()))).collect();
    while answered.load(Ordering::Relaxed) < 2000 {
        sleep(ms(1)).await;
    }
    served.signal(Signal::TERM);
    for caller in load {
        caller.await.unwrap().expect("an answer to every request");
    }
    assert_eq!(served.ended().await.code(), Some(0));
}

/// One request after the other, until an answer says that it is the last.
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

/// Connections that the process has not taken yet when the signal comes are its guests all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_connected_before_the_signal_is_answered() {
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
async fn requests_in_flight_hold_the_end_up_until_the_second_signal() {
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
            break ready; // until then the signal was on its way
        }
    };
    // It may also have come between the answer and its last field, which then says that it is the last.
    let is_told = ready.starts_with("http/1.1 503 ") && ready.contains("draining");
    assert!(is_told || ready.contains("connection: close"), "{ready}");
    assert!(served.child.try_wait().unwrap().is_none(), "a request is still on its way");
    let since = Instant::now();
    while served.child.try_wait().unwrap().is_none() && since.elapsed() < PATIENCE {
        served.signal(Signal::TERM); // one that comes right behind the first is taken for its echo
        sleep(ms(100)).await;
    }
    assert_ne!(served.ended().await.code(), Some(0), "this end was not a clean one");
    assert!(since.elapsed() < ms(5000), "{:?}", since.elapsed());
}

/// A wrapper passes on a signal that the whole group had already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_signal_twice_is_one() {
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
async fn a_storm_of_hang_ups_changes_nothing_for_callers() {
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
async fn a_unix_socket_serves_goes_and_is_taken_over_from_the_dead() {
    let dir = Dir::new("serve-unix");
    let listen = ["--http", "unix:tollgate.sock"];
    let mut served = Served::start(&dir, &listen);
    let path = dir.path("tollgate.sock");
    let mut stream = UnixStream::connect(&path).await.unwrap();
    assert!(ask(&mut stream, CHECK).await.unwrap().starts_with("http/1.1 200 "));
    let (code, said) = refused(&dir, &[&listen[..], &["--admin", "off"]].concat());
    assert!(code == Some(2) && said.contains("another process listens there"), "{said}");
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
    let (code, said) = refused(&dir, &[&listen[..], &["--admin", "off"]].concat());
    assert!(code == Some(2) && said.contains("no socket"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test]
async fn what_it_cannot_start_with_is_said_clearly() {
    let dir = Dir::new("serve-refuses");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = refused(&dir, &["--http", &address]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&address) && said.contains("in use") && said.contains("--http"), "{said}");

    dir.write("broken.yaml", "rules:\n  - name: x\n    limit: { requests: many, window: 1s }\n");
    let (code, said) = refused(&dir, &["--http", "127.0.0.1:0", "--rules", "broken.yaml"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("broken.yaml:3:"), "{said}");
    let (code, said) = refused(&dir, &["--http", "127.0.0.1:0", "--rules", "nowhere.yaml"]);
    assert!(code == Some(2) && said.contains("nowhere.yaml"), "{said}");

    let (code, said) = refused(&dir, &["--http", "0.0.0.0:0"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("token"), "{said}");
}

/// F64: a decision log that nobody reads is full soon. Lines are dropped, callers are not kept waiting, and the end comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_stuck_holds_nobody_up() {
    let dir = Dir::new("serve-stuck");
    dir.write("rules.yaml", RULES);
    let mut command = dir.tollgate();
    command.args(["serve", "--admin", "off", "--http", "127.0.0.1:0", "--rules", "rules.yaml", "--decision-log", "-"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()); // open until the end, and not read
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

/// F41: no descriptors left. Who is in is served, who knocks is turned away, and when somebody leaves there is room again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_out_of_descriptors_turns_callers_away_and_passes() {
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
            Err(_) => turned_away += 1, // closed before it could be told
        }
    }
    assert!(guests.len() >= 64, "{} guests of 128 descriptors", guests.len());
    assert!(turned_away >= 300 - 128, "{turned_away} turned away");
    assert!(ask(&mut first, CHECK).await.unwrap().starts_with("http/1.1 200 "), "who is in is served");
    guests.clear();
    let since = Instant::now();
    loop {
        let mut stream = connect(source(3), served.at).await.unwrap();
        if ask(&mut stream, CHECK).await.is_ok_and(|answer| answer.starts_with("http/1.1 200 ")) {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "nobody is let in, though there is room");
        sleep(ms(20)).await;
    }
    drop(first);
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
}

/// F53, P23: ten thousand that do nothing, some of whom made their connection grow before. They cost at most 32 KiB each,
/// the others do not notice, and one more is told that there is no room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_connections_cost_little_and_nobody_notices() {
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
    let said = answer(&mut one_more).await.unwrap();
    assert!(said.starts_with("http/1.1 503 ") && said.contains("too_many_connections"), "{said}");
    drop((idle, active));
    served.signal(Signal::TERM);
    assert_eq!(served.ended().await.code(), Some(0));
}

/// What a server takes before anything is asked, beside the pages of the program itself. The allocator asks for no huge
/// pages: each would be two megabytes, most of them unused. Kernels that give them unasked are told not to.
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

/// F53 for gRPC, whether a connection was used or not. HTTP/2 has 28 KiB of buffers for each and touches few of them; huge
/// pages make all of that resident, so they are off here.
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
            before = served.resident_kib(); // what is needed once is there
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

/// Begins a connection over HTTP/2, and asks for the health if wanted: until the last frame of the answer is in.
async fn shake_hands(stream: &mut TcpStream, asks: bool) -> io::Result<()> {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    // POST, http, the path, the kind of content; then a message of nothing.
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
            (false, 4, 1) | (true, 1, 1) => return Ok(()), // our settings were taken, or the trailers are in
            _ => {}
        }
    }
}

/// What the nth connection asks before it idles: most nothing, some a check, some something large.
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

/// This process needs as many descriptors as the server.
fn raise_limit(wanted: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    assert!(
        maximum.is_none_or(|maximum| maximum >= wanted),
        "this test needs {wanted} open files; raise the hard limit: prlimit --nofile={wanted}:{wanted} --pid $$"
    );
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
