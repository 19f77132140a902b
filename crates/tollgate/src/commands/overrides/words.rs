//! An override as short text.

use serde_json::Value;
use tollgate_core::Time;
use tollgate_rules::{OverrideSpec, datetime};

use tollgate_terminal::{member, timestamp};

/// `500, burst 1000`, `unlimited`.
pub fn numbers(entry: &Value) -> String {
    if entry.get("unlimited") == Some(&Value::Bool(true)) {
        return "unlimited".to_owned();
    }
    let number = |name: &str| entry.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
    match (entry.get("max_requests").and_then(Value::as_u64), number("burst_size")) {
        (Some(most), Some(burst)) => format!("{most}, burst {burst}"),
        (Some(most), None) => most.to_string(),
        (None, Some(burst)) => format!("burst {burst}"),
        (None, None) => "-".to_owned(),
    }
}

/// `active`, `ended`, `not yet`.
pub fn state(entry: &Value, now: Time) -> &'static str {
    let time = |name: &str| entry.get(name).and_then(Value::as_str).and_then(|text| datetime::parse(text).ok());
    match (time("valid_from"), time("valid_until")) {
        (Some(from), _) if from > now.nanos() => "not yet",
        (_, Some(until)) if until <= now.nanos() => "ended",
        _ => "active",
    }
}

/// The override in one line.
pub fn line(entry: &Value, now: Time) -> String {
    let word = |name: &str| member(entry, name);
    let until = timestamp(&word("valid_until"), now);
    let rule = match word("rule_id") {
        every if every == OverrideSpec::EVERY_RULE => "all rules".to_owned(),
        rule => format!("rule {rule}"),
    };
    format!("{} for {} of {rule}, until {until}", numbers(entry), word("client_key"))
}
