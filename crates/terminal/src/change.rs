//! Changes as text: one block per resource, one line per field that differs.
//!
//! ```text
//! + rule orders-per-user
//!     match.tier: free
//!     limit.requests: 10
//! ~ rule paid
//!     limit.requests: 100 -> 200
//! - override ov-7
//! ```

use std::collections::BTreeMap;

use serde_json::Value;

use super::rule::{limit_words, match_words, plain};
use super::{Palette, visible};
use crate::field_order::rank;

/// Fields that are not shown: they differ after every change.
const HIDDEN_FIELDS: [&str; 6] = ["namespace", "warnings", "created_at", "updated_at", "version", "since"];
/// Default values, not shown for a new resource.
const DEFAULTS: [(&str, &str); 2] = [("unlimited", "false"), ("burst_size", "0")];

/// Numbers of created, changed and deleted resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Created.
    pub created: usize,
    /// Changed.
    pub changed: usize,
    /// Deleted.
    pub deleted: usize,
}

impl ChangeCounts {
    /// Counts a list of changes.
    pub fn of(changes: &[Value]) -> ChangeCounts {
        let mut counts = ChangeCounts::default();
        for change in changes {
            match sides(change) {
                (None, _) => counts.created += 1,
                (Some(_), None) => counts.deleted += 1,
                _ => counts.changed += 1,
            }
        }
        counts
    }

    /// True if nothing changed.
    pub fn is_empty(self) -> bool {
        self == ChangeCounts::default()
    }
}

impl std::ops::Add for ChangeCounts {
    type Output = ChangeCounts;

    fn add(self, other: ChangeCounts) -> ChangeCounts {
        let ChangeCounts { created, changed, deleted } = other;
        ChangeCounts {
            created: self.created + created,
            changed: self.changed + changed,
            deleted: self.deleted + deleted,
        }
    }
}

impl std::fmt::Display for ChangeCounts {
    /// `2 created, 1 changed, 1 deleted`, without zeros.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [(self.created, "created"), (self.changed, "changed"), (self.deleted, "deleted")];
        let shown =
            parts.into_iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}"));
        match shown.collect::<Vec<_>>().join(", ") {
            text if text.is_empty() => f.write_str("nothing changed"),
            text => f.write_str(&text),
        }
    }
}

/// The changes, field by field.
pub fn changes_text(changes: &[Value], palette: Palette) -> String {
    changes.iter().map(|change| change_text(change, palette)).collect()
}

fn change_text(change: &Value, palette: Palette) -> String {
    let word = |name: &str| change.get(name).and_then(Value::as_str).unwrap_or("?");
    let namespace = match word("namespace") {
        "" | "?" | "default" => String::new(),
        namespace => format!(" in {namespace}"),
    };
    let title = format!("{} {}{namespace}", word("kind"), word("id"));
    let line = |text: String| format!("    {}\n", visible(&text));
    match sides(change) {
        (None, Some(after)) => {
            // The id is in the title.
            let is_shown = |(name, value): &(String, String)| {
                let is_id = value == word("id")
                    && ["rule_id", "override_id", "grant_id", "client_key", "name"].contains(&name.as_str());
                !is_id && !DEFAULTS.contains(&(name.as_str(), value.as_str()))
            };
            let fields = sorted(fields(after)).into_iter().filter(is_shown);
            let fields = fields.map(|(name, value)| line(format!("{name}: {value}")));
            format!("{}\n{}", palette.good(&format!("+ {title}")), fields.collect::<String>())
        }
        (Some(before), None) => {
            let about = if word("kind") == "rule" { format!("  ({})", summary(before)) } else { String::new() };
            format!("{}{}\n", palette.bad(&format!("- {title}")), palette.faint(&about))
        }
        (Some(before), Some(after)) => {
            let fields = field_changes(before, after).into_iter().map(line);
            format!("{}\n{}", palette.warn(&format!("~ {title}")), fields.collect::<String>())
        }
        (None, None) => format!("{}\n", visible(&title)),
    }
}

fn sides(change: &Value) -> (Option<&Value>, Option<&Value>) {
    let side = |name: &str| change.get(name).filter(|value| !value.is_null());
    (side("before"), side("after"))
}

fn summary(rule: &Value) -> String {
    format!("{} for {}", limit_words(rule), match_words(rule))
}

/// `limit.requests: 10 -> 20` for every field that differs.
pub fn field_changes(before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = (fields(before), fields(after));
    let mut names: BTreeMap<String, String> = before.clone();
    names.extend(after.clone());
    let shown =
        |side: &BTreeMap<String, String>, name: &str| side.get(name).cloned().unwrap_or_else(|| "(nothing)".to_owned());
    let differing = sorted(names).into_iter().filter(|(name, _)| before.get(name) != after.get(name));
    differing.map(|(name, _)| format!("{name}: {} -> {}", shown(&before, &name), shown(&after, &name))).collect()
}

/// The fields of a record by their path.
fn fields(record: &Value) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    flatten("", record, &mut fields);
    fields
}

fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                match path {
                    "" if HIDDEN_FIELDS.contains(&name.as_str()) => {}
                    "" => flatten(name, value, into),
                    _ => flatten(&format!("{path}.{name}"), value, into),
                }
            }
        }
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        value => {
            into.insert(path.to_owned(), plain(value));
        }
    }
}

/// Sorts fields in the conventional order.
fn sorted(fields: BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.sort_by_key(|(path, _)| path.split('.').map(rank).collect::<Vec<_>>());
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_that_differs_has_a_line() {
        let old = json!({ "rule_id": "a", "version": 1, "limit": { "requests": 10, "window": "1s", "burst": 3 }, "enabled": true });
        let new = json!({ "rule_id": "a", "version": 2, "limit": { "requests": 20, "window": "1s" }, "enabled": true,
            "match": { "tier": ["free", "paid"] }, "description": "x\u{1b}" });
        let change = |before: &Value, after: &Value| json!({ "kind": "rule", "namespace": "default", "id": "a", "before": before, "after": after });
        let changes = [change(&old, &new), change(&Value::Null, &old), change(&old, &Value::Null)];
        let expected = "~ rule a
    description: (nothing) -> x\\u{1b}
    match.tier: (nothing) -> free, paid
    limit.requests: 10 -> 20
    limit.burst: 3 -> (nothing)
+ rule a
    limit.requests: 10
    limit.window: 1s
    limit.burst: 3
    enabled: true
- rule a  (10 per 1s, burst 3 for every request)
";
        assert_eq!(changes_text(&changes, Palette { colour: false }), expected);
        assert_eq!(ChangeCounts::of(&changes).to_string(), "1 created, 1 changed, 1 deleted");
        assert_eq!(ChangeCounts::of(&[]).to_string(), "nothing changed");
    }
}
