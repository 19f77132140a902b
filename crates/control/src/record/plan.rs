//! Plans: named sets of rules.

use serde_json::{Value, json};

use super::RowStamp;
use super::audited_json::AuditedJson;
use super::stored_record::{StoredRecord, TableSql};
use crate::db::{Json, SqlRow, SqlValue};
use crate::{Error, Instant, RecordKind, Result};

/// The content of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanDraft {
    /// The plan whose rules it has too.
    pub extends: Option<String>,
    /// The plan of clients without one.
    pub is_default: bool,
    /// Its rules as in a rules file, each with its name.
    pub limits: Vec<Value>,
    /// Free text.
    pub description: String,
}

/// A stored plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub plan_id: String,
    /// Its content.
    pub draft: PlanDraft,
    /// When it was created.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation of its last change.
    pub version: i64,
}

impl PlanRecord {
    /// The representation in the audit and the API.
    pub fn json(&self) -> Value {
        json!({
            "plan_id": self.plan_id,
            "namespace": self.namespace,
            "extends": self.draft.extends,
            "default": self.draft.is_default,
            "limits": self.draft.limits,
            "description": self.draft.description,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "version": self.version,
        })
    }
}

impl PlanRecord {
    /// True if it contains a rule of this name.
    pub fn contains(&self, rule: &str) -> bool {
        self.draft.limits.iter().any(|limit| limit.get("name").and_then(Value::as_str) == Some(rule))
    }

    /// Its rules are changed with it.
    pub fn holds_rule(&self, rule: &str) -> Error {
        Error::Conflict(format!(
            "the rule {}.{rule} is part of the plan {}: change the plan",
            self.plan_id, self.plan_id
        ))
    }
}

impl PlanDraft {
    /// Parses the representation of [`PlanRecord::json`].
    pub(crate) fn from_json(json: &Value) -> Result<PlanDraft> {
        let limits = json.get("limits").and_then(Value::as_array).cloned();
        let json = AuditedJson(json);
        Ok(PlanDraft {
            extends: json.maybe_text("extends")?,
            is_default: json.flag("default")?,
            limits: limits.ok_or_else(|| Error::Unexpected("the limits of a plan should be a list".to_owned()))?,
            description: json.text("description")?,
        })
    }
}

impl StoredRecord for PlanRecord {
    const KIND: RecordKind = RecordKind::Plan;
    const TABLE: TableSql = TableSql {
        select: "SELECT namespace, plan_id, extends, is_default, limits, description, created_at, updated_at, version \
                 FROM rate_limit_plans",
        id: "plan_id",
        insert: "INSERT INTO rate_limit_plans (namespace, plan_id, extends, is_default, limits, description, \
                 created_at, updated_at, version) VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace, plan_id) DO UPDATE SET extends = excluded.extends, \
                  is_default = excluded.is_default, limits = excluded.limits, description = excluded.description, \
                  created_at = excluded.created_at, updated_at = excluded.updated_at, version = excluded.version",
        delete: "DELETE FROM rate_limit_plans",
    };

    fn read(row: &SqlRow) -> Result<PlanRecord> {
        let Json(Value::Array(limits)) = row.get::<Json>(4)? else {
            return Err(Error::Unexpected("column limits: should hold a list".to_owned()));
        };
        Ok(PlanRecord {
            namespace: row.get(0)?,
            plan_id: row.get(1)?,
            draft: PlanDraft { extends: row.get(2)?, is_default: row.get(3)?, limits, description: row.get(5)? },
            created_at: row.get(6)?,
            updated_at: row.get(7)?,
            version: row.get(8)?,
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        let stamp = RowStamp { created_at: self.created_at, updated_at: self.updated_at, version: self.version };
        let mut values = vec![
            (&self.namespace).into(),
            (&self.plan_id).into(),
            self.draft.extends.as_ref().into(),
            self.draft.is_default.into(),
            Value::Array(self.draft.limits.clone()).into(),
            (&self.draft.description).into(),
        ];
        values.extend(stamp.values());
        values
    }

    fn json(&self) -> Value {
        PlanRecord::json(self)
    }

    fn version(&self) -> i64 {
        self.version
    }
}
