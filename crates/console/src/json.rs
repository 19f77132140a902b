//! Reads the API's JSON. A member that is missing reads as empty: a page then shows a dash instead of failing.

use serde_json::Value;

/// A text; empty if it is absent.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    member(value, name).as_str().unwrap_or_default()
}

/// A whole number.
pub fn number(value: &Value, name: &str) -> Option<u64> {
    member(value, name).as_u64()
}

/// A whole number; zero if it is absent.
pub fn count(value: &Value, name: &str) -> u64 {
    number(value, name).unwrap_or(0)
}

/// True only if it is `true`.
pub fn is_true(value: &Value, name: &str) -> bool {
    member(value, name) == &Value::Bool(true)
}

/// A list; empty if it is absent.
pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    member(value, name).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A member, by names joined with dots; null if it is absent.
pub fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    name.split('.').fold(value, |value, name| value.get(name).unwrap_or(&Value::Null))
}

/// A value as people write it: texts without quotes, lists joined.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<String>>().join(", "),
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name}: {}", plain(value))).collect::<Vec<String>>().join(", ")
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_reads_as_empty() {
        let value = json!({ "a": { "b": "x" }, "n": 3, "f": true, "l": [1, "two"] });
        assert_eq!((text(&value, "a.b"), text(&value, "a.c"), text(&value, "n.x")), ("x", "", ""));
        assert_eq!((number(&value, "n"), number(&value, "a"), count(&value, "z")), (Some(3), None, 0));
        assert!(is_true(&value, "f") && !is_true(&value, "n") && list(&value, "a").is_empty());
        assert_eq!(plain(member(&value, "l")), "1, two");
        assert_eq!(plain(member(&value, "a")), "b: x");
    }
}
