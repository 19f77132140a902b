//! The fault matrix of RELIABILITY section 2, as far as it concerns the store: each row injects a fault into a fleet of
//! real processes under load, and ends with the history checker.

mod caller;
mod conclude;
mod lab;
mod load;
mod node;
mod reserving;
mod rows;
pub mod rules;
mod table;

use std::path::Path;
use std::time::Duration;

pub use caller::Caller;
pub use lab::{Lab, STORE_PATIENCE};
pub use load::{BackgroundLoad, LoadProfile, LoadRequest};
pub use node::TestNode;
pub use rows::ROWS;
pub use table::table;

use crate::patience::Watch;

/// A fault, and the expected behaviour of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct FaultRow {
    /// `F1`, as in the matrix.
    pub id: &'static str,
    /// The fault.
    pub title: &'static str,
    /// Whether it is fast enough to run on every change.
    pub speed: Speed,
    /// Runs it.
    pub run: fn(Lab) -> RowResult,
}

/// How long a row takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// A few seconds.
    Fast,
    /// Longer.
    Slow,
}

/// The result of a row.
#[derive(Clone, Debug, Default)]
pub struct RowResult {
    /// Units admitted by the bucket nearest to its bound.
    pub admitted: u64,
    /// Its bound.
    pub bound: u64,
    /// How many decisions were checked.
    pub decisions: u64,
    /// Expectations that failed.
    pub broken: Vec<String>,
    /// Remarks for the reader of the table.
    pub remarks: Vec<String>,
}

impl RowResult {
    /// True if everything was as expected.
    pub fn held(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Runs a row against a binary, and returns its result and duration.
pub fn run(row: &FaultRow, tollgate: &Path) -> (RowResult, Duration) {
    let watch = Watch::start();
    let outcome = (row.run)(Lab::new(tollgate));
    (outcome, watch.elapsed())
}

/// The row of this name, ignoring case.
pub fn find(id: &str) -> Option<&'static FaultRow> {
    ROWS.iter().find(|row| row.id.eq_ignore_ascii_case(id))
}
