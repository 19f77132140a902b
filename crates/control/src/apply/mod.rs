//! Applies a change set: reads the rows it touches, edits them in memory, validates the result, writes the difference.
//!
//! Not edit by edit: an import of ten thousand clients would need as many statements while all other writers wait.
//! [`RowSet`] holds the rows, [`ChangePlan`] edits them, [`check`] validates across rows. All of it happens inside one
//! [`WriteTx`], whose lock keeps the rows unchanged between reading and writing.

mod check;
mod dependents;
mod grants;
mod idempotency;
mod names;
mod plan;
mod plans;
mod row_set;
mod rule_suggestions;
mod wildcards;

use std::time::Duration;

pub(crate) use idempotency::{ApplyResult, IdempotencyKey};
pub(crate) use plan::ChangePlan;
use row_set::{RecordKey, RowSet};

use crate::db::DatabaseFuture;
use crate::write_tx::{Completion, WriteTx};
use crate::{ChangeSet, Result};

/// Time added to the transaction's deadline for each edit.
const PER_EDIT: Duration = Duration::from_millis(1);

/// Applies a change set, or returns the response of its first application.
pub(crate) fn apply<'a>(change_set: &'a ChangeSet, write: &'a mut WriteTx) -> DatabaseFuture<'a, ApplyResult> {
    Box::pin(apply_once(change_set, write))
}

async fn apply_once(change_set: &ChangeSet, write: &mut WriteTx) -> Result<ApplyResult> {
    write.tx.extend(PER_EDIT.saturating_mul(u32::try_from(change_set.edits.len()).unwrap_or(u32::MAX)));
    let key = IdempotencyKey::of(change_set)?;
    if let Some(key) = &key
        && let Some(answer) = key.find(write).await?
    {
        write.completion = Completion::Rollback;
        return Ok(answer);
    }
    let mut plan = ChangePlan::default();
    plan.read(change_set, write).await?;
    if let Err(error) = plan.apply_edits(change_set, write) {
        return Err(rule_suggestions::with_nearest(error, change_set, write).await);
    }
    plan.validate(change_set, write).await?;
    let changes = plan.write(write).await?;
    changes.iter().cloned().for_each(|change| write.record(change));
    if change_set.dry_run {
        write.completion = Completion::Rollback;
    } else if let Some(key) = &key {
        let generation = if changes.is_empty() { write.generation - 1 } else { write.generation };
        key.keep(generation, &changes, write).await?;
    }
    Ok(ApplyResult { changes, replayed: None })
}
