//! Warnings about conditions on plans that do not exist.

use super::within;
use crate::check::UNKNOWN_PLAN;
use crate::nearest::nearest;
use crate::pattern::Pattern;
use crate::problem::{Problem, quote};
use crate::spec::{PLAN, RuleFile, RuleSpec};

/// A rule for a plan that the file does not have; a file without plans may mean those of a database.
pub(super) fn unknown(file: &RuleFile, rule: &RuleSpec, field: &str) -> Option<Problem> {
    let is_known = |name: &str| file.plans.is_empty() || file.plans.iter().any(|plan| plan.name == name);
    let (_, matcher) = rule.matches.attributes.iter().find(|(name, _)| name == PLAN)?;
    let name = matcher.any.iter().chain(&matcher.none).find_map(|pattern| match pattern {
        Pattern::Exact(name) if !is_known(name) => Some(name),
        _ => None,
    })?;
    let help = match nearest(name, file.plans.iter().map(|plan| plan.name.as_str())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "name a plan of this file".to_owned(),
    };
    let message = format!("there is no plan with the name {}", quote(name));
    Some(Problem::warning(UNKNOWN_PLAN, rule.at, within(field, "match.plan"), message).help(help))
}
