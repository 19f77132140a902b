//! Messages between the nodes that share a store, over its pub/sub: a question to all, answers to the node that asks.
//!
//! Each node listens on two channels: one that all nodes of its fleet have, and one of its own. Nothing is stored, so nothing has to be
//! removed, and what is not read in time is lost: the node that asks has a deadline. Connections of their own carry the
//! messages, so that no decision waits behind a long answer.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate_core::Span;
use tollgate_resp::{RespValue, write_request};
use tollgate_store::{StoreError, random};
use tracing::{debug, info};

use super::redis_store::{RedisStore, unavailable};
use crate::client::address::HostPort;
use crate::client::connection::RedisConnection;

/// Minimum pause between attempts to subscribe; a random part of the same length is added.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause after the server refused the subscription.
const LONG_PAUSE: Duration = Duration::from_secs(60);
/// Idle time after which the connection is checked.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the server may take to accept an answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// A message of another node, or of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMessage {
    /// True if it was sent to all nodes.
    pub is_to_all: bool,
    /// What was sent.
    pub payload: Vec<u8>,
}

/// Listens for messages. Dropping it ends the subscription.
pub struct NodeMessages<'a> {
    store: &'a RedisStore,
    channels: NodeChannels,
    listening: Option<NodeConnection>,
    is_refused: bool,
}

/// Sends answers to single nodes.
pub struct NodeAnswers<'a> {
    store: &'a RedisStore,
    sending: Option<NodeConnection>,
}

/// A connection, and the server that it leads to.
struct NodeConnection {
    connection: RedisConnection,
    address: HostPort,
}

/// The channels of one node. Fleets that share a server are told apart by a name that only their nodes can derive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChannels {
    /// Of all nodes of the fleet.
    fleet: String,
    /// Of this node.
    own: String,
}

impl NodeChannels {
    /// The channels of a node by the name of its fleet, and a number that the node chose at random.
    pub fn new(fleet: &str, node: u64) -> NodeChannels {
        NodeChannels { fleet: format!("tg:nodes:{fleet}"), own: format!("tg:nodes:{fleet}:{node:016x}") }
    }
}

impl RedisStore {
    /// Longest message.
    pub const MESSAGE_BYTES_MAX: usize = 512 << 10;

    /// Sends a short message to all nodes, and returns how many listen, this one included; `None` where no server knows
    /// it, in a cluster.
    pub async fn ask_nodes(&self, to: &NodeChannels, message: &[u8], within: Span) -> Result<Option<u64>, StoreError> {
        let primary = self.topology.primaries().into_iter().next();
        let primary = primary.ok_or_else(|| unavailable("no primary is known yet"))?;
        let replies = primary.pipeline(&[&[b"PUBLISH", to.fleet.as_bytes(), message]], within).await?;
        let listening = replies.first().and_then(RespValue::integer).and_then(|count| u64::try_from(count).ok());
        let listening = listening.ok_or_else(|| unavailable("the store does not let this node publish"))?;
        Ok((!self.topology.is_split()).then_some(listening))
    }

    /// Listens for messages on these channels.
    pub const fn node_messages(&self, channels: NodeChannels) -> NodeMessages<'_> {
        NodeMessages { store: self, channels, listening: None, is_refused: false }
    }

    /// Sends answers.
    pub const fn node_answers(&self) -> NodeAnswers<'_> {
        NodeAnswers { store: self, sending: None }
    }

    /// True if the connection leads to a server that is no primary any longer: messages to it reach no other node.
    fn has_moved(&self, open: &NodeConnection) -> bool {
        let primaries = self.topology.primaries();
        !primaries.is_empty() && primaries.iter().all(|primary| *primary.address() != open.address)
    }

    async fn connect(&self) -> Option<NodeConnection> {
        let primary = self.topology.primaries().into_iter().next()?;
        let address = primary.address().clone();
        let login = self.context.config.url.login.as_ref();
        let connection = RedisConnection::open_bare(&self.context, &address, login).await.ok()?;
        Some(NodeConnection { connection, address })
    }
}

impl NodeMessages<'_> {
    /// The next message. Reconnects by itself.
    pub async fn next(&mut self) -> NodeMessage {
        loop {
            let Some(open) = self.listening.as_mut().filter(|open| !self.store.has_moved(open)) else {
                self.listening = None;
                if !self.listen().await {
                    let pause = if self.is_refused { LONG_PAUSE } else { PAUSE };
                    sleep(pause + PAUSE.mul_f64(random::unpredictable() as f64 / u64::MAX as f64)).await;
                }
                continue;
            };
            match timeout(SILENCE, open.connection.reply_of(RedisStore::MESSAGE_BYTES_MAX)).await {
                Ok(Ok(reply)) => {
                    if let Some(message) = self.channels.message(&reply) {
                        return message;
                    } // else the answer to a ping
                }
                Ok(Err(_)) => self.listening = None,
                Err(_) => {
                    let mut out = Vec::new();
                    write_request(&mut out, &[b"PING"]);
                    if !matches!(timeout(PAUSE, open.connection.write(&out, &mut 0)).await, Ok(Ok(()))) {
                        self.listening = None;
                    }
                }
            }
        }
    }

    /// Subscribes; false if that failed.
    async fn listen(&mut self) -> bool {
        let Some(mut open) = self.store.connect().await else { return false };
        let subscribing = async {
            let NodeChannels { fleet, own } = &self.channels;
            let first = open.connection.call(&[b"SUBSCRIBE", fleet.as_bytes(), own.as_bytes()]).await.ok()?;
            if first.array().is_none() {
                return Some(false);
            }
            Some(open.connection.reply().await.ok()?.array().is_some())
        };
        match timeout(PAUSE, subscribing).await {
            Ok(Some(true)) => {
                self.listening = Some(open);
                self.is_refused = false;
                true
            }
            Ok(Some(false)) => {
                if !std::mem::replace(&mut self.is_refused, true) {
                    info!("no permission to subscribe to tg:nodes: operators see the traffic of each node by itself");
                }
                false
            }
            _ => false,
        }
    }
}

impl NodeAnswers<'_> {
    /// Sends to the node with these channels. Best effort: a node that waits for an answer has a deadline.
    pub async fn send(&mut self, to: &NodeChannels, message: &[u8]) {
        // The server may have closed an idle connection: then a new one is tried once.
        for _ in 0..2 {
            let kept = self.sending.take().filter(|open| !self.store.has_moved(open));
            let is_new = kept.is_none();
            let Some(mut open) = (match kept {
                Some(open) => Some(open),
                None => self.store.connect().await,
            }) else {
                break;
            };
            let sent = timeout(SEND_TIMEOUT, open.connection.call(&[b"PUBLISH", to.own.as_bytes(), message])).await;
            if let Ok(Ok(_)) = sent {
                self.sending = Some(open);
                return;
            }
            if is_new {
                break;
            }
        }
        debug!("an answer to another node was not sent");
    }
}

impl NodeChannels {
    fn message(&self, reply: &RespValue) -> Option<NodeMessage> {
        let [kind, channel, payload] = reply.array()? else { return None };
        if kind.text() != Some(b"message") {
            return None;
        }
        let is_to_all = channel.text() == Some(self.fleet.as_bytes());
        Some(NodeMessage { is_to_all, payload: payload.text()?.to_vec() })
    }
}
