//! A primary with one replica, watched by three Sentinels.

use std::time::Duration;

use tollgate_resp::RespValue;

use super::{Client, RedisOptions, RedisServer};
use crate::patience;

/// What the Sentinels call the primary.
pub const MASTER: &str = "mymaster";
const PATIENCE: Duration = Duration::from_secs(30);

/// Five processes: two servers, of which one is the primary, and three Sentinels that need a second to miss it.
#[derive(Debug)]
pub struct Sentinels {
    /// The primary at first, then its replica.
    pub servers: [RedisServer; 2],
    /// Those who watch.
    pub sentinels: [RedisServer; 3],
}

impl Sentinels {
    /// Starts all, and waits until everybody knows everybody.
    pub fn start() -> Sentinels {
        Sentinels::start_as(&RedisOptions::default())
    }

    /// As [`start`](Sentinels::start), with servers of this plan.
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
        all.wait_for_peace();
        all
    }

    /// The URL by which a client finds the primary.
    pub fn url(&self) -> String {
        let addresses = self.sentinels.each_ref().map(RedisServer::address);
        format!("redis-sentinel://{}/{MASTER}", addresses.join(","))
    }

    /// The port of the primary, as the Sentinels see it.
    pub fn primary_port(&self) -> Option<u16> {
        let mut client = Client::connect(self.sentinels[0].port()).ok()?;
        let answer = client.try_call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]).ok()?;
        u16::try_from(answer.array()?.get(1)?.integer()?).ok()
    }

    /// Which of [`servers`](Sentinels::servers) is the primary.
    pub fn primary(&self) -> usize {
        let port = self.primary_port().expect("a Sentinel answers");
        self.servers.iter().position(|server| server.port() == port).expect("one of ours")
    }

    /// Waits until the other server is the primary and says so itself, and answers how long that took.
    pub fn wait_for_failover_from(&self, old: usize) -> Duration {
        let other = &self.servers[1 - old];
        patience::until("the Sentinels promote the replica", PATIENCE, || {
            let is_known = self.primary_port() == Some(other.port());
            is_known && other.client().text(&["INFO", "replication"]).contains("role:master")
        })
    }

    /// Makes the replica lose its link for good, while everybody else still talks to everybody: the primary no longer
    /// lets anybody follow it. Stopping the replica would not do: what the kernel has received it would still read.
    pub fn cut_replication(&self, primary: usize) {
        let mut client = self.servers[primary].client();
        client.succeed(&["ACL", "SETUSER", "default", "-psync", "-sync", "-replconf"]);
        client.succeed(&["CLIENT", "KILL", "TYPE", "replica"]);
        patience::until("the link of the replica is down", PATIENCE, || {
            self.servers[1 - primary].client().text(&["INFO", "replication"]).contains("master_link_status:down")
        });
    }

    fn wait_for_peace(&self) {
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
