//! Reads `grants`.

use super::client::read_time;
use super::field::FieldValue;
use crate::check;
use crate::problem::Problems;
use crate::spec::GrantSpec;

/// Fields of a grant, in canonical order.
pub(crate) const GRANT_FIELDS: &[&str] = &["client_key", "rule", "amount", "valid_from", "valid_until", "reason"];

/// A file has no present, so unlike the API it must say when a grant starts: read again in the next period, the grant
/// must not count a second time.
const NO_START: &str =
    "say when it starts, such as `valid_from: 2026-12-01T00:00:00Z`: it counts in the period of that instant";

pub(crate) fn read_grant(value: FieldValue<'_>, problems: &mut Problems) -> GrantSpec {
    let example = "- { client_key: \"user:42\", rule: name, amount: 500000, valid_from: 2026-12-01T00:00:00Z }";
    let fields = value.fields(GRANT_FIELDS, example, problems);
    let key = fields.required("client_key", "name the client, such as `client_key: \"user:42\"`", problems);
    let rule = fields.required("rule", "name the rule whose quota it adds to", problems);
    let amount = fields.required("amount", "say how many units it adds", problems);
    let from = fields.required("valid_from", NO_START, problems);
    let mut text = |value: Option<FieldValue<'_>>| value.and_then(|value| value.text(problems).map(str::to_owned));
    let mut grant = GrantSpec {
        client_key: text(key).unwrap_or_default(),
        at: value.position(),
        rule: text(rule).unwrap_or_default(),
        reason: text(fields.get("reason")),
        ..GrantSpec::default()
    };
    grant.amount = amount.and_then(|value| value.integer(1..=check::REQUESTS_MAX, problems)).unwrap_or_default();
    grant.valid_from_ns = from.and_then(|value| read_time(&value, problems)).unwrap_or_default();
    grant.valid_until_ns = fields.get("valid_until").and_then(|value| read_time(&value, problems));
    grant
}
