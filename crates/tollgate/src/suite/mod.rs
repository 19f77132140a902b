//! Tables of requests, times and expected decisions, run on a manual clock.
//!
//! [`fn@read`] turns a file into a table or a report with the place of every mistake; [`fn@run`] plays it and
//! answers what came out differently. Nothing here sleeps or depends on the time of day.

mod expect;
mod field;
mod read;
mod run;
mod step;
mod table;

pub use read::{is_table, read};
pub use run::{StepFailure, TableResult, run};
