//! A server on its own port, and its client.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate_config::Config;
use tollgate_core::ManualClock;
use tollgate_lab::closing::read_to_close_async;
use tollgate_net::{Address, Drain};
use tollgate_server::Surface;
use tollgate_server::run::Server;

/// A server that ends with the test.
pub struct Rig {
    pub data: Vec<Address>,
    pub admin: Address,
    pub dir: TempDir,
    drain: Drain,
    served: JoinHandle<usize>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Rig {
    /// Serves these rules.
    pub fn start(rules: &str) -> Rig {
        Rig::with(rules, |_, _| {})
    }

    /// The same with other settings.
    pub fn with(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> Rig {
        let (config, dir) = configured(rules, change);
        Rig::run(Server::bind(config, None).expect("a server"), dir)
    }

    /// Serves these rules on a clock that the test moves.
    pub fn on_clock(rules: &str, clock: &ManualClock) -> Rig {
        let (config, dir) = configured(rules, |_, _| {});
        Rig::run(Server::bind_on(Arc::new(clock.clone()), config, None).expect("a server"), dir)
    }

    /// The same with any store.
    pub async fn open(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> Rig {
        let (config, dir) = configured(rules, change);
        Rig::run(Server::open(config, None).await.expect("a server"), dir)
    }

    fn run(server: Server, dir: TempDir) -> Rig {
        let (admin, data): (Vec<_>, Vec<_>) =
            server.addresses().into_iter().partition(|(surface, _)| *surface == Surface::Admin);
        let data = data.into_iter().map(|(_, address)| address).collect();
        let admin = admin.into_iter().map(|(_, address)| address).next().expect("an admin address");
        let drain = server.drain();
        Rig { data, admin, dir, drain, served: tokio::spawn(server.run()) }
    }

    /// Ends it as a signal does, and waits until it is over.
    pub async fn end(self) {
        self.drain.begin();
        timeout(Duration::from_secs(20), self.served).await.expect("an end in time").expect("no panic");
    }

    /// Posts JSON to the data API.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        self.call("POST", path, "Content-Type: application/json\r\n", body).await
    }

    /// Calls the data API.
    pub async fn call(&self, method: &str, path: &str, fields: &str, body: &str) -> Answer {
        call(self.data.first().expect("an address"), method, path, fields, body).await
    }
}

fn configured(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> (Config, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("rules.yaml");
    std::fs::write(&path, rules).expect("a file");
    let mut config = Config { rules: Some(path), ..Config::for_test() };
    change(&mut config, dir.path().to_owned());
    (config, dir)
}

/// One call on a connection of its own.
pub async fn call(address: &Address, method: &str, path: &str, fields: &str, body: &str) -> Answer {
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    );
    let talk = async {
        match address {
            Address::Tcp(address) => exchange(TcpStream::connect(address).await?, &text).await,
            Address::Unix(path) => exchange(UnixStream::connect(path).await?, &text).await,
        }
    };
    let bytes = timeout(Duration::from_secs(20), talk).await.expect("an answer in time").expect("an answer");
    Answer::read(&bytes)
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, text: &str) -> io::Result<Vec<u8>> {
    // The server may close the connection while a refused request is still being sent.
    let _ = stream.write_all(text.as_bytes()).await;
    read_to_close_async(&mut stream).await
}

impl Answer {
    fn read(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let (head, body) = bytes.split_at(end + 4);
        let head = String::from_utf8(head.to_vec()).expect("ASCII");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head, body: body.to_vec() }
    }

    /// The body.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// A header field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}
