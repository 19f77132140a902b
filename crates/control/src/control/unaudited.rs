//! What is written without being a change that anybody made: when tokens were used, who was refused.
//!
//! It stands in no line with the changes, has no audit and makes no generation, so it never holds one up.

use super::Control;
use crate::Result;
use crate::db::Tx;

impl Control {
    /// Writes in a transaction of its own. Nodes that write the same rows may get in each other's way, and the loser
    /// does its work once more, so it may keep nothing of its first attempt.
    pub(crate) async fn write_unaudited<T>(&self, mut operation: impl AsyncFnMut(&mut Tx) -> Result<T>) -> Result<T> {
        let mut again = true;
        loop {
            let mut tx = self.pool().write().await?;
            match operation(&mut tx).await {
                Ok(answer) => return tx.commit().await.map(|()| answer),
                Err(error) => {
                    let once_more = std::mem::take(&mut again) && tx.is_retryable();
                    let _ = tx.rollback().await;
                    if !once_more {
                        return Err(error);
                    }
                }
            }
        }
    }
}
