//! The one way to change something.

use super::{Control, Work, not_yet, of_the_fleet};
use crate::{Applied, Author, Edit, Kind, Order, Result};

impl Control {
    /// Applies edits: all of them in one transaction, as one generation, with one audit row per change; or none.
    /// Durable when it answers.
    pub async fn apply(&self, _order: &Order) -> Result<Applied> {
        not_yet()
    }

    /// The edits that bring back what was in force in a generation. What was deleted comes back with new versions.
    pub async fn way_back(&self, _generation: i64) -> Result<Vec<Edit>> {
        not_yet()
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
