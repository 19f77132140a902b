//! Notifications that the rules changed, over Redis pub/sub.
//!
//! Faster than polling and independent of the database's own notifications. Nothing depends on it: if a message is
//! lost, or the server forbids subscriptions, nodes notice a change in another way.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate_resp::{RespValue, write_request};
use tollgate_store::random;
use tracing::{debug, info};

use super::redis_store::RedisStore;
use crate::client::connection::RedisConnection;

/// The channel.
pub(crate) const CHANNEL: &[u8] = b"tg:generation";

/// Minimum pause between attempts to subscribe; a random part of the same length is added.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause after the server refused the subscription.
const LONG_PAUSE: Duration = Duration::from_secs(60);
/// Idle time after which the connection is checked with a ping.
const SILENCE: Duration = Duration::from_secs(30);

/// Listens for changes. Dropping it ends the subscription.
pub struct ChangeListener<'a> {
    store: &'a RedisStore,
    connection: Option<RedisConnection>,
    refused: bool,
}

impl RedisStore {
    /// Notifies all listening nodes. Best effort.
    pub async fn notify_changed(&self) {
        let Some(primary) = self.topology.primaries().into_iter().next() else { return };
        let published = primary.command(&[b"PUBLISH", CHANNEL, b"1"], self.context.config.within).await;
        if published.is_err() {
            debug!("notification of a change failed: nodes notice it by polling");
        }
    }

    /// A listener for changes.
    pub fn change_listener(&self) -> ChangeListener<'_> {
        ChangeListener { store: self, connection: None, refused: false }
    }
}

impl ChangeListener<'_> {
    /// Waits until the rules changed, or may have changed unnoticed.
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

    /// Subscribes; false if that failed.
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
                    info!("no permission to subscribe to tg:generation: this node notices changed rules in other ways");
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
