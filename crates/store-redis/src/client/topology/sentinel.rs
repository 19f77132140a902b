//! The primary that the Sentinels name.
//!
//! After a failover the old primary may go on answering for many seconds, and what it counts is lost. So the Sentinels
//! are asked every second, and at once when a server reports that it is a replica. The majority of those that answer
//! decides: a Sentinel that was cut off still names the old primary.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::task::JoinHandle;
use tollgate_resp::RespValue;
use tracing::{info, warn};

use super::{ManagedServer, StartServer, ask_once, until_topology_changed};
use crate::client::address::HostPort;
use crate::client::context::RedisContext;
use crate::client::url::Layout;

const LOOK_EVERY: Duration = Duration::from_millis(750);

pub(crate) struct SentinelTopology<P> {
    inner: Arc<Inner<P>>,
    task: JoinHandle<()>,
}

struct Inner<P> {
    context: Arc<RedisContext>,
    start: StartServer<P>,
    primary: RwLock<Option<Arc<P>>>,
}

impl<P: ManagedServer> SentinelTopology<P> {
    pub(super) fn start(context: Arc<RedisContext>, start: StartServer<P>) -> SentinelTopology<P> {
        let inner = Arc::new(Inner { context, start, primary: RwLock::new(None) });
        let task = tokio::spawn(follow(inner.clone()));
        SentinelTopology { inner, task }
    }

    pub(super) fn primary(&self) -> Option<Arc<P>> {
        self.inner.primary.read().clone()
    }

    pub(super) fn stop(&self) {
        self.task.abort();
    }
}

async fn follow<P: ManagedServer>(inner: Arc<Inner<P>>) {
    loop {
        match inner.ask_all().await {
            Some(address) => inner.adopt(address),
            None => warn!("no Sentinel names a primary"),
        }
        until_topology_changed(&inner.context, LOOK_EVERY).await;
    }
}

impl<P: ManagedServer> Inner<P> {
    /// The address that most Sentinels name.
    async fn ask_all(&self) -> Option<HostPort> {
        let url = &self.context.config.url;
        let Layout::Sentinel { master } = &url.layout else { return None };
        let asked = url.hosts.iter().map(|sentinel| {
            let (context, sentinel, master) = (self.context.clone(), sentinel.clone(), master.clone());
            tokio::spawn(async move { ask(&context, &sentinel, &master).await })
        });
        let asked: Vec<JoinHandle<Option<HostPort>>> = asked.collect();
        let mut votes: HashMap<HostPort, usize> = HashMap::new();
        for answer in asked {
            if let Ok(Some(address)) = answer.await {
                *votes.entry(address).or_default() += 1;
            }
        }
        // A tie keeps the primary in use: one isolated Sentinel must not make the node switch.
        let current = self.primary.read().as_ref().map(|primary| primary.address().clone());
        let weight = |(address, count): &(HostPort, usize)| (*count, current.as_ref() == Some(address));
        votes.into_iter().max_by_key(weight).map(|(address, _)| address)
    }

    fn adopt(&self, address: HostPort) {
        let mut current = self.primary.write();
        if current.as_ref().is_some_and(|primary| *primary.address() == address) {
            return;
        }
        info!(%address, "the Sentinels name a primary");
        let old = current.replace((self.start)(address));
        drop(current);
        if let Some(old) = old {
            old.retire();
        }
    }
}

/// The address that one Sentinel names.
async fn ask(context: &RedisContext, sentinel: &HostPort, master: &str) -> Option<HostPort> {
    let command: [&[u8]; 3] = [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", master.as_bytes()];
    let reply = ask_once(context, sentinel, context.config.url.sentinel_login.as_ref(), &command).await?;
    let [RespValue::Text(host), port] = reply.array()? else { return None };
    let host = std::str::from_utf8(host).ok()?.to_owned();
    Some(HostPort { host, port: u16::try_from(port.integer()?).ok()? })
}
