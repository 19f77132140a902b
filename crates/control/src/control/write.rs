//! Audited writes, retried once after a conflict: change sets, and operations of other topics.

use super::Control;
use crate::apply;
use crate::db::DatabaseFuture;
use crate::edit::fleet_change;
use crate::write_tx::WriteTx;
use crate::{AppliedChanges, Author, ChangeSet, RecordKind, Result};

impl Control {
    /// Applies all edits in one transaction, as one generation with one audit row per change, or none. Durable on
    /// return.
    pub fn apply<'a>(&'a self, change_set: &'a ChangeSet) -> DatabaseFuture<'a, AppliedChanges> {
        Box::pin(self.apply_retrying(change_set))
    }

    async fn apply_retrying(&self, change_set: &ChangeSet) -> Result<AppliedChanges> {
        // Not through `write`: the compiler cannot prove that the future of a closure that borrows the change set is
        // `Send`.
        let mut may_retry = true;
        let (filled, generation) = loop {
            let mut write = WriteTx::begin(self.pool()).await?;
            let filled = apply::apply(change_set, &mut write).await;
            if let Some(result) =
                self.finish_write(write, &change_set.author, &change_set.action, filled, &mut may_retry).await?
            {
                break result;
            }
        };
        Ok(AppliedChanges {
            generation: filled.replayed.unwrap_or(generation),
            changes: filled.changes,
            replayed: filled.replayed.is_some(),
        })
    }

    /// Makes a generation that causes all nodes to load everything again.
    pub async fn refresh(&self, author: &Author) -> Result<i64> {
        let everything = async |write: &mut WriteTx| {
            write.record(fleet_change(RecordKind::Everything, "", None, None));
            Ok(())
        };
        self.write(author, "refresh", everything).await.map(|((), generation)| generation)
    }

    /// Runs `operation` in one write transaction: lock, audit of the recorded changes, generation, notification of all
    /// nodes. Returns its result and the generation then in force.
    ///
    /// After a conflict with a direct write to the tables it runs once more, so it must not keep state of its first
    /// attempt.
    pub(crate) async fn write<T>(
        &self,
        author: &Author,
        action: &str,
        mut operation: impl AsyncFnMut(&mut WriteTx) -> Result<T>,
    ) -> Result<(T, i64)> {
        let mut may_retry = true;
        loop {
            let mut write = WriteTx::begin(self.pool()).await?;
            let done = operation(&mut write).await;
            if let Some(result) = self.finish_write(write, author, action, done, &mut may_retry).await? {
                return Ok(result);
            }
        }
    }

    /// Finishes a write transaction: commits or rolls back. `None` after a conflict, if it is to be repeated.
    pub(super) async fn finish_write<T>(
        &self,
        write: WriteTx,
        author: &Author,
        action: &str,
        done: Result<T>,
        may_retry: &mut bool,
    ) -> Result<Option<(T, i64)>> {
        match done {
            Ok(answer) => {
                let generation = write.finish(author, action).await?;
                self.notify_generation(generation);
                Ok(Some((answer, generation)))
            }
            Err(error) => {
                let retry = std::mem::take(may_retry) && write.tx.is_retryable();
                // The error matters more than a failed rollback.
                let _ = write.tx.rollback().await;
                if retry { Ok(None) } else { Err(error) }
            }
        }
    }
}
