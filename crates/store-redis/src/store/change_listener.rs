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
use crate::client::connection::RedisConnection;

/// Where it rings.
pub(crate) const CHANNEL: &[u8] = b"tg:generation";

/// Between two attempts to listen, at least; as much again is drawn by lot.
const PAUSE: Duration = Duration::from_secs(1);
/// How long to wait for somebody who does not let us listen.
const LONG_PAUSE: Duration = Duration::from_secs(60);
/// How often a silent line is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(30);

/// Hears the bell. Dropped, it stops listening.
pub struct ChangeListener<'a> {
    store: &'a RedisStore,
    connection: Option<RedisConnection>,
    refused: bool,
}

impl RedisStore {
    /// Rings: all nodes that listen hear it soon, or never.
    pub async fn notify_changed(&self) {
        let Some(primary) = self.topology.primaries().into_iter().next() else { return };
        let published = primary.command(&[b"PUBLISH", CHANNEL, b"1"], self.context.config.within).await;
        if published.is_err() {
            debug!("the bell did not ring: nodes notice the change by looking");
        }
    }

    /// Somebody who listens.
    pub fn change_listener(&self) -> ChangeListener<'_> {
        ChangeListener { store: self, connection: None, refused: false }
    }
}

impl ChangeListener<'_> {
    /// Ready when it rang, and when it may have rung unheard.
    pub async fn changed(&mut self) {
        loop {
            let Some(connection) = &mut self.connection else {
                if self.listen().await {
                    return;
                }
                let pause = if self.refused { LONG_PAUSE } else { PAUSE };
                sleep(pause + PAUSE.mul_f64(random::unpredictable() as f64 / u64::MAX as f64)).await;
                continue;
            };
            match timeout(SILENCE, connection.reply()).await {
                Ok(Ok(message)) if is_message(&message) => return,
                Ok(Ok(_)) => {} // the answer to a ping
                Ok(Err(_)) => self.connection = None,
                Err(_) => {
                    let mut out = Vec::new();
                    write_request(&mut out, &[b"PING"]);
                    if !matches!(timeout(PAUSE, connection.write(&out, &mut 0)).await, Ok(Ok(()))) {
                        self.connection = None;
                    }
                }
            }
        }
    }

    /// Begins to listen; false if nobody lets us.
    async fn listen(&mut self) -> bool {
        let context = &self.store.context;
        let Some(primary) = self.store.topology.primaries().into_iter().next() else { return false };
        let login = context.config.url.login.as_ref();
        let Ok(mut connection) = RedisConnection::open_bare(context, primary.address(), login).await else {
            return false;
        };
        match timeout(PAUSE, connection.call(&[b"SUBSCRIBE", CHANNEL])).await {
            Ok(Ok(RespValue::Array(_))) => {
                self.connection = Some(connection);
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

fn is_message(message: &RespValue) -> bool {
    let Some([kind, ..]) = message.array() else { return false };
    kind.text() == Some(b"message")
}
