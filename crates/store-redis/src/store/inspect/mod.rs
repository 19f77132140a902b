//! Reads buckets for operators, without registering as a node: no heartbeat, no script call, no write.

mod decode;

use std::fmt;
use std::sync::Arc;

use tokio::time::timeout;
use tollgate_core::{Charge, Limit, Outcome, SlidingLog, Span, Time};
use tollgate_resp::RespValue;
use tollgate_store::MonotonicClock;

use crate::client::address::HostPort;
use crate::client::config::RedisConfig;
use crate::client::connection::{RedisConnection, parse_time, resolve};
use crate::client::context::RedisContext;
use crate::client::failure::ErrorCode;
use crate::client::slot::{SLOTS, slot_of};
use crate::client::url::Layout;
use crate::store::check::finding::{Finding, PATIENCE};
use crate::store::check::layout::{Range, primary_by, slots_by};
use crate::store::check::server::unreached;
use crate::store::fingerprint::FINGERPRINT_KEY;
use crate::store::key::BucketKey;
use crate::store::lifecycle::{SECRET_KEY, read_secret};
use crate::store::script::Script;

pub use decode::BucketState;

/// List elements that are read: the head of a log and its maximum number of entries.
const LOG_ELEMENTS_MAX: u64 = SlidingLog::LIMIT_MAX + 1;
/// Maximum size of such a list in a reply: an entry is 17 bytes and its header.
const LOG_BYTES_MAX: usize = LOG_ELEMENTS_MAX as usize * 32;

/// A bucket as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBucket {
    /// Its key.
    pub key: BucketKey,
    /// The server that has it.
    pub server: HostPort,
    /// The server's time when it was read.
    pub now: Time,
    /// The value; `None` if the key does not exist, which is an unused bucket.
    pub content: Option<StoredContent>,
}

/// The value of a bucket's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredContent {
    /// Time until the key expires; `None` if it never does.
    pub ttl: Option<Span>,
    /// The decoded value and its view under the charge's limit; `None` if it is not a bucket of this limit's algorithm.
    pub state: Option<(BucketState, Outcome)>,
}

/// Read-only connections to the servers of a store.
pub struct BucketReader {
    context: Arc<RedisContext>,
    /// The primaries and their slots; one entry with all slots without a cluster.
    primaries: Vec<(HostPort, Range)>,
    connections: Vec<(HostPort, RedisConnection)>,
}

impl BucketReader {
    /// Finds the primaries of the store. Needs a Tokio runtime.
    pub async fn open(config: &RedisConfig) -> Result<BucketReader, Finding> {
        let connect_timeout = config.connect_timeout.max(PATIENCE);
        let config = RedisConfig { connect_timeout, ..config.clone() };
        let (layout, hosts) = (config.url.layout.clone(), config.url.hosts.clone());
        let context = RedisContext::new(config, Arc::new(MonotonicClock::new()));
        let all = (0, SLOTS - 1);
        let mut problem = Finding::problem("the URL names no server", "name one: redis://HOST:PORT");
        for host in &hosts {
            let looked_up = match &layout {
                Layout::Single => Ok(vec![(host.clone(), all)]),
                Layout::Sentinel { master } => {
                    primary_by(&context, host, master).await.map(|primary| vec![(primary, all)])
                }
                Layout::Cluster => slots_by(&context, host).await,
            };
            match looked_up {
                Ok(primaries) => return Ok(BucketReader { context, primaries, connections: Vec::new() }),
                Err(found) => problem = found,
            }
        }
        Err(problem)
    }

    /// True if keys are spread over slots.
    pub fn is_clustered(&self) -> bool {
        self.context.is_clustered()
    }

    /// The secret in the store; `None` if there is none.
    pub async fn secret(&mut self) -> Result<Option<[u8; 16]>, Finding> {
        let (server, reply) = self.get(slot_of(b"AAA"), SECRET_KEY).await?;
        match reply {
            RespValue::Nil => Ok(None),
            reply => read_secret(&reply).map(Some).ok_or_else(|| unexpected(&server, &reply)),
        }
    }

    /// The fingerprint of the secret that running nodes use; `None` if none was seen within the last minute.
    pub async fn fingerprint(&mut self) -> Result<Option<String>, Finding> {
        let (_, reply) = self.get(slot_of(b"AAA"), FINGERPRINT_KEY).await?;
        Ok(reply.text().map(|text| String::from_utf8_lossy(text).into_owned()))
    }

    /// The bucket of a charge.
    pub async fn bucket(&mut self, charge: &Charge) -> Result<StoredBucket, Finding> {
        let key = BucketKey::of(charge);
        let (server, connection) = self.connection(key.slot()).await?;
        let time = call(server, connection, &[b"TIME"]).await?;
        let now = parse_time(&time).ok_or_else(|| unexpected(server, &time))?;
        let ttl = call(server, connection, &[b"PTTL", key.bytes()]).await?;
        let ttl = ttl.integer().ok_or_else(|| unexpected(server, &ttl))?;
        let mut stored = StoredBucket { key, server: server.clone(), now, content: None };
        if ttl == -2 {
            return Ok(stored);
        }
        let ttl = u64::try_from(ttl).ok().map(Span::from_millis);
        let state = match read(server, connection, &key, &charge.limit, now).await? {
            Content::Absent => return Ok(stored), // expired meanwhile
            Content::OtherType => None,
            Content::Replies(replies) => decode::decode(&charge.limit, &replies, now),
        };
        stored.content = Some(StoredContent { ttl, state });
        Ok(stored)
    }

