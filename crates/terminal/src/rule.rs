//! A rule as short text, from the JSON of the admin API.

use serde_json::{Map, Value};

/// `10 per 1s, burst 20`, `5000 slots`, `unlimited`.
pub fn limit_words(rule: &Value) -> String {
    let quota = rule.get("quota").or_else(|| rule.get("limit").filter(|limit| limit.get("every").is_some()));
    if let Some(quota) = quota.filter(|quota| quota.is_object()) {
        return quota_words(rule, quota);
    }
    let Some(limit) = rule.get("limit").and_then(Value::as_object) else {
        return if rule.get("unlimited") == Some(&Value::Bool(true)) { "unlimited" } else { "-" }.to_owned();
    };
    let word = |name: &str| limit.get(name).filter(|value| !value.is_null()).map(plain);
    let mut words = match (word("slots"), word("requests").or_else(|| word("amount"))) {
        (Some(slots), _) => vec![format!("{slots} slots")],
        (None, requests) => {
            let window = word("window").unwrap_or_else(|| "?".to_owned());
            vec![format!("{} per {window}", requests.unwrap_or_else(|| "?".to_owned()))]
        }
    };
    words.extend(word("burst").map(|burst| format!("burst {burst}")));
    words.extend(word("max_delay").map(|delay| format!("waits up to {delay}")));
    words.extend(meter_words(rule));
    words.extend(word("algorithm").filter(|name| !["token_bucket", "concurrency"].contains(&name.as_str())));
    words.join(", ")
}

/// `2000000 per month, meter output_tokens, quota`.
fn quota_words(rule: &Value, quota: &Value) -> String {
    let amount = match member(quota, "every").as_str() {
        "never" => format!("{} in all", member(quota, "amount")),
        every => format!("{} per {every}", member(quota, "amount")),
    };
    let words = std::iter::once(amount).chain(meter_words(rule)).chain(["quota".to_owned()]);
    words.collect::<Vec<_>>().join(", ")
}

fn meter_words(rule: &Value) -> Option<String> {
    rule.get("meter").filter(|meter| *meter != "requests").map(|meter| format!("meter {}", plain(meter)))
}

/// `tier: free; endpoint: POST /api/*`, or `every request`.
pub fn match_words(rule: &Value) -> String {
    let none = Map::new();
    let conditions = rule.get("match").and_then(Value::as_object).unwrap_or(&none);
    // JSON objects are sorted by name; the endpoint comes last, as in most rules files.
    let (endpoint, others): (Vec<_>, Vec<_>) = conditions.iter().partition(|(name, _)| *name == "endpoint");
    let shown = others.into_iter().chain(endpoint).map(|(name, patterns)| format!("{name}: {}", plain(patterns)));
    match shown.collect::<Vec<_>>().join("; ") {
        text if text.is_empty() => "every request".to_owned(),
        text => text,
    }
}

/// `user_id`, `api_key:endpoint`, or `-` if there is no key.
pub fn key_words(rule: &Value) -> String {
    match rule.get("key_by") {
        Some(Value::Array(parts)) => parts.iter().map(plain).collect::<Vec<_>>().join(":"),
        Some(key) if !key.is_null() => plain(key),
        _ => "-".to_owned(),
    }
}

/// `enforce`, `shadow`, `off`, `disabled`; `shadow (instead of enforce)` for a switched rule.
pub fn mode_words(rule: &Value) -> String {
    let own = match rule.get("enabled") {
        Some(Value::Bool(false)) => "disabled".to_owned(),
        _ => rule.get("mode").map_or_else(|| "enforce".to_owned(), plain),
    };
    match rule.get("mode_override") {
        Some(switch) => format!("{} (instead of {own})", member(switch, "mode")),
        None => own,
    }
}

/// `database`, `file examples/rules.yaml:12`, `envoy config/shop.yaml:4`.
pub fn source_words(rule: &Value) -> String {
    match rule.get("location").and_then(Value::as_str) {
        Some(location) => format!("{} {location}", member(rule, "source")),
        None => member(rule, "source"),
    }
}

/// A value without quotes and brackets.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(name, value)| format!("{name}: {}", plain(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A member as plain text; `-` if it is absent.
pub fn member(value: &Value, name: &str) -> String {
    value.get(name).map_or_else(|| "-".to_owned(), plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotas_read_as_they_are_sold() {
        let monthly = json!({ "quota": { "amount": 2000000, "every": "month" }, "meter": "output_tokens" });
        assert_eq!(limit_words(&monthly), "2000000 per month, meter output_tokens, quota");
        let trial = json!({ "limit": { "algorithm": "quota", "amount": 3, "every": "never" } });
        assert_eq!(limit_words(&trial), "3 in all, quota");
    }

    #[test]
    fn a_rule_fits_into_a_line() {
        let rule = json!({
            "match": { "endpoint": ["POST /a", "PUT /a"], "tier": "free" },
            "key_by": ["api_key", "ip"],
            "limit": { "requests": 10, "window": "1s", "burst": 20, "algorithm": "token_bucket" },
        });
        let words = [limit_words(&rule), match_words(&rule), key_words(&rule), mode_words(&rule)];
        assert_eq!(words, ["10 per 1s, burst 20", "tier: free; endpoint: POST /a, PUT /a", "api_key:ip", "enforce"]);
        let rule = json!({ "limit": { "slots": 5, "algorithm": "concurrency" }, "enabled": false, "mode": "shadow" });
        let words = [limit_words(&rule), match_words(&rule), key_words(&rule), mode_words(&rule)];
        assert_eq!(words, ["5 slots", "every request", "-", "disabled"]);
        assert_eq!(limit_words(&json!({ "unlimited": true })), "unlimited");
        let queue =
            json!({ "limit": { "requests": 5, "window": "1m", "algorithm": "leaky_bucket", "max_delay": "2s" } });
        assert_eq!(limit_words(&queue), "5 per 1m, waits up to 2s, leaky_bucket");
    }
}
