//! The one way to change something.

use super::Control;
use crate::apply;
use crate::edit::of_the_fleet;
use crate::write_tx::Work;
use crate::{Applied, Author, Kind, Order, Result};

impl Control {
    /// Applies edits: all of them in one transaction, as one generation, with one audit row per change; or none.
    /// Durable when it answers.
    pub async fn apply(&self, order: &Order) -> Result<Applied> {
        // Not by way of `write`: a closure that holds the order makes a future of which the compiler cannot prove to
        // callers that it may move between threads.
        let mut again = true;
        let (filled, generation) = loop {
            let mut work = Work::begin(self.pool()).await?;
            let filled = apply::fill(order, &mut work).await;
            if let Some(kept) = self.settle(work, &order.author, &order.action, filled, &mut again).await? {
                break kept;
            }
        };
        Ok(Applied {
            generation: filled.replayed.unwrap_or(generation),
            changes: filled.changes,
            replayed: filled.replayed.is_some(),
        })
    }

    /// Makes a generation in which anything may have changed: all nodes read everything anew.
    pub async fn refresh(&self, author: &Author) -> Result<i64> {
        let everything = async |work: &mut Work| {
            work.note(of_the_fleet(Kind::Everything, "", None, None));
            Ok(())
        };
        self.write(author, "refresh", everything).await.map(|((), generation)| generation)
    }
}
