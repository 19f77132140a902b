//! Applying change sets.

use super::Control;
use crate::apply;
use crate::edit::fleet_change;
use crate::write_tx::WriteTx;
use crate::{AppliedChanges, Author, ChangeSet, RecordKind, Result};

impl Control {
    /// Applies all edits in one transaction, as one generation with one audit row per change, or none. Durable on
    /// return.
    pub async fn apply(&self, change_set: &ChangeSet) -> Result<AppliedChanges> {
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
}
