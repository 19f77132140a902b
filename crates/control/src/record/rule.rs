//! Rules.

use serde_json::{Map, Value, json};
use tollgate_rules::RuleSpec;

use super::NamespaceDraft;
use super::columns::Columns;
use super::shown::Shown;
use super::stored::{Stamp, Stored, Table};
use crate::db::{Row, Value as Cell};
use crate::{Error, Fault, Instant, Kind, Result, document};

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
    pub fn spec(&self, namespace: &NamespaceDraft) -> Result<RuleSpec, Vec<Fault>> {
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
        Ok(RuleDraft { name: Shown(json).text("name")?, document, enabled: Shown(json).flag("enabled")? })
    }
}

/// A rule as its row has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleRow {
    pub(crate) namespace: String,
    pub(crate) rule_id: String,
    pub(crate) columns: Columns,
    pub(crate) stamp: Stamp,
}

impl RuleRow {
    /// What people call it: its id, unless it has a name besides.
    pub(crate) fn name(&self) -> &str {
        self.columns.name()
    }

    pub(crate) fn record(&self) -> RuleRecord {
        RuleRecord {
            namespace: self.namespace.clone(),
            rule_id: self.rule_id.clone(),
            draft: self.columns.draft(&self.rule_id),
            created_at: self.stamp.created_at,
            updated_at: self.stamp.updated_at,
            version: self.stamp.version,
        }
    }
}

impl Stored for RuleRow {
    const KIND: Kind = Kind::Rule;
    const TABLE: Table = Table {
        select: "SELECT namespace, rule_id, name, client_key, endpoint, \"match\", key_by, algorithm, max_requests, \
                 window_secs, window_ms, burst_size, cost, mode, consistency, on_fail, options, enabled, created_at, \
                 updated_at, version FROM rate_limit_rules",
        id: "rule_id",
        insert: "INSERT INTO rate_limit_rules (namespace, rule_id, name, client_key, endpoint, \"match\", key_by, \
                 algorithm, max_requests, window_secs, window_ms, burst_size, cost, mode, consistency, on_fail, \
                 options, enabled, created_at, updated_at, version) VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace, rule_id) DO UPDATE SET name = excluded.name, \
                  client_key = excluded.client_key, endpoint = excluded.endpoint, \"match\" = excluded.\"match\", \
                  key_by = excluded.key_by, algorithm = excluded.algorithm, max_requests = excluded.max_requests, \
                  window_secs = excluded.window_secs, window_ms = excluded.window_ms, \
                  burst_size = excluded.burst_size, cost = excluded.cost, mode = excluded.mode, \
                  consistency = excluded.consistency, on_fail = excluded.on_fail, options = excluded.options, \
                  enabled = excluded.enabled, created_at = excluded.created_at, updated_at = excluded.updated_at, \
                  version = excluded.version",
        delete: "DELETE FROM rate_limit_rules",
    };

    fn read(row: &Row) -> Result<RuleRow> {
        Ok(RuleRow {
            namespace: row.get(0)?,
            rule_id: row.get(1)?,
            columns: Columns::read(row, 2)?,
            stamp: Stamp { created_at: row.get(18)?, updated_at: row.get(19)?, version: row.get(20)? },
        })
    }

    fn values(&self) -> Vec<Cell> {
        let mut values = vec![Cell::from(&self.namespace), Cell::from(&self.rule_id)];
        values.extend(self.columns.values());
        values.extend(self.stamp.values());
        values
    }

    fn json(&self) -> Value {
        self.record().json()
    }

    fn version(&self) -> i64 {
        self.stamp.version
    }
}
