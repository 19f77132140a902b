//! A table that was read.

use tollgate_core::Time;
use tollgate_rules::ruleset::RuleSet;

use super::step::TestStep;

/// A table, ready to run.
#[derive(Debug)]
pub struct TestTable {
    /// The rules it is about.
    pub(super) rules: RuleSet,
    /// The namespace of steps that name none.
    pub(super) namespace: String,
    /// When it begins.
    pub(super) start: Time,
    pub(super) steps: Vec<TestStep>,
}

impl TestTable {
    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}
