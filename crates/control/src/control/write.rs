//! Changes: done in one transaction, and done again if another was in the way.

use super::Control;
use crate::write_tx::WriteTx;
use crate::{Author, Result};

impl Control {
    /// Does some work in one transaction, with everything that belongs to a change: the lock, the audit of what it
    /// noted, the generation, the word to all nodes. Answers what the work answers, and the generation in force then.
    ///
    /// WriteTx that lost a race against somebody who writes to the tables directly is done once more, so it may keep
    /// nothing of its first attempt.
    pub(crate) async fn write<T>(
        &self,
        author: &Author,
        action: &str,
        mut operation: impl AsyncFnMut(&mut WriteTx) -> Result<T>,
    ) -> Result<(T, i64)> {
        let mut again = true;
        loop {
            let mut write = WriteTx::begin(self.pool()).await?;
            let done = operation(&mut write).await;
            if let Some(kept) = self.finish_write(write, author, action, done, &mut again).await? {
                return Ok(kept);
            }
        }
    }

    /// Ends work that was write: keeps it, or undoes it. `None` if it lost a race, and is to be done once more.
    pub(super) async fn finish_write<T>(
        &self,
        write: WriteTx,
        author: &Author,
        action: &str,
        done: Result<T>,
        again: &mut bool,
    ) -> Result<Option<(T, i64)>> {
        match done {
            Ok(answer) => {
                let generation = write.finish(author, action).await?;
                self.notify_generation(generation);
                Ok(Some((answer, generation)))
            }
            Err(error) => {
                let once_more = std::mem::take(again) && write.tx.is_retryable();
                // What it complained about matters more than how its rollback went.
                let _ = write.tx.rollback().await;
                if once_more { Ok(None) } else { Err(error) }
            }
        }
    }
}
