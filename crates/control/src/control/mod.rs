//! Everything that can be asked of the database. One file per kind of question.

mod audit;
mod clients;
mod edits;
mod generation_listener;
mod history;
mod listing;
mod mode;
mod overrides;
mod rule_modes;
mod rules;
mod snapshot;
mod sql_edits;
mod tokens;
mod unaudited;
mod violations;
mod write;

pub use audit::{AuditFilter, AuditRecord, GenerationRecord, Verified};
pub use clients::ClientFilter;
pub use generation_listener::GenerationListener;
pub use mode::FleetState;
pub use overrides::OverrideFilter;
pub use rules::RuleFilter;
pub use snapshot::{ChangedKeys, Quarantined, Snapshot};
pub use tokens::TokenDraft;
pub use violations::{GroupBy, Offender, Violation, ViolationFilter, ViolationRecord};

use std::sync::Arc;

use tokio::sync::watch;

use crate::db::{self, DatabasePool, Schema, Tx};
use crate::{DatabaseUrl, Result};

/// The database. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Control {
    pool: DatabasePool,
    /// The last generation that was made through this, or a clone.
    committed: Arc<watch::Sender<i64>>,
}

impl Control {
    /// Gets ready without asking the database anything: a node may start while it is away.
    pub fn new(url: &DatabaseUrl) -> Result<Control> {
        Ok(Control { pool: DatabasePool::new(url)?, committed: Arc::new(watch::Sender::new(0)) })
    }

    /// Connects. Changes no tables; see [`migrate`](Control::migrate).
    pub async fn open(url: &DatabaseUrl) -> Result<Control> {
        let control = Control::new(url)?;
        control.schema().await.map(|_| control)
    }

    /// How the tables stand.
    pub async fn schema(&self) -> Result<Schema> {
        self.read(async |tx| db::schema(tx).await).await
    }

    /// Brings the tables to this version; answers how many steps that took. Safe to run from several nodes at once.
    pub async fn migrate(&self) -> Result<usize> {
        db::migrate(&self.pool).await
    }

    /// Looks at things as they are at one point in time.
    pub(crate) async fn read<T>(&self, look: impl AsyncFnOnce(&mut Tx) -> Result<T>) -> Result<T> {
        let mut tx = self.pool.read().await?;
        let seen = look(&mut tx).await;
        // Nothing was changed: an end that fails costs a connection, not an answer.
        let _ = tx.rollback().await;
        seen
    }

    pub(crate) fn pool(&self) -> &DatabasePool {
        &self.pool
    }

    /// Tells those who listen in this process.
    pub(crate) fn notify_generation(&self, generation: i64) {
        self.committed.send_if_modified(|last| std::mem::replace(last, generation.max(*last)) < generation);
    }
}
