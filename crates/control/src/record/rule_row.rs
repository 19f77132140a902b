//! Rows of rules.

use serde_json::Value;

use super::RuleRecord;
use super::columns::RuleColumns;
use super::stored_record::{RowStamp, StoredRecord, TableSql};
use crate::db::{SqlRow, SqlValue};
use crate::{RecordKind, Result};

/// A row of `rate_limit_rules`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleRow {
    pub(crate) namespace: String,
    pub(crate) rule_id: String,
    pub(crate) columns: RuleColumns,
    pub(crate) stamp: RowStamp,
}

impl RuleRow {
    /// The name: the id, unless the rule has another.
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

impl StoredRecord for RuleRow {
    const KIND: RecordKind = RecordKind::Rule;
    const TABLE: TableSql = TableSql {
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

    fn read(row: &SqlRow) -> Result<RuleRow> {
        Ok(RuleRow {
            namespace: row.get(0)?,
            rule_id: row.get(1)?,
            columns: RuleColumns::read(row, 2)?,
            stamp: RowStamp { created_at: row.get(18)?, updated_at: row.get(19)?, version: row.get(20)? },
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        let mut values = vec![SqlValue::from(&self.namespace), SqlValue::from(&self.rule_id)];
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
