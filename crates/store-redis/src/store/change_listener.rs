//! A bell that all nodes of a store hear: somebody changed the rules.
//!
//! Beside what the database itself tells, and quicker than looking. Nothing depends on it: a message that is lost, or a
//! server that does not let us listen, only means that a change is noticed by one of the other ways.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate_resp::{RespValue, write_request};
use tollgate_store::random;
use tracing::{debug, info};

use super::redis_store::RedisStore;
use crate::client::connection::Connection;

/// Where it rings.
pub(crate) const CHANNEL: &[u8] = b"tg:generation";

/// Between two attempts to listen, at least; as much again is drawn by lot.
const PAUSE: Duration = Duration::from_secs(1);
/// How long to wait for somebody who does not let us listen.
const LONG_PAUSE: Duration = Duration::from_secs(60);
/// How often a silent line is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(30);

/// Hears the bell. Dropped, it stops listening.
pub struct Bell<'a> {
    store: &'a RedisStore,
    line: Option<Connection>,
    refused: bool,
}

impl RedisStore {
    /// Rings: all nodes that listen hear it soon, or never.
    pub async fn ring(&self) {
        let Some(primary) = self.topology.primaries().into_iter().next() else { return };
        let rung = primary.command(&[b"PUBLISH", CHANNEL, b"1"], self.shared.config.within).await;
        if rung.is_err() {
            debug!("the bell did not ring: nodes notice the change by looking");
        }
    }

    /// Somebody who listens.
    pub fn bell(&self) -> Bell<'_> {
        Bell { store: self, line: None, refused: false }
    }
}

impl Bell<'_> {
    /// Ready when it rang, and when it may have rung unheard.
    pub async fn heard(&mut self) {
        loop {
            let Some(line) = &mut self.line else {
                if self.listen().await {
                    return;
                }
                let pause = if self.refused { LONG_PAUSE } else { PAUSE };
                sleep(pause + PAUSE.mul_f64(random::unpredictable() as f64 / u64::MAX as f64)).await;
                continue;
            };
            match timeout(SILENCE, line.reply()).await {
                Ok(Ok(message)) if is_ring(&message) => return,
                Ok(Ok(_)) => {} // the answer to a ping
                Ok(Err(_)) => self.line = None,
                Err(_) => {
                    let mut out = Vec::new();
                    write_request(&mut out, &[b"PING"]);
                    if !matches!(timeout(PAUSE, line.write(&out, &mut 0)).await, Ok(Ok(()))) {
                        self.line = None;
                    }
                }
            }
        }
    }

    /// Begins to listen; false if nobody lets us.
    async fn listen(&mut self) -> bool {
        let shared = &self.store.shared;
        let Some(primary) = self.store.topology.primaries().into_iter().next() else { return false };
        let login = shared.config.url.login.as_ref();
        let Ok(mut line) = Connection::open_bare(shared, primary.address(), login).await else { return false };
        match timeout(PAUSE, line.call(&[b"SUBSCRIBE", CHANNEL])).await {
            Ok(Ok(RespValue::Array(_))) => {
                self.line = Some(line);
                self.refused = false;
                true
            }
            Ok(Ok(_)) => {
                if !std::mem::replace(&mut self.refused, true) {
                    info!(
                        "the store does not let this node subscribe to tg:generation: changed rules are noticed by other ways"
                    );
                }
                false
            }
            _ => false,
        }
    }
}

fn is_ring(message: &RespValue) -> bool {
    let Some([kind, ..]) = message.array() else { return false };
    kind.text() == Some(b"message")
}
