//! Warnings about rules that leave open what they count by.

use super::within;
use crate::problem::Problem;
use crate::spec::{Enforcement, Missing, RuleFile, RuleSpec};

/// Code of the warning about a rule without `key_by`.
pub(super) const IMPLICIT: &str = "implicit-key";

/// One warning per file, at the first rule without `key_by`.
pub(super) fn implicit_of_file(file: &RuleFile) -> Option<Problem> {
    let is_on = |rule: &RuleSpec| rule.mode != Enforcement::Off && is_implicit(rule);
    let mut found = file.rules.iter().enumerate().filter(|(_, rule)| file.key_by.is_none() && is_on(rule));
    let (number, rule) = found.next()?;
    implicit(rule, &file.path_of(number), found.count())
}

/// The warning about a rule, and about so many more like it.
pub(super) fn implicit(rule: &RuleSpec, field: &str, more: usize) -> Option<Problem> {
    let more = match more {
        0 => String::new(),
        1 => "; so does 1 more rule".to_owned(),
        more => format!("; so do {more} more rules"),
    };
    let message = format!(
        "without `key_by` a rule counts by `client_key`, and requests that have none, such as those with only a \
         `user_id` or an `ip`, pass uncounted{more}"
    );
    is_implicit(rule).then(|| {
        Problem::warning(IMPLICIT, rule.at, within(field, "key_by"), message).help(
            "write `key_by: client_key` if that is meant, or `user_id`, `ip`, `global`, …; `missing: share` counts \
             requests without the key together",
        )
    })
}

/// A limit for all callers whose key is the default. A rule that matches a client key applies only where there is one.
fn is_implicit(rule: &RuleSpec) -> bool {
    let needs_client_key =
        rule.matches.attributes.iter().any(|(name, matcher)| name == "client_key" && !matcher.any.is_empty());
    rule.limit.is_some() && rule.key_by.is_none() && rule.missing == Missing::Skip && !needs_client_key
}