    async fn get(&mut self, slot: u16, key: &[u8]) -> Result<(HostPort, RespValue), Finding> {
        let (server, connection) = self.connection(slot).await?;
        let reply = call(server, connection, &[b"GET", key]).await?;
        match ErrorCode::of(&reply) {
            Some(_) => Err(unexpected(server, &reply)),
            None => Ok((server.clone(), reply)),
        }
    }

    /// The primary of a slot, connected at the first use.
    async fn connection(&mut self, slot: u16) -> Result<(&HostPort, &mut RedisConnection), Finding> {
        let serves = |(_, (first, last)): &&(HostPort, Range)| (*first..=*last).contains(&slot);
        let Some((server, _)) = self.primaries.iter().find(serves) else {
            let what = format!("no primary of the cluster has slot {slot}");
            return Err(Finding::problem(what, "repair it: redis-cli --cluster fix HOST:PORT"));
        };
        let place = match self.connections.iter().position(|(host, _)| host == server) {
            Some(place) => place,
            None => {
                let places = resolve(server).await.map_err(|why| unreached(server, &why))?;
                let opened = RedisConnection::open(&self.context, server, &places, &Script::texts()).await;
                let (connection, _) = opened.map_err(|why| unreached(server, &why))?;
                self.connections.push((server.clone(), connection));
                self.connections.len() - 1
            }
        };
        let found = self.connections.get_mut(place).map(|(host, connection)| (&*host, connection));
        found.ok_or_else(|| Finding::problem("no connection", ""))
    }
}

impl fmt::Debug for BucketReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketReader").field("primaries", &self.primaries).finish_non_exhaustive()
    }
}

/// The result of the commands of a limit's algorithm.
enum Content {
    Absent,
    OtherType,
    Replies(Vec<RespValue>),
}

/// Reads a value with the commands of the limit's algorithm; nodes have permission for all of them.
async fn read(
    server: &HostPort,
    connection: &mut RedisConnection,
    key: &BucketKey,
    limit: &Limit,
    now: Time,
) -> Result<Content, Finding> {
    let key = key.bytes();
    let last = LOG_ELEMENTS_MAX.to_string();
    let after = format!("({}", now.nanos() / 1000);
    let after = after.as_bytes();
    let commands: &[&[&[u8]]] = match limit {
        Limit::SlidingLog(_) => &[&[b"LRANGE", key, b"0", last.as_bytes()]],
        Limit::Concurrency(_) => &[
            &[b"ZCOUNT", key, after, b"+inf"],
            &[b"ZRANGEBYSCORE", key, after, b"+inf", b"WITHSCORES", b"LIMIT", b"0", b"1"],
            &[b"ZRANGE", key, b"-1", b"-1", b"WITHSCORES"],
        ],
        _ => &[&[b"GET", key]],
    };
    let mut replies = Vec::new();
    for command in commands {
        let reply = call(server, connection, command).await?;
        match &reply {
            RespValue::Nil => return Ok(Content::Absent),
            RespValue::Array(elements) if elements.is_empty() && matches!(limit, Limit::SlidingLog(_)) => {
                return Ok(Content::Absent);
            }
            RespValue::Error(_) if reply.error_word() == Some(b"WRONGTYPE") => return Ok(Content::OtherType),
            RespValue::Error(_) => return Err(unexpected(server, &reply)),
            _ => replies.push(reply),
        }
    }
    Ok(Content::Replies(replies))
}

async fn call(server: &HostPort, connection: &mut RedisConnection, command: &[&[u8]]) -> Result<RespValue, Finding> {
    let help = "is the server overloaded, or was it restarted? Try again";
    match timeout(PATIENCE.into(), connection.call_for(command, LOG_BYTES_MAX)).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(why)) => Err(Finding::problem(format!("{server}: {why}"), help)),
        Err(_) => Err(Finding::problem(format!("{server}: no answer within two seconds"), help)),
    }
}

fn unexpected(server: &HostPort, reply: &RespValue) -> Finding {
    let (what, help) = match ErrorCode::of(reply) {
        Some(ErrorCode::NoPerm) => ("the user lacks a right", "`tollgate store check URL` names the rights"),
        Some(ErrorCode::Moved | ErrorCode::Ask | ErrorCode::TryAgain) => ("the slot is being moved", "try again"),
        Some(code) => (code.meaning(), "`tollgate store check URL` tells more"),
        None => ("a reply that Redis does not give", "is that a Redis or Valkey server?"),
    };
    Finding::problem(format!("{server}: {what}"), help)
}
