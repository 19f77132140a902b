//! A server of its own for every test, with deadlines short enough to wait for.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tollgate_config::Config;
use tollgate_net::{Address, Drain, NetLimits};
use tollgate_server::Surface;
use tollgate_server::run::Server;

use crate::caller::Caller;

/// A bucket refills by one in a minute and a half: whatever was charged is still seen when the test looks.
pub const RULES: &str = "rules:\n  - { name: only, key_by: client_key, limit: { requests: 1000, window: 1d } }\n";

/// A request that is answered 200 and charges another client than the one whose bucket is read.
pub const GOOD: &str = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{\"client_key\":\"payer\"}";

pub struct Rig {
    pub data: SocketAddr,
    pub admin: SocketAddr,
    pub metrics: Option<SocketAddr>,
    pub drain: Drain,
    /// Rung to read everything again.
    pub hang_up: Arc<Notify>,
    /// Ends with the number of connections that were cut.
    pub served: JoinHandle<usize>,
    pub _rules: TempDir,
}

impl Rig {
    /// A server with these limits.
    pub fn open(net: NetLimits) -> Rig {
        Rig::configured(Config { net, ..Config::for_test() })
    }

    /// A server so configured, with one rule.
    pub fn configured(config: Config) -> Rig {
        watch_for_panics();
        let rules = tempfile::tempdir().unwrap();
        let path = rules.path().join("rules.yaml");
        std::fs::write(&path, RULES).unwrap();
        let server = Server::bind(Config { rules: Some(path), ..config }, None).unwrap();
        let at = |wanted: Surface| {
            let tcp = |(surface, address): (Surface, Address)| match address {
                Address::Tcp(at) if surface == wanted => Some(at),
                _ => None,
            };
            server.addresses().into_iter().find_map(tcp)
        };
        let (data, admin) = (at(Surface::Data).unwrap(), at(Surface::Admin).unwrap());
        let (metrics, drain, hang_up) = (at(Surface::Metrics), server.drain(), server.reload());
        Rig { data, admin, metrics, drain, hang_up, served: tokio::spawn(server.run()), _rules: rules }
    }

    /// Somebody else is answered, on a connection of its own.
    pub async fn answers_others(&self) {
        assert_eq!(PANICS.load(Ordering::Relaxed), 0, "something on a thread of the server panicked, see above");
        let mut caller = Caller::from(NEIGHBOUR, self.data).await;
        caller.send(GOOD).await.unwrap();
        let answer = caller.answer().await.unwrap().expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// What is left to the one in whose name bad requests are sent; everything, unless they were charged.
    pub async fn left_to_victim(&self) -> u64 {
        let body = "{\"client_key\":\"victim\",\"peek\":true}";
        let mut caller = Caller::from(NEIGHBOUR, self.data).await;
        caller.send(post("/v1/check", body)).await.unwrap();
        let answer = caller.answer().await.unwrap().expect("an answer");
        let answer: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        answer["remaining"].as_u64().unwrap()
    }

    /// Ends it; answers how many connections were cut.
    pub async fn close(self) -> usize {
        self.drain.begin();
        self.served.await.unwrap()
    }
}

/// A panic ends a connection and nothing else, so it would go unnoticed: panics are counted.
static PANICS: AtomicUsize = AtomicUsize::new(0);

pub fn watch_for_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == Some("tokio-rt-worker") {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            usual(info);
        }));
    });
}

/// Where those come from who are no part of an attack.
const NEIGHBOUR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 77, 0, 1));

/// What a bucket holds when nothing was charged.
pub const FULL: u64 = 1000;

/// A request with a body.
pub fn post(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

pub const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}
