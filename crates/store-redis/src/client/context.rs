//! The context of all connections of a store.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tollgate_core::{Clock, SlotId};
use tollgate_store::random;

use super::config::RedisConfig;
use super::lineage::Lineage;
use super::nodes::Nodes;
use super::timer_lag::{TICK, TimerLag};
use super::tls;
use super::url::Layout;

/// Configuration, clock, identity and TLS settings.
pub struct RedisContext {
    /// The configuration.
    pub config: RedisConfig,
    /// This node's clock; deadlines use it.
    pub clock: Arc<dyn Clock>,
    /// Wakes the task that follows the topology: a server was lost or changed its role.
    pub topology_changed: Notify,
    /// The number of nodes that share the store.
    pub(crate) nodes: Nodes,
    /// Whether this node is slow.
    pub(crate) timer_lag: TimerLag,
    /// Identifies this process among all that ever shared the store.
    pub(crate) id: SlotId,
    /// The lineage last seen under each epoch key, also on servers that are not used any more.
    pub(crate) lineages: Mutex<HashMap<String, Lineage>>,
    tls: Mutex<Option<TlsConnector>>,
}

impl RedisContext {
    /// A context for this store.
    pub fn new(config: RedisConfig, clock: Arc<dyn Clock>) -> Arc<RedisContext> {
        let id = SlotId(u128::from(random::unpredictable()) << 64 | u128::from(random::unpredictable()));
        Arc::new(RedisContext {
            config,
            clock,
            topology_changed: Notify::new(),
            nodes: Nodes::default(),
            timer_lag: TimerLag::default(),
            id,
            lineages: Mutex::default(),
            tls: Mutex::default(),
        })
    }

    /// True if keys of different slots must not be in one call.
    pub(crate) fn is_clustered(&self) -> bool {
        self.config.url.layout == Layout::Cluster
    }

    /// Measures the timer lag for as long as the store is in use. Only the first call has an effect.
    pub(crate) fn measure_timer_lag(self: &Arc<RedisContext>) {
        if self.timer_lag.begin() {
            tokio::spawn(measure(Arc::downgrade(self)));
        }
    }

    /// The TLS configuration. Read at the first use, and again after a failed handshake.
    pub(crate) async fn tls(&self) -> Result<TlsConnector, String> {
        if let Some(connector) = self.tls.lock().clone() {
            return Ok(connector);
        }
        let config = self.config.clone();
        let read = tokio::task::spawn_blocking(move || tls::connector(&config)).await;
        let connector = read.map_err(|_| "certificates cannot be read".to_owned())??;
        *self.tls.lock() = Some(connector.clone());
        Ok(connector)
    }

    /// The next connection reads the TLS files again: they may have changed.
    pub(crate) fn forget_tls(&self) {
        *self.tls.lock() = None;
    }
}

async fn measure(context: Weak<RedisContext>) {
    while let Some(context) = context.upgrade() {
        context.timer_lag.expect(context.clock.now().after(TICK));
        let again = Arc::downgrade(&context);
        drop(context);
        tokio::time::sleep(Duration::from(TICK)).await;
        let Some(context) = again.upgrade() else { return };
        context.timer_lag.fired(context.clock.now(), context.config.within);
    }
}
