//! Converts rules between the full form and the short form of textbooks:
//! `{"endpoint_pattern","key_type","limit","window_seconds","tier"}`. The short form covers a part of the full one; a change
//! in the short form leaves the rest as it is.

use serde_json::{Map, Value, json};
use tollgate_control::FieldError;
use tollgate_rules::duration;

use super::problem::{AdminProblem, MapProblem, fault};
use super::warnings;

/// Fields of the short form, and their paths in the full form.
const FIELDS: &[(&str, &[&str])] = &[
    ("endpoint_pattern", &["match", "endpoint"]),
    ("tier", &["match", "tier"]),
    ("key_type", &["key_by"]),
    ("limit", &["limit", "requests"]),
    ("window_seconds", &["limit", "window"]),
    ("algorithm", &["limit", "algorithm"]),
    ("burst", &["limit", "burst"]),
];

/// Names that differ between `key_type` and `key_by`.
const KEY_TYPES: &[(&str, &str)] = &[("user", "user_id")];

/// True if a body is in the short form: a number as `limit`, or a field that only the short form has.
pub(super) fn is_short_form(body: &Map<String, Value>) -> bool {
    body.get("limit").is_some_and(Value::is_number)
        || FIELDS.iter().any(|(name, _)| *name != "limit" && body.contains_key(*name))
}

/// The default algorithm of the short form.
const COUNT: &str = "sliding_window";

/// Adds the algorithm to a new rule in the short form that names neither algorithm nor burst: a count per window, as in
/// textbooks. (The default of the full form is a token bucket.) Changes of a rule keep what they do not name.
pub(super) fn complete(body: &mut Map<String, Value>) {
    let limit = body.get("limit");
    let is_count = |limit: &Value| limit.is_number() && body.contains_key("window_seconds");
    if limit.is_some_and(is_count) && !body.contains_key("algorithm") && !body.contains_key("burst") {
        body.insert("algorithm".to_owned(), COUNT.into());
    }
}

/// Converts a body to the full form; fields that both forms have stay.
pub(super) fn to_full_form(body: Map<String, Value>) -> Result<(Map<String, Value>, MapProblem), AdminProblem> {
    match is_short_form(&body) {
        true => convert_to_full(body).map(|body| (body, rename_faults as MapProblem)),
        false => Ok((body, |problem| problem)),
    }
}

fn convert_to_full(mut body: Map<String, Value>) -> Result<Map<String, Value>, AdminProblem> {
    let mut faults = Vec::new();
    for full in ["match", "key_by"].into_iter().filter(|name| body.contains_key(*name)) {
        faults.push(mixed(full));
    }
    if body.get("limit").is_some_and(Value::is_object) {
        faults.push(mixed("limit"));
        body.remove("limit");
    }
    for (name, path) in FIELDS {
        let Some(value) = body.remove(*name) else { continue };
        match long(name, value) {
            Ok(value) => put(&mut body, path, value),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(body) } else { Err(AdminProblem::of_faults(faults)) }
}

fn mixed(name: &str) -> FieldError {
    let message = format!("{name} is of the full form, and other fields are of the short one");
    fault(
        name,
        "mixed-forms",
        message,
        "write match, key_by and limit, or endpoint_pattern, tier, key_type, limit and window_seconds",
    )
}

fn long(name: &str, value: Value) -> Result<Value, FieldError> {
    match (name, value) {
        (_, Value::Null) => Ok(Value::Null),
        ("key_type", Value::String(text)) => Ok(key_by(&text).into()),
        ("window_seconds", value) => window(&value),
        (_, value) => Ok(value),
    }
}

fn key_by(key_type: &str) -> String {
    let rename = |part: &str| {
        KEY_TYPES.iter().find(|(short_form, _)| *short_form == part).map_or(part, |(_, full)| *full).to_owned()
    };
    key_type.split(':').map(rename).collect::<Vec<String>>().join(":")
}

fn window(seconds: &Value) -> Result<Value, FieldError> {
    const HELP: &str = "a number of seconds, such as 60 or 0.25; milliseconds are the finest";
    let Some(number) = seconds.as_f64() else {
        return Err(fault("window_seconds", "wrong-type", "window_seconds should be a number", HELP));
    };
    let millis = (number * 1000.0).round();
    let is_whole = (number * 1000.0 - millis).abs() < 1e-6;
    match is_whole && (1.0..=1e15).contains(&millis) {
        true => Ok(duration::display(millis as u64 * 1_000_000).into()), // a whole number below 2^53
        false => Err(fault("window_seconds", "out-of-range", format!("window_seconds is {number}"), HELP)),
    }
}

fn put(body: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => drop(body.insert((*last).to_owned(), value)),
        [first, rest @ ..] => {
            let place = body.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(members) = place {
                put(members, rest, value);
            }
        }
    }
}

