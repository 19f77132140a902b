//! A server on its own port, and its client.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate_config::Config;
use tollgate_core::ManualClock;
use tollgate_net::{Address, Drain};
use tollgate_proto::v1::tollgate_client::TollgateClient;
use tollgate_proto::v1::{CheckRequest, CheckResponse};
use tollgate_server::Surface;
use tollgate_server::run::Server;

use crate::wire::Wire;

/// A bucket refills by one in a minute and a half: whatever was charged is still seen when the test looks.
pub const RULES: &str = "rules:\n  - { name: only, key_by: client_key, limit: { requests: 1000, window: 1d } }\n";
/// What a bucket holds when nothing was charged.
pub const FULL: u64 = 1000;
/// Whatever is awaited comes within this time, or the test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub type Client = TollgateClient<Wire>;

/// A server that ends with the test.
pub struct Rig {
    pub grpc: Address,
    pub admin: SocketAddr,
    _dir: TempDir,
    pub drain: Drain,
    served: JoinHandle<usize>,
}

impl Rig {
    /// Serves these rules.
    pub fn start(rules: &str) -> Rig {
        Rig::with(rules, |_, _| {})
    }

    /// The same with other settings.
    pub fn with(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> Rig {
        let (config, dir) = configured(rules, change);
        Rig::run(Server::bind(config, None).unwrap(), dir)
    }

    /// Serves these rules on a clock that the test moves.
    pub fn on_clock(rules: &str, clock: &ManualClock) -> Rig {
        let (config, dir) = configured(rules, |_, _| {});
        Rig::run(Server::bind_on(Arc::new(clock.clone()), config, None).unwrap(), dir)
    }

    /// The same with any store.
    pub async fn open(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> Rig {
        let (config, dir) = configured(rules, change);
        Rig::run(Server::open(config, None).await.unwrap(), dir)
    }

    fn run(server: Server, dir: TempDir) -> Rig {
        let at = |wanted: Surface| {
            let found = server.addresses().into_iter().find(|(surface, _)| *surface == wanted);
            found.map(|(_, address)| address).expect("an address")
        };
        let (grpc, Address::Tcp(admin)) = (at(Surface::Grpc), at(Surface::Admin)) else { panic!("no admin port") };
        let drain = server.drain();
        Rig { grpc, admin, _dir: dir, drain, served: tokio::spawn(server.run()) }
    }

    /// Where it is.
    pub fn tcp(&self) -> SocketAddr {
        let Address::Tcp(address) = self.grpc else { panic!("a path") };
        address
    }

    /// A connection of its own.
    pub async fn wire(&self) -> Wire {
        let stream = TcpStream::connect(self.tcp()).await.unwrap();
        stream.set_nodelay(true).unwrap(); // a message follows its head, and would wait until that is acknowledged
        Wire::over(stream).await
    }

    /// A client with a connection of its own.
    pub async fn client(&self) -> Client {
        client(self.wire().await)
    }

    /// Remaining units of a client.
    pub async fn left_to(&self, client_key: &str) -> u64 {
        let looked = CheckRequest { peek: true, ..about(client_key) };
        self.client().await.check(looked).await.unwrap().into_inner().remaining.unwrap()
    }

    /// Somebody else is answered, on a connection of its own.
    pub async fn answers_others(&self) {
        let asked = async { self.client().await.check(about("payer")).await };
        let answer = timeout(PATIENCE, asked).await.expect("an answer in time").unwrap().into_inner();
        assert!(answer.allowed);
    }

    /// Everything that is counted.
    pub async fn metrics(&self) -> String {
        let mut caller = crate::caller::Caller::connect(self.admin).await;
        caller.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.body
    }

    /// Ends it as a signal does; answers how many connections were cut.
    pub async fn end(self) -> usize {
        self.drain.begin();
        timeout(PATIENCE, self.served).await.expect("an end in time").unwrap()
    }
}

fn configured(rules: &str, change: impl FnOnce(&mut Config, PathBuf)) -> (Config, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yaml");
    std::fs::write(&path, rules).unwrap();
    let mut config = Config { rules: Some(path), ..Config::for_test() };
    config.grpc.address = Some("127.0.0.1:0".parse().unwrap());
    change(&mut config, dir.path().to_owned());
    (config, dir)
}

/// A client over a connection.
pub fn client(wire: Wire) -> Client {
    TollgateClient::with_origin(wire, "http://localhost".parse().unwrap())
}

/// A check of a client.
pub fn about(client_key: &str) -> CheckRequest {
    with(&[("client_key", client_key)])
}

/// A check with these attributes.
pub fn with(attributes: &[(&str, &str)]) -> CheckRequest {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    CheckRequest { attributes: attributes.iter().map(own).collect(), ..CheckRequest::default() }
}

/// Asks, and is answered.
pub async fn check(client: &mut Client, request: CheckRequest) -> CheckResponse {
    timeout(PATIENCE, client.check(request)).await.expect("an answer in time").unwrap().into_inner()
}
