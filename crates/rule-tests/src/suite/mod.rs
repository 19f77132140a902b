//! Test tables: requests, times and expected decisions, run on a manual clock.
//!
//! [`fn@read`] parses a file into a table, or reports every mistake with its location; [`fn@run`] runs it and returns
//! the steps that failed. Nothing sleeps or depends on the time of day.

mod expect;
mod field;
mod read;
mod run;
mod step;
mod table;

pub use read::{is_table, read};
pub use run::{StepFailure, TableResult, run};