/// Renames the fields of faults to those of the short form.
fn rename_faults(mut problem: AdminProblem) -> AdminProblem {
    for fault in &mut problem.faults {
        let found = FIELDS.iter().find(|(_, path)| fault.field == path.join("."));
        if let Some((name, path)) = found {
            fault.message = fault.message.replace(&path.join("."), name);
            fault.field = (*name).to_owned();
        }
    }
    let AdminProblem { faults, .. } = &problem;
    let detail =
        if faults.is_empty() { problem.detail.clone() } else { AdminProblem::of_faults(faults.clone()).detail };
    AdminProblem { detail, ..problem }
}

/// Converts a rule to the short form.
pub(super) fn to_short_form(full: &Value) -> Value {
    let limit = full.get("limit");
    let part = |name: &str| limit.and_then(|limit| limit.get(name)).cloned();
    let condition = |name: &str| full.get("match").and_then(|conditions| conditions.get(name)).cloned();
    let window = part("window").as_ref().and_then(Value::as_str).and_then(|text| duration::parse(text).ok());
    let mut short = json!({
        "rule_id": full.get("rule_id"),
        "endpoint_pattern": condition("endpoint").unwrap_or_else(|| "*".into()),
        "key_type": full.get("key_by").map_or_else(|| "client_key".to_owned(), key_type),
        "limit": part("requests").or_else(|| part("amount")).or_else(|| part("slots")),
        "window_seconds": window.map(seconds),
        "algorithm": algorithm(part("algorithm").as_ref(), limit),
        "tier": condition("tier"),
        "created_at": full.get("created_at"),
        "updated_at": full.get("updated_at"),
    });
    if let Some(warnings) = full.get("warnings").and_then(Value::as_array) {
        warnings::add(&mut short, warnings.iter().cloned().map(rename_warning).collect());
    }
    short
}

/// Renames the field of a warning to that of the short form.
fn rename_warning(mut warning: Value) -> Value {
    let field = warning.get("field").and_then(Value::as_str).unwrap_or_default();
    let name = FIELDS.iter().find(|(_, path)| field == path.join(".")).map(|(name, _)| *name);
    if let (Some(name), Value::Object(members)) = (name, &mut warning) {
        members.insert("field".to_owned(), name.into());
    }
    warning
}

/// The algorithm, by its name in the short form; null without a limit.
fn algorithm(named: Option<&Value>, limit: Option<&Value>) -> Value {
    match named.and_then(Value::as_str) {
        Some("sliding_window_counter") => COUNT.into(),
        Some(name) => name.into(),
        None if limit.is_some() => "token_bucket".into(),
        None => Value::Null,
    }
}

fn key_type(key_by: &Value) -> String {
    match key_by {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect::<Vec<&str>>().join(":"),
        _ => String::new(),
    }
}

