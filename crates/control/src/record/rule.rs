//! Rules.

use serde_json::{Map, Value, json};
use tollgate_rules::RuleSpec;

use super::audited_json::AuditedJson;
use super::{NamespaceDraft, document};
use crate::{Error, FieldError, Instant, Result};

/// What a rule shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleDraft {
    /// What people and callers call it, if not by its id; empty for the id.
    pub name: String,
    /// The rule as a rules file has it (`match`, `key_by`, `limit`, …), without `name`.
    pub document: Map<String, Value>,
    /// False keeps it and leaves it out of decisions.
    pub enabled: bool,
}

/// A rule as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRecord {
    /// Whose.
    pub namespace: String,
    /// Its id: its name in decisions, in metrics and in rules files.
    pub rule_id: String,
    /// What it is.
    pub draft: RuleDraft,
    /// When it was made.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation that changed it last: never used twice, not even after it was deleted and made again.
    pub version: i64,
}

impl RuleRecord {
    /// What the audit and the API show: the fields of its document, and what it is stored with.
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

    /// What it means, in a namespace that reads requests so; or why it means nothing.
    pub fn spec(&self, namespace: &NamespaceDraft) -> Result<RuleSpec, Vec<FieldError>> {
        document::rule(&self.rule_id, &self.draft.document, &document::settings(namespace))
    }
}

impl RuleDraft {
    /// The draft that [`RuleRecord::json`] showed.
    pub(crate) fn from_json(json: &Value) -> Result<RuleDraft> {
        let Value::Object(map) = json else { return Err(Error::Unexpected("a rule should be an object".to_owned())) };
        let mut document = map.clone();
        for name in ["rule_id", "namespace", "name", "enabled", "created_at", "updated_at", "version"] {
            document.remove(name);
        }
        Ok(RuleDraft { name: AuditedJson(json).text("name")?, document, enabled: AuditedJson(json).flag("enabled")? })
    }
}
