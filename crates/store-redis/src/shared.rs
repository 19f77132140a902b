//! What all connections of one store share.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tollgate_core::{Clock, SlotId};
use tollgate_store::random;

use crate::nodes::Nodes;
use crate::pace::Pace;
use crate::probe::Lineage;
use crate::url::Layout;
use crate::{RedisConfig, tls};

/// The configuration, the clock, who we are and whom we trust.
pub struct Shared {
    /// What was configured.
    pub config: RedisConfig,
    /// This node's clock; deadlines are measured by it.
    pub clock: Arc<dyn Clock>,
    /// Wakes whoever knows the topology: a server was lost, or is not what it was.
    pub unsettled: Notify,
    /// How many nodes share the store.
    pub(crate) nodes: Nodes,
    /// Whether this node itself is slow.
    pub(crate) pace: Pace,
    /// This process among all that ever shared the store.
    pub(crate) id: SlotId,
    /// What each key of an epoch was seen with last, also on a server that is no longer used.
    pub(crate) lineages: Mutex<HashMap<String, Lineage>>,
    tls: Mutex<Option<TlsConnector>>,
}

impl Shared {
    /// What connections to this store need.
    pub fn new(config: RedisConfig, clock: Arc<dyn Clock>) -> Arc<Shared> {
        let id = SlotId(u128::from(random::unpredictable()) << 64 | u128::from(random::unpredictable()));
        Arc::new(Shared {
            config,
            clock,
            unsettled: Notify::new(),
            nodes: Nodes::default(),
            pace: Pace::default(),
            id,
            lineages: Mutex::default(),
            tls: Mutex::default(),
        })
    }

    /// True if keys of different slots must not meet in one call.
    pub(crate) fn is_clustered(&self) -> bool {
        self.config.url.layout == Layout::Cluster
    }

    /// Who is trusted. Read at first use, and again after somebody was not.
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

    /// The next connection reads anew whom to trust: the file may have changed.
    pub(crate) fn forget_tls(&self) {
        *self.tls.lock() = None;
    }
}
