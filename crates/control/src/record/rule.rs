//! Rules.

use serde_json::{Map, Value, json};
use tollgate_rules::{RuleSpec, lint_rule};

use super::audited_json::AuditedJson;
use super::{NamespaceDraft, document};
use crate::{Error, FieldError, Instant, Result};

/// The content of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleDraft {
    /// A name besides the id; empty for the id.
    pub name: String,
    /// The rule as in a rules file (`match`, `key_by`, `limit`, …), without `name`.
    pub document: Map<String, Value>,
    /// False keeps the rule but excludes it from decisions.
    pub enabled: bool,
}

/// A stored rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its id: the name in decisions, metrics and rules files.
    pub rule_id: String,
    /// Its content.
    pub draft: RuleDraft,
    /// When it was created.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation of its last change; never used twice, not even after deletion.
    pub version: i64,
}

impl RuleRecord {
    /// The representation in the audit and the API: the fields of its document and of its row.
    pub fn json(&self) -> Value {
        let mut json = self.draft.document.clone();
        let mut set = |name: &str, value: Value| json.insert(name.to_owned(), value);
        set("rule_id", json!(self.rule_id));
        set("namespace", json!(self.namespace));
        set("name", json!(self.draft.name));
        set("enabled", json!(self.draft.enabled));
        set("created_at", json!(self.created_at.to_string()));
        set("updated_at", json!(self.updated_at.to_string()));
        set("version", json!(self.version));
        Value::Object(json)
    }

    /// The specification of the rule under the settings of its namespace, or all errors.
    pub fn spec(&self, namespace: &NamespaceDraft) -> Result<RuleSpec, Vec<FieldError>> {
        document::rule(&self.rule_id, &self.draft.document, &document::settings(namespace))
    }
}

/// Warnings about a rule in the representation of [`RuleRecord::json`]: valid, but probably not what was meant. None for
/// a rule that is disabled, off or invalid.
pub fn rule_warnings(json: &Value) -> Vec<FieldError> {
    let id = json.get("rule_id").and_then(Value::as_str).unwrap_or_default();
    let Ok(draft) = RuleDraft::from_json(json) else { return Vec::new() };
    match document::rule(id, &draft.document, &document::settings(&widest())) {
        Ok(spec) if draft.enabled => lint_rule(&spec).into_iter().map(FieldError::from).collect(),
        _ => Vec::new(),
    }
}

/// Settings under which every valid rule can be read. Warnings do not depend on them.
pub(super) fn widest() -> NamespaceDraft {
    NamespaceDraft { keep_escaped_slash: true, allow_block_all: true, ..NamespaceDraft::default() }
}

impl RuleDraft {
    /// Parses the representation of [`RuleRecord::json`].
    pub(crate) fn from_json(json: &Value) -> Result<RuleDraft> {
        let Value::Object(map) = json else { return Err(Error::Unexpected("a rule should be an object".to_owned())) };
        let mut document = map.clone();
        for name in ["rule_id", "namespace", "name", "enabled", "created_at", "updated_at", "version"] {
            document.remove(name);
        }
        Ok(RuleDraft { name: AuditedJson(json).text("name")?, document, enabled: AuditedJson(json).flag("enabled")? })
    }
}
