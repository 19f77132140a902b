//! Converts YAML trees of rules files to JSON and back.

use serde_json::{Map, Value};
use tollgate_rules::yaml::{YamlKind, YamlNode, is_blank};

/// Converts a tree to JSON: unquoted integers and booleans keep their type, all other scalars are strings.
pub(super) fn to_json(node: &YamlNode) -> Value {
    match &node.kind {
        YamlKind::Scalar { text, quoted: true } => text.as_str().into(),
        YamlKind::Scalar { text, .. } => plain(text),
        YamlKind::List(items) => items.iter().map(to_json).collect(),
        YamlKind::Map(_) => Value::Object(to_object(node)),
    }
}

/// Converts a map to an object.
pub fn to_object(node: &YamlNode) -> Map<String, Value> {
    match &node.kind {
        YamlKind::Map(entries) => entries.iter().map(|(key, node)| (key.text.clone(), to_json(node))).collect(),
        _ => Map::new(),
    }
}

/// `007` stays a string: as a number it would be written back differently.
fn plain(text: &str) -> Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        text if is_blank(text) => Value::Null,
        text => match text.parse::<u64>().ok().filter(|number| number.to_string() == text) {
            Some(number) => number.into(),
            None => text.into(),
        },
    }
}

/// Converts JSON to a tree.
pub fn of_json(value: &Value) -> YamlNode {
    match value {
        Value::Null => YamlNode::blank(),
        Value::Bool(flag) => YamlNode::plain(flag),
        Value::Number(number) => YamlNode::plain(number),
        Value::String(text) => YamlNode::text(text),
        Value::Array(items) => YamlNode::list(items.iter().map(of_json)),
        Value::Object(members) => YamlNode::map(members.iter().map(|(name, value)| (name.as_str(), of_json(value)))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_rules::yaml;

    use super::*;

    #[test]
    fn a_rule_goes_there_and_back() {
        let text = "{ limit: { requests: 10, window: 1s }, match: { tier: [free, '7', 007, 7], x: 'true' }, soft: 20%, on: true }";
        let value = to_json(&yaml::parse(text).unwrap());
        let expected = json!({
            "limit": { "requests": 10, "window": "1s" },
            "match": { "tier": ["free", "7", "007", 7], "x": "true" },
            "soft": "20%",
            "on": true,
        });
        assert_eq!(value, expected);
        assert_eq!(to_json(&of_json(&value)), value);
    }
}
