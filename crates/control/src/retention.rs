//! Deletes rows that are too old or too many, a few at a time behind the writes of a table.

use std::time::Duration;

use tokio::time::Instant as TokioInstant;
use tollgate_core::{Span, Time};

use crate::{Control, DatedRows, Instant, Result};

/// Rows deleted in one transaction: a rule change waits for at most one.
const ROWS_AT_ONCE: u32 = 1000;
/// Transactions of one call.
const BATCHES_MAX: usize = 20;

/// How long rows are kept, and when they are deleted next.
#[derive(Debug)]
pub struct Retention {
    /// The rows.
    pub rows: DatedRows,
    /// How long they are kept.
    pub keep: Duration,
    /// Most rows, whatever their age: a flood of new clients must not fill the database.
    pub most: Option<u32>,
    /// How often they are deleted, unless more are left.
    pub interval: Duration,
    /// When they are deleted next.
    pub due: TokioInstant,
}

impl Retention {
    /// Deletes what is due at this time of the wall clock. What a call leaves is deleted by the next one, and after a
    /// failure all of it an interval later.
    pub async fn prune(&mut self, control: &Control, wall: Time) -> Result<()> {
        if TokioInstant::now() < self.due {
            return Ok(());
        }
        let is_done = self.prune_batches(control, wall).await;
        if !matches!(is_done, Ok(false)) {
            self.due = TokioInstant::now() + self.interval;
        }
        is_done.map(drop)
    }

    /// Returns true if nothing is left to delete.
    async fn prune_batches(&self, control: &Control, wall: Time) -> Result<bool> {
        let old = Instant::from(wall.before(Span::from(self.keep)));
        let surplus = match self.most {
            Some(most) => control.surplus(self.rows, most).await?,
            None => None,
        };
        let before = surplus.map_or(old, |surplus| surplus.max(old));
        for _ in 0..BATCHES_MAX {
            if control.prune(self.rows, before, ROWS_AT_ONCE).await? < u64::from(ROWS_AT_ONCE) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
