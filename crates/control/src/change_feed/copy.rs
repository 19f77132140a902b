//! A copy of a remote database on this node's disk.
//!
//! The copy is a SQLite file with the same tables, so that the same code reads it. It is updated like a node: it reads
//! the changes since its generation and applies them in one transaction.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::load::{LoadContext, LoadExtent, LoadedState};
use super::table::{API_KEYS, CLIENTS, CopiedTable, GRANTS, NAMESPACES, OVERRIDES, PLANS, RULE_MODES, RULES, TOKENS};
use crate::control::{ChangedKeys, Snapshot};
use crate::db::{Tx, sql};
use crate::{Control, DatabaseUrl, Result};

/// Shortest time between two updates; changes in between are copied together.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// Delay after a failed update.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Keeps the copy up to date until dropped.
#[derive(Debug)]
pub struct LocalCopy {
    to: Control,
    trigger: Arc<Notify>,
    task: AbortHandle,
}

impl LocalCopy {
    /// Opens the copy in this file and creates it if absent. Needs a runtime.
    pub async fn open(file: &Path, from: Control) -> Result<LocalCopy> {
        let to = Control::new(&DatabaseUrl::Sqlite(file.to_owned()))?;
        to.migrate().await?;
        let trigger = Arc::new(Notify::new());
        let task = tokio::spawn(follow(from, to.clone(), trigger.clone())).abort_handle();
        Ok(LocalCopy { to, trigger, task })
    }

    /// Requests an update. Never waits.
    pub(super) fn catch_up(&self) {
        self.trigger.notify_one();
    }

    /// The content of the copy; `None` if nothing was ever copied.
    pub(super) async fn read(&self, context: &LoadContext) -> Option<LoadedState> {
        let kept = LoadedState::load(&self.to, context).await;
        kept.ok().filter(|loaded| loaded.state.generation > 0)
    }

    /// The generation of the copy.
    pub async fn generation(&self) -> Result<i64> {
        Ok(self.to.state().await?.generation)
    }
}

impl Drop for LocalCopy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(from: Control, to: Control, trigger: Arc<Notify>) {
    loop {
        trigger.notified().await;
        match catch_up(&from, &to).await {
            Ok(()) => sleep(MIN_INTERVAL).await,
            Err(why) => {
                warn!(%why, "cannot update the copy of the database on disk; retrying");
                sleep(RETRY_DELAY).await;
                trigger.notify_one();
            }
        }
    }
}

async fn catch_up(from: &Control, to: &Control) -> Result<()> {
    let has = to.state().await?;
    let mut snapshot = from.snapshot().await?;
    let touched = snapshot.changed_since(has.generation).await?;
    let audit_head = to.snapshot().await?.audit_head().await?;
    let continues = snapshot.continues_from(&audit_head).await?;
    if touched.state == has && continues {
        return Ok(());
    }
    // Some changes, such as two rules that swap names, fail row by row. A full copy succeeds.
    if continues
        && !touched.everything
        && has.generation > 0
        && write(to, &mut snapshot, &touched, LoadExtent::Incremental).await.is_ok()
    {
        return Ok(());
    }
    write(to, &mut snapshot, &touched, LoadExtent::Full).await
}

async fn write(to: &Control, snapshot: &mut Snapshot, touched: &ChangedKeys, extent: LoadExtent) -> Result<()> {
    let mut tx = to.pool().write_long().await?;
    // The copy accepts rows that violate a CHECK, as the database may hold them, and records no edits.
    tx.run(sql!("PRAGMA ignore_check_constraints = ON")).await?;
    tx.run(sql!("UPDATE tollgate_state SET writing = TRUE")).await?;
    match extent {
        LoadExtent::Full => whole(&mut snapshot.tx, &mut tx).await?,
        LoadExtent::Incremental => step(&mut snapshot.tx, &mut tx, touched).await?,
    }
    let state = touched.state;
    let ((number, hash), secret) = (snapshot.audit_head().await?, snapshot.secret().await?);
    tx.run(sql!(
        "UPDATE tollgate_state SET generation = $1, mode = $2, mode_since = $3, secret = $4, audit_number = $5, \
         audit_hash = $6, writing = FALSE",
        state.generation,
        state.mode.name(),
        state.mode_since,
        secret,
        number,
        hash,
    ))
    .await?;
    tx.commit().await?;
    debug!(generation = state.generation, ?extent, "copied");
    Ok(())
}

async fn whole(from: &mut Tx, to: &mut Tx) -> Result<()> {
    for table in [&OVERRIDES, &GRANTS, &RULE_MODES, &RULES, &CLIENTS, &PLANS, &NAMESPACES, &TOKENS, &API_KEYS] {
        to.run(table.empty()).await?;
    }
    for table in [&NAMESPACES, &RULES, &RULE_MODES, &PLANS, &CLIENTS, &OVERRIDES, &GRANTS, &TOKENS, &API_KEYS] {
        let mut after = None;
        while let Some(page) = table.page(from, after.as_deref()).await? {
            for row in &page.rows {
                to.run(table.insert(row)).await?;
            }
            after = Some(page.last);
        }
    }
    Ok(())
}

async fn step(from: &mut Tx, to: &mut Tx, touched: &ChangedKeys) -> Result<()> {
    let of_rules = touched.rules.iter().map(|(namespace, _)| namespace);
    for namespace in touched.namespaces.iter().chain(of_rules).collect::<BTreeSet<_>>() {
        replace(&NAMESPACES, from, to, &[namespace]).await?;
        replace(&RULE_MODES, from, to, &[namespace]).await?;
        replace(&PLANS, from, to, &[namespace]).await?;
    }
    for (namespace, id) in &touched.rules {
        // Overrides, grants and modes of a deleted rule have audit rows of their own.
        match RULES.of(from, &[namespace, id]).await?.first() {
            Some(row) => to.run(RULES.upsert(row)).await?,
            None => to.run(RULES.delete(vec![namespace.as_str().into(), id.as_str().into()])).await?,
        };
    }
    for (namespace, client_key) in &touched.clients {
        for table in [&CLIENTS, &OVERRIDES, &GRANTS] {
            replace(table, from, to, &[namespace, client_key]).await?;
        }
    }
    for (namespace, id) in &touched.api_keys {
        replace(&API_KEYS, from, to, &[namespace, id]).await?;
    }
    if touched.tokens {
        replace(&TOKENS, from, to, &[]).await?;
    }
    Ok(())
}

/// Replaces the rows about these values.
async fn replace(table: &CopiedTable, from: &mut Tx, to: &mut Tx, of: &[&str]) -> Result<()> {
    to.run(table.delete_of(of)).await?;
    for row in table.of(from, of).await? {
        to.run(table.insert(&row)).await?;
    }
    Ok(())
}
