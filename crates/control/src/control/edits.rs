//! The one way to change something.

use super::{Control, not_yet};
use crate::{Applied, Author, Edit, Order, Result};

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
    pub async fn refresh(&self, _author: &Author) -> Result<i64> {
        not_yet()
    }
}
