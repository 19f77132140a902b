//! A rule as text of a rules file, and back.
//!
//! The editor shows a rules file with one rule, as it would stand in git. It is checked as a file, so that a mistake has a
//! line and a column; it is saved as the rule that was read, if it is only one, so that a concurrent change is not lost.

use serde_json::{Map, Value, json};
use tollgate_admin::{of_json, to_object};
use tollgate_rules::{document, yaml};

use crate::json::text;

/// A new rule.
const TEMPLATE: &str = "rules:
  - name: orders-per-user
    match: { endpoint: \"POST /api/orders\" }
    key_by: user_id
    limit: { requests: 10, window: 1m, algorithm: sliding_window }
    mode: shadow
";

/// Members of a rule's record that are not part of its text.
const OF_THE_RECORD: &[&str] = &[
    "rule_id",
    "name",
    "namespace",
    "version",
    "created_at",
    "updated_at",
    "source",
    "location",
    "enabled",
    "warnings",
    "mode_override",
    "plan",
    "expanded",
];

/// The text of a rule.
pub(super) fn text_of(rule: &Value) -> String {
    let Some(members) = rule.as_object() else { return TEMPLATE.to_owned() };
    let own = members.iter().filter(|(name, value)| !OF_THE_RECORD.contains(&name.as_str()) && !value.is_null());
    let mut document: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    document.insert("name".to_owned(), text(rule, "rule_id").into());
    document::print(&of_json(&json!({ "rules": [document] })))
}

/// The one rule of a text: its id and its document; none if there are several, or other sections.
pub(super) fn only_rule(source: &str) -> Option<(String, Map<String, Value>)> {
    let root = to_object(&yaml::parse(source).ok()?);
    let is_alone = root.keys().all(|name| matches!(name.as_str(), "rules" | "version"));
    let rules = root.get("rules")?.as_array().filter(|rules| is_alone && rules.len() == 1)?;
    let mut document = rules.first()?.as_object()?.clone();
    let name = document.remove("name")?;
    Some((name.as_str()?.to_owned(), document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_goes_there_and_back() {
        let rule = json!({ "rule_id": "orders", "namespace": "default", "version": 3, "enabled": true, "source": "database",
            "match": { "endpoint": "POST /api/orders", "tier": ["free", "trial"] }, "key_by": "user_id",
            "limit": { "requests": 10, "window": "1m" }, "mode": "shadow", "name": "Orders" });
        let source = text_of(&rule);
        assert!(source.contains("name: orders") && !source.contains("version: 3"), "{source}");
        let (name, document) = only_rule(&source).unwrap();
        assert_eq!(name, "orders");
        assert_eq!(
            Value::Object(document),
            json!({ "match": rule["match"], "key_by": "user_id", "limit": rule["limit"], "mode": "shadow" })
        );
    }

    #[test]
    fn several_rules_are_a_file() {
        assert!(only_rule(TEMPLATE).is_some());
        for source in [
            "",
            "rules: []",
            "rules: [{ name: a }, { name: b }]",
            "namespace: x\nrules: [{ name: a }]",
            "rules: [{}]",
            "\t",
        ] {
            assert!(only_rule(source).is_none(), "{source}");
        }
    }
}
