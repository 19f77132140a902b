//! A parsed test table.

use tollgate_core::Time;
use tollgate_ruleset::RuleSet;

use super::step::TestStep;

/// A test table, ready to run.
#[derive(Debug)]
pub struct TestTable {
    /// The rules under test.
    pub(super) rules: RuleSet,
    /// The default namespace of steps.
    pub(super) namespace: String,
    /// The time of its start.
    pub(super) start: Time,
    pub(super) steps: Vec<TestStep>,
}

impl TestTable {
    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}
