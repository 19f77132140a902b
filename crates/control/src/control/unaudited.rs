//! Writes that are not audited: last use of tokens, violations.
//!
//! They take no part in the order of changes and make no generation, so they never delay one.

use super::Control;
use crate::Result;
use crate::db::Tx;

impl Control {
    /// Runs `operation` in a transaction of its own. Nodes may write the same rows and conflict: then it runs once
    /// more, so it must not keep state of its first attempt.
    pub(crate) async fn write_unaudited<T>(&self, mut operation: impl AsyncFnMut(&mut Tx) -> Result<T>) -> Result<T> {
        let mut may_retry = true;
        loop {
            let mut tx = self.pool().write().await?;
            match operation(&mut tx).await {
                Ok(answer) => return tx.commit().await.map(|()| answer),
                Err(error) => {
                    let retry = std::mem::take(&mut may_retry) && tx.is_retryable();
                    let _ = tx.rollback().await;
                    if !retry {
                        return Err(error);
                    }
                }
            }
        }
    }
}
