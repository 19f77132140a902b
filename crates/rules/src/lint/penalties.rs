//! Warnings about penalties that concern more than the client that brought them.

use super::within;
use crate::problem::Problem;
use crate::spec::{Missing, RuleSpec};

/// Code of the warning.
const SHARED: &str = "shared-penalty";
/// Attributes that tell clients apart.
const IDENTITIES: [&str; 5] = ["client_key", "api_key", "user_id", "ip", "org"];

/// The warning about a penalty on a bucket that many clients share: one of them has all refused.
pub(super) fn shared(rule: &RuleSpec, field: &str) -> Option<Problem> {
    rule.penalty?;
    let is_identity = |part: &Vec<String>| part.iter().any(|name| IDENTITIES.contains(&name.as_str()));
    let is_shared = rule.key_by.as_ref().is_some_and(|key| !key.parts.iter().any(is_identity));
    (is_shared || rule.missing == Missing::Share).then(|| {
        let message = "many clients share a bucket of this rule: one that asks too often has all of them refused";
        let help = "count by what tells clients apart, such as `key_by: api_key`, without `missing: share`";
        Problem::warning(SHARED, rule.at, within(field, "penalty"), message.to_owned()).help(help)
    })
}
