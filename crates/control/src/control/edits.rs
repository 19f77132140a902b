//! The one way to change something.

use super::Control;
use crate::apply;
use crate::edit::fleet_change;
use crate::write_tx::WriteTx;
use crate::{AppliedChanges, Author, ChangeSet, RecordKind, Result};

impl Control {
    /// Applies edits: all of them in one transaction, as one generation, with one audit row per change; or none.
    /// Durable when it answers.
    pub async fn apply(&self, change_set: &ChangeSet) -> Result<AppliedChanges> {
        // Not by way of `write`: a closure that holds the order makes a future of which the compiler cannot prove to
        // callers that it may move between threads.
        let mut again = true;
        let (filled, generation) = loop {
            let mut write = WriteTx::begin(self.pool()).await?;
            let filled = apply::apply(change_set, &mut write).await;
            if let Some(kept) =
                self.finish_write(write, &change_set.author, &change_set.action, filled, &mut again).await?
            {
                break kept;
            }
        };
        Ok(AppliedChanges {
            generation: filled.replayed.unwrap_or(generation),
            changes: filled.changes,
            replayed: filled.replayed.is_some(),
        })
    }

    /// Makes a generation in which anything may have changed: all nodes read everything anew.
    pub async fn refresh(&self, author: &Author) -> Result<i64> {
        let everything = async |write: &mut WriteTx| {
            write.record(fleet_change(RecordKind::Everything, "", None, None));
            Ok(())
        };
        self.write(author, "refresh", everything).await.map(|((), generation)| generation)
    }
}
