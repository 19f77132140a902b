//! Warnings about quotas that are given out again while the store is away.

use super::within;
use crate::problem::Problem;
use crate::spec::{Enforcement, LimitAlgorithm, OnFail, RuleFile, RuleSpec};

/// Code of the warning about a quota without `on_fail`.
pub(super) const NOT_HELD: &str = "quota-on-fail";

/// One warning per file, at the first such quota.
pub(super) fn not_held_in_file(file: &RuleFile) -> Option<Problem> {
    let is_on = |rule: &RuleSpec| rule.mode != Enforcement::Off && leaves_open(rule);
    let is_denied = file.on_fail == Some(OnFail::Deny);
    let mut found = file.rules.iter().enumerate().filter(|(_, rule)| !is_denied && is_on(rule));
    let (number, rule) = found.next()?;
    not_held(rule, &file.path_of(number), found.count())
}

/// The warning about a rule, and about so many more like it.
pub(super) fn not_held(rule: &RuleSpec, field: &str, more: usize) -> Option<Problem> {
    let more = match more {
        0 => String::new(),
        1 => "; so does 1 more quota".to_owned(),
        more => format!("; so do {more} more quotas"),
    };
    let message = format!(
        "the quota does not say what holds while a shared store is away: by default each node then gives out its \
         share of a whole period once more{more}"
    );
    leaves_open(rule).then(|| {
        Problem::warning(NOT_HELD, rule.at, within(field, "on_fail"), message)
            .help("write `on_fail: deny` where the quota must hold, or `local` or `allow` if that is meant")
    })
}

/// A quota whose rule leaves the policy to defaults.
fn leaves_open(rule: &RuleSpec) -> bool {
    let is_quota = rule.limit.as_ref().is_some_and(|limit| limit.algorithm == LimitAlgorithm::Quota);
    is_quota && rule.on_fail.is_none()
}
