//! The store as a whole: its start, its health, its figures and its end.

use std::fmt;
use std::time::Duration;

use tokio::time;
use tollgate_core::Span;
use tollgate_store::{StoreError, random};

use crate::failure::error;
use crate::resp::Value;
use crate::store::unavailable;
use crate::{Health, PrimaryStats, RedisStore, SlotFigures};

/// How often a store that is not there yet is looked for.
const PATIENCE: Duration = Duration::from_millis(20);
/// Where the secret lives that all nodes share. The tag is as good as any: it is read once.
pub(crate) const SECRET_KEY: &[u8] = b"tg:{AAA}secret";

/// Figures of the store.
#[derive(Clone, Debug, Default)]
pub struct RedisStats {
    /// What happened across slots.
    pub slots: SlotFigures,
    /// Each primary: how it is, and its figures.
    pub primaries: Vec<(Health, PrimaryStats)>,
    /// Nodes that share the store, as far as it is known.
    pub nodes: Option<u64>,
}

/// Why the store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// What was found.
    pub what: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for StartError {}

impl RedisStore {
    /// Waits until every primary decides, with the scripts that decisions use.
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

    /// What keeps the store from deciding, if anything does.
    async fn trouble(&self) -> Option<String> {
        let checks = self.probe().await;
        if checks.is_empty() {
            return Some("no primary is known".to_owned());
        }
        let failing = checks.into_iter().find_map(|(health, error)| Some((health, error?)));
        if failing.is_none() && self.shared.nodes.known().is_none() {
            return Some("the nodes that share it are not counted yet".to_owned());
        }
        failing.map(|(Health { address, trouble, .. }, error)| match trouble {
            Some(why) => format!("{address}: {why}"),
            None => format!("{address}: {error}"),
        })
    }

    /// Asks every primary a question that changes nothing, with the script that decides.
    pub async fn probe(&self) -> Vec<(Health, Option<StoreError>)> {
        let mut checks = Vec::new();
        for primary in self.topology.primaries() {
            let error = primary.probe(self.shared.config.within).await.err();
            checks.push((primary.health(), error));
        }
        checks
    }

    /// The secret that hides keys and signs receipts: the one in the store, made by whichever node came first.
    pub async fn secret(&self) -> Result<[u8; 16], StoreError> {
        let fresh = u128::from(random::unpredictable()) << 64 | u128::from(random::unpredictable());
        self.agree_on(fresh.to_be_bytes()).await
    }

    /// Puts this secret where nodes look for it, unless there is one; answers the one that is there. A store that lost
    /// its data lost the secret too: whoever still knows it puts it back before a new node makes another.
    pub async fn agree_on(&self, secret: [u8; 16]) -> Result<[u8; 16], StoreError> {
        let slot = if self.topology.is_split() { crate::key::slot_of(b"AAA") } else { 0 };
        let primary = self.topology.primary(slot).ok_or_else(|| unavailable("no primary is known yet"))?;
        let own = format!("{:032x}", u128::from_be_bytes(secret));
        let commands: [&[&[u8]]; 2] = [&[b"SET", SECRET_KEY, own.as_bytes(), b"NX"], &[b"GET", SECRET_KEY]];
        let replies = primary.pipeline(&commands, self.shared.config.connect_timeout).await?;
        let unreadable = || error(tollgate_store::StoreErrorKind::Refused, "the secret in the store is none");
        replies.get(1).and_then(read_secret).ok_or_else(unreadable)
    }

    /// The figures of now.
    pub fn stats(&self) -> RedisStats {
        let primaries = self.topology.primaries();
        RedisStats {
            slots: self.figures.read(),
            primaries: primaries.iter().map(|primary| (primary.health(), primary.stats())).collect(),
            nodes: self.shared.nodes.known(),
        }
    }

    /// Tells the others that this node leaves, and ends everything that runs for this store.
    pub async fn close(&self) {
        self.shared.nodes.leave();
        for primary in self.topology.primaries() {
            primary.leave().await;
        }
        self.topology.stop();
    }
}

/// The secret as the store holds it: 32 hexadecimal digits.
pub(crate) fn read_secret(reply: &Value) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(reply.text()?).ok().filter(|text| text.len() == 32)?;
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}
