//! Tables of requests, times and expected decisions, run on a manual clock.
//!
//! [`fn@read`] turns a file into a [`Table`] or a report with the place of every mistake; [`fn@run`] plays it and
//! answers what came out differently. Nothing here sleeps or depends on the time of day.

mod expect;
mod field;
mod read;
mod run;
mod step;

pub use read::{is_table, read};
pub use run::{Failure, Verdict, run};

use tollgate_core::Time;
use tollgate_rules::ruleset::RuleSet;

use self::step::Step;

/// A table, ready to run.
#[derive(Debug)]
pub struct Table {
    /// The rules it is about.
    rules: RuleSet,
    /// The namespace of steps that name none.
    namespace: String,
    /// When it begins.
    start: Time,
    steps: Vec<Step>,
}

impl Table {
    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}
