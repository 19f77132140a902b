//! A primary with one replica, watched by three Sentinels.

use std::time::Duration;

use tollgate_resp::RespValue;

use super::{RedisClient, RedisOptions, RedisServer};
use crate::patience;

/// The name of the primary.
pub const MASTER: &str = "mymaster";
const PATIENCE: Duration = Duration::from_secs(30);

/// Five processes: a primary, its replica and three Sentinels with a timeout of one second.
#[derive(Debug)]
pub struct Sentinels {
    /// The primary at first, then its replica.
    pub servers: [RedisServer; 2],
    /// The Sentinels.
    pub sentinels: [RedisServer; 3],
}

impl Sentinels {
    /// Starts all processes, and waits until each knows the others.
    pub fn start() -> Sentinels {
        Sentinels::start_as(&RedisOptions::default())
    }

    /// As [`start`](Sentinels::start), with these options for both servers.
    pub fn start_as(plan: &RedisOptions) -> Sentinels {
        let primary = plan.clone().with(&["--repl-diskless-sync-delay", "0"]).start();
        let port = primary.port().to_string();
        let follow = ["--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", &port];
        let replica = plan.clone().with(&follow).start();
        let sentinel = || RedisOptions {
            sentinel: Some(configuration(primary.port())),
            flavour: plan.flavour,
            ..RedisOptions::default()
        };
        let sentinels = [(); 3].map(|()| sentinel().start());
        let all = Sentinels { servers: [primary, replica], sentinels };
        all.wait_until_ready();
        all
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        let addresses = self.sentinels.each_ref().map(RedisServer::address);
        format!("redis-sentinel://{}/{MASTER}", addresses.join(","))
    }

    /// The port of the primary, as the Sentinels see it.
    pub fn primary_port(&self) -> Option<u16> {
        let mut client = RedisClient::connect(self.sentinels[0].port()).ok()?;
        let answer = client.try_call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]).ok()?;
        u16::try_from(answer.array()?.get(1)?.integer()?).ok()
    }

    /// Which of [`servers`](Sentinels::servers) is the primary.
    pub fn primary(&self) -> usize {
        let port = self.primary_port().expect("a Sentinel answers");
        self.servers.iter().position(|server| server.port() == port).expect("one of ours")
    }

    /// Waits until the other server is the primary and reports so itself, and returns how long that took.
    pub fn wait_for_failover_from(&self, old: usize) -> Duration {
        let other = &self.servers[1 - old];
        patience::until("the Sentinels promote the replica", PATIENCE, || {
            let is_known = self.primary_port() == Some(other.port());
            is_known && other.client().text(&["INFO", "replication"]).contains("role:master")
        })
    }

    /// Cuts replication for good and no other connection: the primary refuses replicas. Stopping the replica would not do:
    /// it would still read what its kernel has received.
    pub fn cut_replication(&self, primary: usize) {
        let mut client = self.servers[primary].client();
        client.succeed(&["ACL", "SETUSER", "default", "-psync", "-sync", "-replconf"]);
        client.succeed(&["CLIENT", "KILL", "TYPE", "replica"]);
        patience::until("the link of the replica is down", PATIENCE, || {
            self.servers[1 - primary].client().text(&["INFO", "replication"]).contains("master_link_status:down")
        });
    }

    fn wait_until_ready(&self) {
        patience::until("primary, replica and Sentinels know each other", PATIENCE, || {
            let linked = self.servers[1].client().text(&["INFO", "replication"]).contains("master_link_status:up");
            linked && self.sentinels.iter().all(knows_all)
        });
    }
}

/// Whether a Sentinel knows the replica and both others. `CKQUORUM` also asks whether they can agree.
fn knows_all(sentinel: &RedisServer) -> bool {
    let mut client = sentinel.client();
    let known = client.text(&["INFO", "sentinel"]);
    let quorum = client.call(&["SENTINEL", "CKQUORUM", MASTER]);
    known.contains("status=ok") && known.contains("slaves=1,sentinels=3") && !matches!(quorum, RespValue::Error(_))
}

fn configuration(port: u16) -> String {
    format!(
        "sentinel monitor {MASTER} 127.0.0.1 {port} 2\n\
         sentinel down-after-milliseconds {MASTER} 1000\n\
         sentinel failover-timeout {MASTER} 3000\n\
         sentinel parallel-syncs {MASTER} 1\n"
    )
}
