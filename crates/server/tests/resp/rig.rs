//! A server that speaks RESP, and its client.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate_config::Config;
use tollgate_core::{ManualClock, Time};
use tollgate_net::{Address, Drain};
use tollgate_server::Surface;
use tollgate_server::run::Server;
use tollgate_store::MonotonicClock;

/// Whatever is awaited comes within this time, or the test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One rule, for those who ask by it.
const RULES: &str = "rules: [{ name: hourly, key_by: client_key, limit: { requests: 10, window: 1h } }]\n";

pub struct Rig {
    pub address: Address,
    pub admin: SocketAddr,
    pub drain: Drain,
    pub hang_up: Arc<tokio::sync::Notify>,
    pub served: JoinHandle<usize>,
    pub dir: TempDir,
}

impl Rig {
    pub fn start() -> Rig {
        Rig::with(|_, _| {})
    }

    /// The same with other settings.
    pub fn with(change: impl FnOnce(&mut Config, &Path)) -> Rig {
        let (config, dir) = configured(change);
        Rig::run(Server::bind_on(Arc::new(MonotonicClock::new()), config, None).unwrap(), dir)
    }

    /// The same on a clock that the test moves.
    pub fn on_clock(change: impl FnOnce(&mut Config, &Path)) -> (Rig, ManualClock) {
        let clock = ManualClock::at(Time::from_secs(1_700_000_000));
        let (config, dir) = configured(change);
        (Rig::run(Server::bind_on(Arc::new(clock.clone()), config, None).unwrap(), dir), clock)
    }

    /// The same with any store.
    pub async fn open(change: impl FnOnce(&mut Config, &Path)) -> Rig {
        let (config, dir) = configured(change);
        Rig::run(Server::open(config, None).await.unwrap(), dir)
    }

    fn run(server: Server, dir: TempDir) -> Rig {
        let at = |wanted: Surface| server.addresses().into_iter().find(|(surface, _)| *surface == wanted).unwrap().1;
        let Address::Tcp(admin) = at(Surface::Admin) else { panic!("a port") };
        let (address, drain, hang_up) = (at(Surface::Resp), server.drain(), server.reload());
        Rig { address, admin, drain, hang_up, served: tokio::spawn(server.run()), dir }
    }

    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        let Address::Tcp(at) = self.address else { panic!("a port") };
        at
    }

    pub async fn caller(&self) -> Caller {
        let stream = TcpStream::connect(self.at()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Caller { stream }
    }

    /// Sends and compares, on a connection of its own.
    pub async fn says(&self, sent: &[u8], expected: &[u8]) {
        self.caller().await.says(sent, expected).await;
    }

    /// Somebody else is answered.
    pub async fn answers_others(&self) {
        self.says(b"PING\r\n", b"+PONG\r\n").await;
    }

    /// A metric with its labels, as the scrape has it; 0 if it is not there.
    pub async fn metric(&self, name: &str) -> f64 {
        let mut caller = Caller { stream: TcpStream::connect(self.admin).await.unwrap() };
        caller.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        let text = String::from_utf8(caller.rest().await.unwrap()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Ends it as a signal does; answers how many connections were cut.
    pub async fn end(self) -> usize {
        self.drain.begin();
        within(self.served).await.unwrap()
    }
}

fn configured(change: impl FnOnce(&mut Config, &Path)) -> (Config, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yaml");
    std::fs::write(&path, RULES).unwrap();
    let mut config = Config { rules: Some(path), ..Config::for_test() };
    config.resp.address = Some(Address::loopback(0));
    change(&mut config, dir.path());
    (config, dir)
}

/// A command as clients send it.
pub fn command(words: &[&str]) -> Vec<u8> {
    bytes(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>())
}

/// The same of any bytes.
pub fn bytes(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A reply of five integers.
pub fn five(numbers: [i64; 5]) -> Vec<u8> {
    let numbers = numbers.map(|number| format!(":{number}\r\n")).concat();
    format!("*5\r\n{numbers}").into_bytes()
}

pub struct Caller<S = TcpStream> {
    pub stream: S,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Caller<S> {
    pub async fn send(&mut self, sent: &[u8]) {
        self.try_send(sent).await.unwrap();
    }

    /// The same where the other end may have gone.
    pub async fn try_send(&mut self, sent: &[u8]) -> io::Result<()> {
        within(async {
            self.stream.write_all(sent).await?;
            self.stream.flush().await
        })
        .await
    }

    /// Sends and compares.
    #[track_caller]
    pub fn says(&mut self, sent: &[u8], expected: &[u8]) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            self.send(sent).await;
            let mut came = vec![0; expected.len()];
            let mut read = 0;
            while read < came.len() && came[..read] == expected[..read] {
                match within(self.stream.read(&mut came[read..])).await.unwrap() {
                    0 => break,
                    some => read += some,
                }
            }
            let (came, sent) = (came[..read].escape_ascii().to_string(), sent.get(..200).unwrap_or(sent));
            assert_eq!(came, expected.escape_ascii().to_string(), "to {} at {place}", sent.escape_ascii());
        }
    }

    /// The next reply, whole, however it is nested.
    pub async fn reply(&mut self) -> String {
        let mut out = Vec::new();
        let mut left = 1;
        while left > 0 {
            let begun = out.len();
            loop {
                out.push(within(self.stream.read_u8()).await.unwrap());
                if out.ends_with(b"\r\n") {
                    break;
                }
            }
            let line = String::from_utf8(out[begun..out.len() - 2].to_vec()).unwrap();
            let count = line.get(1..).and_then(|count| count.parse::<i64>().ok()).unwrap_or(0);
            left -= 1;
            match line.as_bytes()[0] {
                b'*' | b'~' => left += count.max(0),
                b'%' => left += 2 * count,
                b'$' if count >= 0 => {
                    let mut bulk = vec![0; count as usize + 2];
                    within(self.stream.read_exact(&mut bulk)).await.unwrap();
                    out.extend_from_slice(&bulk);
                }
                _ => {}
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Everything until the other end closes.
    pub async fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        within(self.stream.read_to_end(&mut out)).await?;
        Ok(out)
    }
}

/// Waits, but not for ever.
pub async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("waited in vain")
}
