//! A gateway on its own port, and its callers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate_config::Config;
use tollgate_net::{Address, Drain};
use tollgate_server::Surface;
use tollgate_server::run::Server;

/// Whatever is awaited comes within this time, or the test fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for what must come.
pub async fn within<T>(awaited: impl Future<Output = T>) -> T {
    timeout(PATIENCE, awaited).await.expect("in time")
}

/// Waits until something holds that no event tells of.
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    within(async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

pub struct Rig {
    pub gateway: SocketAddr,
    pub admin: SocketAddr,
    pub dir: TempDir,
    pub drain: Drain,
    served: JoinHandle<usize>,
}

impl Rig {
    /// A gateway in front of one server, with these rules.
    pub fn start(rules: &str, upstream: &str) -> Rig {
        Rig::with(rules, |config, _| config.gateway.upstream = vec![upstream.to_owned()])
    }

    /// A gateway with a routes file.
    pub fn routed(rules: &str, routes: &str) -> Rig {
        Rig::with(rules, |config, dir| {
            let path = dir.join("routes.yaml");
            std::fs::write(&path, routes).unwrap();
            config.gateway.routes = Some(path);
        })
    }

    pub fn with(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> Rig {
        let (config, dir) = configured(rules, change);
        Rig::run(Server::bind(config, None).expect("a server"), dir)
    }

    /// The same with a store that has to be opened.
    pub async fn open(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> Rig {
        let (config, dir) = configured(rules, change);
        Rig::run(Server::open(config, None).await.expect("a server"), dir)
    }

    fn run(server: Server, dir: TempDir) -> Rig {
        let address = |wanted: Surface| {
            let found = server.addresses().into_iter().find(|(surface, _)| *surface == wanted);
            match found {
                Some((_, Address::Tcp(address))) => address,
                other => panic!("no address of {wanted:?}: {other:?}"),
            }
        };
        let (gateway, admin) = (address(Surface::Gateway), address(Surface::Admin));
        let drain = server.drain();
        Rig { gateway, admin, dir, drain, served: tokio::spawn(server.run()) }
    }

    pub async fn connect(&self) -> Caller {
        Caller { stream: within(TcpStream::connect(self.gateway)).await.unwrap(), read: Vec::new() }
    }

    /// One GET on a connection of its own.
    pub async fn get(&self, path: &str) -> Answer {
        self.get_with(path, "").await
    }

    /// The same with more header fields, each with its line end.
    pub async fn get_with(&self, path: &str, fields: &str) -> Answer {
        let mut caller = self.connect().await;
        caller.send(&format!("GET {path} HTTP/1.1\r\nHost: api.example.com\r\n{fields}\r\n")).await;
        caller.answer().await
    }

    /// The page of metrics.
    pub async fn metrics(&self) -> String {
        let mut stream = within(TcpStream::connect(self.admin)).await.unwrap();
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin);
        within(stream.write_all(head.as_bytes())).await.unwrap();
        let mut text = String::new();
        within(stream.read_to_string(&mut text)).await.unwrap();
        text
    }

    /// Ends it as a signal does; returns how many connections had to be cut.
    pub async fn end(self) -> usize {
        self.drain.begin();
        within(self.served).await.unwrap()
    }
}

fn configured(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> (Config, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yaml");
    std::fs::write(&path, rules).unwrap();
    let mut config = Config { rules: Some(path), http: Vec::new(), ..Config::for_test() };
    config.gateway.listen = Some(Address::loopback(0));
    change(&mut config, dir.path().to_owned());
    (config, dir)
}

/// A caller's connection.
pub struct Caller {
    pub stream: TcpStream,
    read: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Caller {
    pub async fn send(&mut self, text: &str) {
        within(self.stream.write_all(text.as_bytes())).await.unwrap();
    }

    /// Reads the next head.
    pub async fn head(&mut self) -> String {
        within(async {
            loop {
                if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                    let rest = self.read.split_off(end + 4);
                    return String::from_utf8(std::mem::replace(&mut self.read, rest)).unwrap();
                }
                assert_ne!(self.stream.read_buf(&mut self.read).await.unwrap(), 0, "the connection ended");
            }
        })
        .await
    }

    /// Reads until this text has come; returns everything up to its end.
    pub async fn until(&mut self, text: &str) -> String {
        within(async {
            loop {
                if let Some(at) = self.read.windows(text.len()).position(|part| part == text.as_bytes()) {
                    let rest = self.read.split_off(at + text.len());
                    return String::from_utf8_lossy(&std::mem::replace(&mut self.read, rest)).into_owned();
                }
                assert_ne!(self.stream.read_buf(&mut self.read).await.unwrap(), 0, "the connection ended");
            }
        })
        .await
    }

    /// Reads the next response, of a known length or in chunks.
    pub async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: String::new() };
        if let Some(length) = answer.field("content-length").map(|length| length.parse::<usize>().unwrap()) {
            within(async {
                while self.read.len() < length {
                    assert_ne!(self.stream.read_buf(&mut self.read).await.unwrap(), 0, "the body was cut");
                }
            })
            .await;
            let rest = self.read.split_off(length);
            answer.body = String::from_utf8_lossy(&std::mem::replace(&mut self.read, rest)).into_owned();
        } else if answer.field("transfer-encoding").is_some() {
            answer.body = self.until("0\r\n").await + &self.until("\r\n").await;
        }
        answer
    }

    /// Everything until the gateway closes the connection.
    pub async fn rest(&mut self) -> String {
        within(async { while self.stream.read_buf(&mut self.read).await.is_ok_and(|read| read > 0) {} }).await;
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }
}
