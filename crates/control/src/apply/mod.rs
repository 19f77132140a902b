//! How an order becomes rows: read what it touches, change that in memory, judge the result, write it.
//!
//! Not edit by edit: an import of ten thousand clients would ask the database as many times, with all other writers
//! waiting. [`Shelf`] holds the rows that matter, [`Plan`] changes them, [`check`] judges what must hold between them.
//! Everything happens inside one [`Work`], whose lock makes what was read stay true until it is written.

mod check;
mod crowds;
mod names;
mod plan;
mod replay;
mod shelf;

use std::time::Duration;

pub(crate) use plan::Plan;
pub(crate) use replay::{Filled, Replay};
use shelf::{Key, Shelf};

use crate::write_tx::{Ending, Work};
use crate::{Order, Result};

/// How much longer than other work an order may take, for each edit.
const PER_EDIT: Duration = Duration::from_millis(1);

/// Does what an order says, or finds that it was done before.
pub(crate) async fn fill(order: &Order, work: &mut Work) -> Result<Filled> {
    work.tx.extend(PER_EDIT.saturating_mul(u32::try_from(order.edits.len()).unwrap_or(u32::MAX)));
    let replay = Replay::of(order)?;
    if let Some(replay) = &replay
        && let Some(answer) = replay.find(work).await?
    {
        work.ending = Ending::Undo;
        return Ok(answer);
    }
    let mut plan = Plan::default();
    plan.read(order, work).await?;
    plan.fold(order, work)?;
    plan.judge(order, work).await?;
    let changes = plan.write(work).await?;
    changes.iter().cloned().for_each(|change| work.note(change));
    if order.dry_run {
        work.ending = Ending::Undo;
    } else if let Some(replay) = &replay {
        let generation = if changes.is_empty() { work.generation - 1 } else { work.generation };
        replay.keep(generation, &changes, work).await?;
    }
    Ok(Filled { changes, replayed: None })
}
