//! A table that was read.

use tollgate_core::Time;
use tollgate_rules::ruleset::RuleSet;

use super::step::Step;

/// A table, ready to run.
#[derive(Debug)]
pub struct Table {
    /// The rules it is about.
    pub(super) rules: RuleSet,
    /// The namespace of steps that name none.
    pub(super) namespace: String,
    /// When it begins.
    pub(super) start: Time,
    pub(super) steps: Vec<Step>,
}

impl Table {
    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}
