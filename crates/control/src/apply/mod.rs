//! How an order becomes rows: read what it touches, change that in memory, validate the result, write it.
//!
//! Not edit by edit: an import of ten thousand clients would ask the database as many times, with all other writers
//! waiting. [`RowSet`] holds the rows that matter, [`ChangePlan`] changes them, [`check`] judges what must hold between them.
//! Everything happens inside one [`WriteTx`], whose lock makes what was read stay true until it is written.

mod check;
mod idempotency;
mod names;
mod plan;
mod row_set;
mod wildcards;

use std::time::Duration;

pub(crate) use idempotency::{ApplyResult, IdempotencyKey};
pub(crate) use plan::ChangePlan;
use row_set::{RecordKey, RowSet};

use crate::write_tx::{Completion, WriteTx};
use crate::{ChangeSet, Result};

/// How much longer than other work an order may take, for each edit.
const PER_EDIT: Duration = Duration::from_millis(1);

/// Does what an order says, or finds that it was done before.
pub(crate) async fn apply(change_set: &ChangeSet, write: &mut WriteTx) -> Result<ApplyResult> {
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
    plan.apply_edits(change_set, write)?;
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
