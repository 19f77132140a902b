//! The store as a whole: start, health, statistics and shutdown.

use std::fmt;
use std::time::Duration;

use tokio::time;
use tollgate_core::Span;
use tollgate_resp::RespValue;
use tollgate_store::{StoreError, random};

use super::primary::Health;
use super::redis_store::{RedisStore, unavailable};
use super::stats::{PrimaryStats, SlotStats};
use crate::client::failure::error;
use crate::client::slot::slot_of;

/// Polling interval while waiting for the store.
const PATIENCE: Duration = Duration::from_millis(20);
/// The key of the secret that all nodes share. Any tag would do: it is read once.
pub(crate) const SECRET_KEY: &[u8] = b"tg:{AAA}secret";

/// Statistics of the store.
#[derive(Clone, Debug, Default)]
pub struct RedisStats {
    /// Counters of requests that span several slots.
    pub slots: SlotStats,
    /// Health and counters of each primary.
    pub primaries: Vec<(Health, PrimaryStats)>,
    /// Number of nodes that share the store, if known.
    pub nodes: Option<u64>,
}

/// Why the store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// The reason.
    pub what: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for StartError {}

impl RedisStore {
    /// Waits until every primary runs the scripts that decisions use.
    pub async fn ready(&self, within: Span) -> Result<(), StartError> {
        let until = self.clock.now().after(within);
        loop {
            let trouble = self.trouble().await;
            let Some(what) = trouble else { return Ok(()) };
            if self.clock.now() >= until {
                return Err(StartError { what });
            }
            time::sleep(PATIENCE).await;
        }
    }

    /// Why the store cannot decide yet, if anything prevents it.
    async fn trouble(&self) -> Option<String> {
        let checks = self.probe().await;
        if checks.is_empty() {
            return Some("no primary is known".to_owned());
        }
        let failing = checks.into_iter().find_map(|(health, error)| Some((health, error?)));
        if failing.is_none() && self.context.nodes.known().is_none() {
            return Some("the nodes that share it are not counted yet".to_owned());
        }
        failing.map(|(Health { address, trouble, .. }, error)| match trouble {
            Some(why) => format!("{address}: {why}"),
            None => format!("{address}: {error}"),
        })
    }

    /// Sends a read-only request to every primary, with the script that decides.
    pub async fn probe(&self) -> Vec<(Health, Option<StoreError>)> {
        let mut checks = Vec::new();
        for primary in self.topology.primaries() {
            let error = primary.probe(self.context.config.within).await.err();
            checks.push((primary.health(), error));
        }
        checks
    }

    /// The secret that hides keys and signs receipts: the stored one, created by the first node.
    pub async fn secret(&self) -> Result<[u8; 16], StoreError> {
        let fresh = u128::from(random::unpredictable()) << 64 | u128::from(random::unpredictable());
        self.agree_on_secret(fresh.to_be_bytes()).await
    }

    /// Stores this secret if there is none, and returns the stored one. A store that lost its data lost the secret too:
    /// a running node restores it before a new node creates another.
    pub async fn agree_on_secret(&self, secret: [u8; 16]) -> Result<[u8; 16], StoreError> {
        let slot = if self.topology.is_split() { slot_of(b"AAA") } else { 0 };
        let primary = self.topology.primary(slot).ok_or_else(|| unavailable("no primary is known yet"))?;
        let own = format!("{:032x}", u128::from_be_bytes(secret));
        let commands: [&[&[u8]]; 2] = [&[b"SET", SECRET_KEY, own.as_bytes(), b"NX"], &[b"GET", SECRET_KEY]];
        let replies = primary.pipeline(&commands, self.context.config.connect_timeout).await?;
        let unreadable = || error(tollgate_store::StoreErrorKind::Refused, "the secret in the store is malformed");
        replies.get(1).and_then(read_secret).ok_or_else(unreadable)
    }

    /// A snapshot of the statistics.
    pub fn stats(&self) -> RedisStats {
        let primaries = self.topology.primaries();
        RedisStats {
            slots: self.figures.read(),
            primaries: primaries.iter().map(|primary| (primary.health(), primary.stats())).collect(),
            nodes: self.context.nodes.known(),
        }
    }

    /// Unregisters this node and ends all tasks of this store.
    pub async fn close(&self) {
        self.context.nodes.leave();
        for primary in self.topology.primaries() {
            primary.leave().await;
        }
        self.topology.stop();
    }
}

/// Parses the stored secret: 32 hexadecimal digits.
pub(crate) fn read_secret(reply: &RespValue) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(reply.text()?).ok().filter(|text| text.len() == 32)?;
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}
