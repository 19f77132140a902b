//! Modes set for single rules, which replace the rule's own, wherever the rule is defined.

use serde_json::{Value, json};

use super::RowStamp;
use super::audited_json::AuditedJson;
use super::stored_record::{StoredRecord, TableSql};
use crate::db::{SqlRow, SqlValue};
use crate::{Enforcement, Error, Instant, RecordKind, Result};

/// The content of a rule's mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleModeDraft {
    /// The mode in force.
    pub mode: Enforcement,
    /// The reason, to be read by people.
    pub reason: String,
}

/// A stored mode of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleModeRecord {
    /// Its namespace.
    pub namespace: String,
    /// The rule.
    pub rule_id: String,
    /// Its content.
    pub draft: RuleModeDraft,
    /// When it was created.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation of its last change.
    pub version: i64,
}

impl RuleModeRecord {
    /// The representation in the audit and the API.
    pub fn json(&self) -> Value {
        json!({
            "rule_id": self.rule_id,
            "namespace": self.namespace,
            "mode": self.draft.mode.name(),
            "reason": self.draft.reason,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "version": self.version,
        })
    }
}

impl RuleModeDraft {
    /// Parses the representation of [`RuleModeRecord::json`].
    pub(crate) fn from_json(json: &Value) -> Result<RuleModeDraft> {
        let json = AuditedJson(json);
        Ok(RuleModeDraft { mode: mode(&json.text("mode")?)?, reason: json.text("reason")? })
    }
}

fn mode(name: &str) -> Result<Enforcement> {
    Enforcement::named(name).ok_or_else(|| Error::Unexpected("column mode: none of off, shadow, enforce".to_owned()))
}

impl StoredRecord for RuleModeRecord {
    const KIND: RecordKind = RecordKind::RuleMode;
    const TABLE: TableSql = TableSql {
        select: "SELECT namespace, rule_id, mode, reason, created_at, updated_at, version FROM rate_limit_rule_modes",
        id: "rule_id",
        insert: "INSERT INTO rate_limit_rule_modes (namespace, rule_id, mode, reason, created_at, updated_at, version) \
                 VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace, rule_id) DO UPDATE SET mode = excluded.mode, reason = excluded.reason, \
                  created_at = excluded.created_at, updated_at = excluded.updated_at, version = excluded.version",
        delete: "DELETE FROM rate_limit_rule_modes",
    };

    fn read(row: &SqlRow) -> Result<RuleModeRecord> {
        Ok(RuleModeRecord {
            namespace: row.get(0)?,
            rule_id: row.get(1)?,
            draft: RuleModeDraft { mode: mode(&row.get::<String>(2)?)?, reason: row.get(3)? },
            created_at: row.get(4)?,
            updated_at: row.get(5)?,
            version: row.get(6)?,
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        let stamp = RowStamp { created_at: self.created_at, updated_at: self.updated_at, version: self.version };
        let mut values = vec![
            (&self.namespace).into(),
            (&self.rule_id).into(),
            self.draft.mode.name().into(),
            (&self.draft.reason).into(),
        ];
        values.extend(stamp.values());
        values
    }

    fn json(&self) -> Value {
        RuleModeRecord::json(self)
    }

    fn version(&self) -> i64 {
        self.version
    }
}
