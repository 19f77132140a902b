//! Runs the published test vectors, field by field, against anything that keeps buckets.
//!
//! Files are JSON as the reference implementation writes them. A step passes when every field of its `expect` agrees; a
//! configuration that must be refused counts as one step. Where a file has a separate answer for GCRA (`gcra_expect`,
//! after a clock stepped back), that one is expected. A file with an unknown field is refused.

mod calendars;
mod fields;
mod file;
mod leases;
mod limits;
mod reservations;
mod run;

use std::fmt;

use serde_json::Value;

pub use calendars::{CALENDAR_AMOUNT, CalendarCharge, CalendarStep, CalendarVectors};
pub use file::VectorFile;
pub use reservations::{ReservationCall, ReservationCase, ReservationVectors};
pub use run::run;

/// The result of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VectorReport {
    /// Steps whose every field agreed.
    pub passed: usize,
    /// Steps that differed.
    pub failed: usize,
    /// What differed, in the order of the file; a step may differ in several fields.
    pub differences: Vec<Difference>,
}

/// One field of one step that is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The case's name.
    pub case: String,
    /// The step's place in its case, from 0.
    pub step: usize,
    /// The field of `expect`; inside several rules `rules[1].remaining`.
    pub field: String,
    /// What the file says.
    pub expected: Value,
    /// What the subject reported.
    pub got: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { case, step, field, expected, got } = self;
        write!(f, "case {case}, step {step}, {field}: expected {expected}, got {got}")
    }
}

/// Why a file cannot be read as vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorFileError(pub String);

impl VectorFileError {
    fn within(&self, place: &str) -> VectorFileError {
        VectorFileError(format!("{place}: {self}"))
    }
}

impl fmt::Display for VectorFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VectorFileError {}
