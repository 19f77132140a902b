//! `retries`: how often a request is tried again, and how many may be.

use tollgate_rules::problem::Problems;
use tollgate_rules::read::FieldValue;

use super::{set_number, set_percent};
use crate::retry_budget::RetryBudgetConfig;

const FIELDS: &[&str] = &["attempts", "budget", "burst"];

/// Retries of requests that may be repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetrySpec {
    /// Retries of one request; none by default.
    pub attempts: u32,
    /// Retries of all requests.
    pub budget: RetryBudgetConfig,
}

/// Reads `{ attempts: 1, budget: 10%, burst: 10 }`.
pub fn read_retries(value: FieldValue<'_>, problems: &mut Problems) -> RetrySpec {
    let fields = value.fields(FIELDS, "{ attempts: 1, budget: 10% }", problems);
    let mut spec = RetrySpec { attempts: 1, ..RetrySpec::default() };
    set_number(&mut spec.attempts, &fields, "attempts", 0..=10, problems);
    set_percent(&mut spec.budget.percent, &fields, "budget", 1..=100, problems);
    set_number(&mut spec.budget.burst, &fields, "burst", 0..=100_000, problems);
    spec
}