fn seconds(nanos: u64) -> Value {
    match nanos % 1_000_000_000 {
        0 => (nanos / 1_000_000_000).into(),
        _ => (nanos as f64 / 1e9).into(), // milliseconds fit a double exactly enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn the_short_form_becomes_the_full_one_and_back() {
        let short_form = json!({
            "rule_id": "orders-per-user", "endpoint_pattern": "/api/orders", "key_type": "user:endpoint", "limit": 100,
            "window_seconds": 60, "tier": "free", "algorithm": "gcra", "burst": 20, "enabled": true,
        });
        let (full, _) = to_full_form(object(short_form)).unwrap();
        let expected = json!({
            "rule_id": "orders-per-user",
            "match": { "endpoint": "/api/orders", "tier": "free" },
            "key_by": "user_id:endpoint",
            "limit": { "requests": 100, "window": "1m", "algorithm": "gcra", "burst": 20 },
            "enabled": true,
        });
        assert_eq!(Value::Object(full), expected);
        let short_form = to_short_form(&expected);
        let same = json!({
            "rule_id": "orders-per-user", "endpoint_pattern": "/api/orders", "key_type": "user_id:endpoint",
            "limit": 100, "window_seconds": 60, "algorithm": "gcra", "tier": "free", "created_at": null,
            "updated_at": null,
        });
        assert_eq!(short_form, same);
        let part = to_full_form(object(json!({ "window_seconds": 0.25, "tier": null }))).unwrap().0;
        assert_eq!(Value::Object(part), json!({ "limit": { "window": "250ms" }, "match": { "tier": null } }));
    }

    #[test]
    fn the_full_form_is_left_alone() {
        let full = object(json!({ "limit": { "requests": 1, "window": "1s" }, "mode": "shadow" }));
        assert_eq!(to_full_form(full.clone()).unwrap().0, full);
        assert_eq!(to_short_form(&json!({ "limit": { "slots": 5, "algorithm": "concurrency" } }))["limit"], 5);
        assert_eq!(
            to_short_form(&json!({ "key_by": ["a", "b"], "limit": { "window": "1500ms" } }))["window_seconds"],
            1.5
        );
    }

    #[test]
    fn a_limit_and_a_window_are_a_count_per_window() {
        let made = |value: Value| {
            let mut body = object(value);
            complete(&mut body);
            Value::Object(to_full_form(body).unwrap().0)["limit"].clone()
        };
        let count = json!({ "requests": 100, "window": "1m", "algorithm": "sliding_window" });
        assert_eq!(made(json!({ "limit": 100, "window_seconds": 60 })), count);
        let bucket = json!({ "requests": 100, "window": "1m", "burst": 20 });
        assert_eq!(made(json!({ "limit": 100, "window_seconds": 60, "burst": 20 })), bucket);
        assert_eq!(made(json!({ "limit": 5, "window_seconds": 1, "algorithm": "gcra" }))["algorithm"], "gcra");
        let full = json!({ "requests": 1, "window": "1s" });
        assert_eq!(made(json!({ "limit": full })), full);
        let shown = |limit: Value| to_short_form(&json!({ "limit": limit }))["algorithm"].clone();
        assert_eq!(shown(json!({ "requests": 1, "algorithm": "sliding_window_counter" })), "sliding_window");
        assert_eq!(shown(json!({ "requests": 1 })), "token_bucket");
        assert_eq!(to_short_form(&json!({ "unlimited": true }))["algorithm"], Value::Null);
    }

    #[test]
    fn both_forms_at_once_and_odd_windows_are_refused() {
        let codes = |value: Value| -> Vec<(String, String)> {
            let problem = to_full_form(object(value)).unwrap_err();
            problem.faults.into_iter().map(|fault| (fault.field, fault.code)).collect()
        };
        let pair = |field: &str, code: &str| (field.to_owned(), code.to_owned());
        assert_eq!(
            codes(json!({ "limit": 5, "match": {}, "key_by": "ip" })),
            [pair("match", "mixed-forms"), pair("key_by", "mixed-forms")]
        );
        assert_eq!(codes(json!({ "limit": {}, "tier": "free" })), [pair("limit", "mixed-forms")]);
        for odd in [json!("60"), json!(true), json!([])] {
            assert_eq!(codes(json!({ "window_seconds": odd })), [pair("window_seconds", "wrong-type")]);
        }
        for odd in [json!(0), json!(-1), json!(0.0001), json!(1.0005), json!(1e300)] {
            assert_eq!(codes(json!({ "window_seconds": odd })), [pair("window_seconds", "out-of-range")]);
        }
    }

    #[test]
    fn faults_use_the_field_names_that_were_sent() {
        let (_, tell) = to_full_form(object(json!({ "limit": 5, "window_seconds": 60 }))).unwrap();
        let faults = vec![fault("limit.window", "out-of-range", "limit.window is `1m`, which is out of range", "")];
        let problem = tell(AdminProblem::of_faults(faults));
        assert_eq!(problem.faults[0].field, "window_seconds");
        assert_eq!(problem.detail, "window_seconds is `1m`, which is out of range.");
    }
}
