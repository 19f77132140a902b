//! Rules of files: read-only here.

use serde_json::{Value, json};

use crate::call::AdminCall;
use crate::node::FileRule;

/// The rule of a file with this id.
pub(super) fn in_file(call: &AdminCall<'_>, id: &str) -> Option<FileRule> {
    let rules = (call.state.node.file_rules)();
    rules.iter().find(|rule| rule.rule_id == id && rule.namespace == call.namespace()).cloned()
}

/// A rule of a file as JSON.
pub(super) fn show_file(rule: &FileRule) -> Value {
    let mut shown = rule.document.clone();
    let rest = json!({
        "rule_id": rule.rule_id,
        "namespace": rule.namespace,
        "name": "",
        "enabled": true,
        "source": rule.kind.name(),
        "location": rule.location,
        "created_at": null,
        "updated_at": null,
        "version": null,
    });
    shown.extend(rest.as_object().cloned().unwrap_or_default());
    Value::Object(shown)
}
