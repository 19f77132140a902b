//! The fault matrix of RELIABILITY section 2, as far as it concerns the store: each row is done to a fleet of real
//! processes under load, and ends in the history checker.

mod caller;
mod conclude;
mod lab;
mod load;
mod node;
mod rows;
pub mod rules;
mod table;

use std::path::Path;
use std::time::Duration;

pub use caller::Caller;
pub use lab::Lab;
pub use load::{BackgroundLoad, LoadProfile, LoadRequest};
pub use node::TestNode;
pub use rows::ROWS;
pub use table::table;

use crate::patience::Watch;

/// A fault, and what is expected of a fleet that meets it.
#[derive(Clone, Copy, Debug)]
pub struct FaultRow {
    /// `F1`, as in the matrix.
    pub id: &'static str,
    /// What is done.
    pub title: &'static str,
    /// Whether it is quick enough for every change.
    pub speed: Speed,
    /// Does it.
    pub run: fn(Lab) -> RowResult,
}

/// How long a row takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// Some seconds.
    Fast,
    /// Longer.
    Slow,
}

/// What came of a row.
#[derive(Clone, Debug, Default)]
pub struct RowResult {
    /// Units that the bucket nearest to its bound admitted.
    pub admitted: u64,
    /// The most that it might have.
    pub bound: u64,
    /// How many decisions were checked.
    pub decisions: u64,
    /// What was expected and was not so.
    pub broken: Vec<String>,
    /// What a reader should know.
    pub remarks: Vec<String>,
}

impl RowResult {
    /// True if everything was as expected.
    pub fn held(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Runs a row against a binary, and answers what came of it and how long that took.
pub fn run(row: &FaultRow, tollgate: &Path) -> (RowResult, Duration) {
    let watch = Watch::start();
    let outcome = (row.run)(Lab::new(tollgate));
    (outcome, watch.elapsed())
}

/// The row of this name, in any case of its letters.
pub fn find(id: &str) -> Option<&'static FaultRow> {
    ROWS.iter().find(|row| row.id.eq_ignore_ascii_case(id))
}
