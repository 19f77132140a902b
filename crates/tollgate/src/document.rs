//! One rule as a document: read from YAML or JSON, written as YAML that can be read back.
//!
//! Only the server validates a rule; this module converts text to values, so that every mistake is reported once.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use tollgate_rules::problem::Problems;
use tollgate_rules::yaml::{self, YamlKind, YamlNode, is_blank};
use tollgate_rules::{Report, duration};

use tollgate_terminal::rank;

use crate::input::{self, SourceText};

/// Fields that the server sets.
const READ_ONLY_FIELDS: [&str; 8] =
    ["source", "location", "mode_override", "warnings", "created_at", "updated_at", "version", "namespace"];

/// A rule that was read from a file or from standard input.
pub struct RuleDocument {
    /// The version of the rule on the server, if the document has one.
    pub version: Option<String>,
    /// The id, if the document has one.
    pub rule_id: Option<String>,
    /// The fields of the rule.
    pub rule: Map<String, Value>,
}

impl RuleDocument {
    /// Reads a file, or standard input for `-`.
    pub fn read(path: &Path) -> Result<RuleDocument> {
        let source = input::read(path)?;
        let Value::Object(mut rule) = values(&source)? else {
            bail!("{} is not a rule: a rule is a map, with match, key_by and limit", source.name);
        };
        if rule.contains_key("rules") {
            bail!("{} is a rules file, not a single rule: use tollgate rules import", source.name);
        }
        let version = rule.get("version").map(|version| version.to_string().trim_matches('"').to_owned());
        READ_ONLY_FIELDS.iter().for_each(|field| {
            rule.remove(*field);
        });
        // In rules files the name is the id.
        let id = rule.remove("rule_id").or_else(|| rule.remove("name"));
        let rule_id = id.and_then(|id| id.as_str().map(str::to_owned));
        Ok(RuleDocument { version, rule_id, rule })
    }
}

fn values(source: &SourceText) -> Result<Value> {
    if source.text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(&source.text)
    {
        return Ok(value);
    }
    let root = yaml::parse(&source.text).map_err(|found| {
        let mut problems = Problems::default();
        problems.extend(found);
        Report::new(&source.name, &source.text, problems)
    })?;
    Ok(value(&root))
}

/// The fields of a map in a rules file.
pub fn object(node: &YamlNode) -> Map<String, Value> {
    value(node).as_object().cloned().unwrap_or_default()
}

/// Converts plain `true`, `12` and `~`; everything else is text.
fn value(node: &YamlNode) -> Value {
    match &node.kind {
        YamlKind::List(nodes) => nodes.iter().map(value).collect(),
        YamlKind::Map(entries) => entries.iter().map(|(key, node)| (key.text.clone(), value(node))).collect(),
        YamlKind::Scalar { text, quoted: true } => text.as_str().into(),
        YamlKind::Scalar { text, .. } if is_blank(text) => Value::Null,
        YamlKind::Scalar { text, .. } => match text.as_str() {
            "true" => true.into(),
            "false" => false.into(),
            text => number(text).unwrap_or_else(|| text.into()),
        },
    }
}

/// Integers and plain decimals as JSON spells them. Other spellings stay text, and the server rejects them.
fn number(text: &str) -> Option<Value> {
    let spelled_so = |value: Value| {
        let spelled = value.to_string();
        (spelled == text).then_some(value)
    };
    let whole = text.parse::<i64>().ok().map(Value::from).or_else(|| text.parse::<u64>().ok().map(Value::from));
    whole.or_else(|| text.parse::<f64>().ok().map(Value::from)).and_then(spelled_so)
}

/// A rule as YAML, one field per line.
pub fn rule_yaml(rule: &Value) -> String {
    let mut fields: Vec<(&String, &Value)> =
        rule.as_object().into_iter().flatten().filter(|(name, value)| !is_omitted(rule, name, value)).collect();
    fields.sort_by_key(|(name, _)| rank(name));
    fields.into_iter().map(|(name, value)| format!("{}: {}\n", scalar(name), flow(value))).collect()
}

/// True for fields that are not written: those of the server, and a name that equals the id.
fn is_omitted(rule: &Value, name: &str, value: &Value) -> bool {
    let named_after_its_id = name == "name" && (value == "" || rule.get("rule_id") == Some(value));
    value.is_null() || READ_ONLY_FIELDS.contains(&name) || named_after_its_id
}

fn flow(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_by_key(|(name, _)| rank(name));
            let entries = entries.into_iter().map(|(name, value)| format!("{}: {}", scalar(name), flow(value)));
            match entries.collect::<Vec<_>>().join(", ") {
                text if text.is_empty() => "{}".to_owned(),
                text => format!("{{ {text} }}"),
            }
        }
        Value::Array(values) => format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Plain text if it cannot be anything else in YAML, otherwise a quoted string in JSON syntax.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '/')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./* ".contains(&byte))
        && !text.ends_with(' ')
        && !is_blank(text)
        && !["true", "false", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    let time = !plain && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) && text.parse::<f64>().is_err();
    match plain || (time && duration::parse(text).is_ok()) {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        values(&SourceText { name: "rule.yaml".to_owned(), text: text.to_owned() }).unwrap()
    }

    #[test]
    fn written_yaml_reads_back() {
        let rule = json!({
            "rule_id": "a-b", "description": "it's: odd # \u{1b} é", "enabled": true, "mode": "off",
            "match": { "endpoint": ["POST /api/*", "GET /x/{id}"], "tier": "!free", "plan": "12", "ip": "10.0.0.0/8" },
            "limit": { "requests": 10, "window": "1h30m", "burst": 20 },
            "cost": [{ "match": { "endpoint": "GET /s" }, "cost": 5 }],
            "key_by": ["api_key", "true", " x", "~", ""],
        });
        let text = rule_yaml(&rule);
        assert_eq!(read(&text), rule, "{text}");
        let shown =
            "match: { endpoint: [POST /api/*, \"GET /x/{id}\"], ip: \"10.0.0.0/8\", plan: \"12\", tier: \"!free\" }\n";
        assert!(text.contains(shown), "{text}");
        assert!(text.contains("\nlimit: { requests: 10, window: 1h30m, burst: 20 }\n"), "{text}");
    }

    #[test]
    fn reads_yaml_and_json_alike() {
        let yaml = "match: { tier: free }\nlimit:\n  requests: 10\n  window: 1s\ndescription: ~\ncount_denied: true\n";
        let json =
            r#"{"match":{"tier":"free"},"limit":{"requests":10,"window":"1s"},"description":null,"count_denied":true}"#;
        assert_eq!(read(yaml), read(json));
        assert_eq!(
            read("a: 007\nb: 1_000\nc: 0x10\nd: \"5\"\n"),
            json!({ "a": "007", "b": "1_000", "c": "0x10", "d": "5" })
        );
    }
}
