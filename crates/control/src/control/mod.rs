//! Operations on the database, one file per topic.

mod api_keys;
mod audit;
mod clients;
mod dated_rows;
mod deliveries;
mod generation_listener;
mod grants;
mod history;
mod listing;
mod mode;
mod overrides;
mod penalties;
mod period_usage;
mod plans;
mod resets;
mod rule_modes;
mod rules;
mod snapshot;
mod sql_edits;
mod tokens;
mod unaudited;
mod violations;
mod webhooks;
mod write;

pub use api_keys::{ApiKeyDraft, ApiKeyFilter, LoadedApiKeys};
pub use audit::{AuditFilter, AuditRecord, GenerationRecord, Verified};
pub use clients::ClientFilter;
pub use dated_rows::DatedRows;
pub use deliveries::{DeliveryAttempt, DeliveryDraft, WaitingDeliveries};
pub use generation_listener::GenerationListener;
pub use grants::GrantFilter;
pub use mode::FleetState;
pub use overrides::OverrideFilter;
pub use penalties::{BegunPenalty, PenaltyFilter};
pub use period_usage::{PeriodUsage, PeriodUsageFilter, PeriodUsageRecord};
pub use rules::RuleFilter;
pub use snapshot::{ChangedKeys, Quarantined, Snapshot};
pub use tokens::TokenDraft;
pub use violations::{GroupBy, Offender, Violation, ViolationFilter, ViolationRecord};
pub use webhooks::WebhookDraft;

use std::sync::Arc;

use tokio::sync::watch;

use crate::db::{self, DatabasePool, DatabaseTimeouts, Schema, Tx};
use crate::{DatabaseUrl, Result};

/// The database. Clones share connections.
#[derive(Clone, Debug)]
pub struct Control {
    pool: DatabasePool,
    /// The last generation committed through this instance or a clone.
    committed: Arc<watch::Sender<i64>>,
}

impl Control {
    /// Prepares connections without opening any: a node may start while the database is unavailable.
    pub fn new(url: &DatabaseUrl) -> Result<Control> {
        Control::with_timeouts(url, DatabaseTimeouts::default())
    }

    /// The same with other time limits.
    pub fn with_timeouts(url: &DatabaseUrl, timeouts: DatabaseTimeouts) -> Result<Control> {
        Ok(Control { pool: DatabasePool::new(url, timeouts)?, committed: Arc::new(watch::Sender::new(0)) })
    }

    /// Connects and reads the schema version. Changes no tables; see [`migrate`](Control::migrate).
    pub async fn open(url: &DatabaseUrl) -> Result<Control> {
        let control = Control::new(url)?;
        control.schema().await.map(|_| control)
    }

    /// The version of the tables.
    pub async fn schema(&self) -> Result<Schema> {
        self.read(async |tx| db::schema(tx).await).await
    }

    /// Migrates the tables to this version and returns the number of steps. Safe to run from several nodes at once.
    pub async fn migrate(&self) -> Result<usize> {
        db::migrate(&self.pool).await
    }

    /// Runs a read in one snapshot.
    pub(crate) async fn read<T>(&self, operation: impl AsyncFnOnce(&mut Tx) -> Result<T>) -> Result<T> {
        let mut tx = self.pool.read().await?;
        let result = operation(&mut tx).await;
        // Nothing was written: a failed rollback costs a connection, not the result.
        let _ = tx.rollback().await;
        result
    }

    pub(crate) fn pool(&self) -> &DatabasePool {
        &self.pool
    }

    /// Notifies listeners in this process.
    pub(crate) fn notify_generation(&self, generation: i64) {
        self.committed.send_if_modified(|last| std::mem::replace(last, generation.max(*last)) < generation);
    }
}
