//! Overrides: other limits of one rule for one client, for a time.

use serde_json::{Value, json};

use super::RowStamp;
use super::audited_json::AuditedJson;
use super::stored_record::{StoredRecord, TableSql};
use crate::db::{SqlRow, SqlValue};
use crate::{Instant, RecordKind, Result};

/// The content of an override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideDraft {
    /// Its client.
    pub client_key: String,
    /// Its rule, in the same namespace.
    pub rule_id: String,
    /// Units per window instead of the rule's.
    pub max_requests: Option<i64>,
    /// Capacity instead of the rule's; 0 for the rule's.
    pub burst_size: i64,
    /// Exempts the client.
    pub unlimited: bool,
    /// First instant of validity; `None` for no lower bound.
    pub valid_from: Option<Instant>,
    /// First instant after validity.
    pub valid_until: Instant,
    /// The reason, to be read by people.
    pub reason: String,
}

/// A stored override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its id.
    pub override_id: String,
    /// Its content.
    pub draft: OverrideDraft,
    /// When it was created.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation of its last change.
    pub version: i64,
}

impl OverrideRecord {
    /// The representation in the audit and the API.
    pub fn json(&self) -> Value {
        json!({
            "override_id": self.override_id,
            "namespace": self.namespace,
            "client_key": self.draft.client_key,
            "rule_id": self.draft.rule_id,
            "max_requests": self.draft.max_requests,
            "burst_size": self.draft.burst_size,
            "unlimited": self.draft.unlimited,
            "valid_from": self.draft.valid_from.map(|instant| instant.to_string()),
            "valid_until": self.draft.valid_until.to_string(),
            "reason": self.draft.reason,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "version": self.version,
        })
    }
}

impl OverrideDraft {
    /// Parses the representation of [`OverrideRecord::json`].
    pub(crate) fn from_json(json: &Value) -> Result<OverrideDraft> {
        let json = AuditedJson(json);
        Ok(OverrideDraft {
            client_key: json.text("client_key")?,
            rule_id: json.text("rule_id")?,
            max_requests: json.maybe_number("max_requests")?,
            burst_size: json.number("burst_size")?,
            unlimited: json.flag("unlimited")?,
            valid_from: json.maybe_instant("valid_from")?,
            valid_until: json.instant("valid_until")?,
            reason: json.text("reason")?,
        })
    }
}

impl StoredRecord for OverrideRecord {
    const KIND: RecordKind = RecordKind::Override;
    const TABLE: TableSql = TableSql {
        select: "SELECT namespace, override_id, client_key, rule_id, max_requests, burst_size, unlimited, valid_from, \
                 valid_until, reason, created_at, updated_at, version FROM rate_limit_overrides",
        id: "override_id",
        insert: "INSERT INTO rate_limit_overrides (namespace, override_id, client_key, rule_id, max_requests, \
                 burst_size, unlimited, valid_from, valid_until, reason, created_at, updated_at, version) VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace, override_id) DO UPDATE SET client_key = excluded.client_key, \
                  rule_id = excluded.rule_id, max_requests = excluded.max_requests, \
                  burst_size = excluded.burst_size, unlimited = excluded.unlimited, valid_from = excluded.valid_from, \
                  valid_until = excluded.valid_until, reason = excluded.reason, created_at = excluded.created_at, \
                  updated_at = excluded.updated_at, version = excluded.version",
        delete: "DELETE FROM rate_limit_overrides",
    };

    fn read(row: &SqlRow) -> Result<OverrideRecord> {
        Ok(OverrideRecord {
            namespace: row.get(0)?,
            override_id: row.get(1)?,
            draft: OverrideDraft {
                client_key: row.get(2)?,
                rule_id: row.get(3)?,
                max_requests: row.get(4)?,
                burst_size: row.get::<Option<i64>>(5)?.unwrap_or(0),
                unlimited: row.get(6)?,
                valid_from: row.get(7)?,
                valid_until: row.get(8)?,
                reason: row.get(9)?,
            },
            created_at: row.get(10)?,
            updated_at: row.get(11)?,
            version: row.get(12)?,
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        let draft = &self.draft;
        let stamp = RowStamp { created_at: self.created_at, updated_at: self.updated_at, version: self.version };
        let mut values = vec![
            (&self.namespace).into(),
            (&self.override_id).into(),
            (&draft.client_key).into(),
            (&draft.rule_id).into(),
            draft.max_requests.into(),
            draft.burst_size.into(),
            draft.unlimited.into(),
            draft.valid_from.into(),
            draft.valid_until.into(),
            (&draft.reason).into(),
        ];
        values.extend(stamp.values());
        values
    }

    fn json(&self) -> Value {
        OverrideRecord::json(self)
    }

    fn version(&self) -> i64 {
        self.version
    }
}
