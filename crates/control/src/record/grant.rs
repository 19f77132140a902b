//! Grants: units that one client gets once, in the period of a quota.

use serde_json::{Value, json};

use super::RowStamp;
use super::audited_json::AuditedJson;
use super::stored_record::{StoredRecord, TableSql};
use crate::db::{SqlRow, SqlValue};
use crate::{Instant, RecordKind, Result};

/// The content of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantDraft {
    /// Its client.
    pub client_key: String,
    /// Its rule, a quota, in the same namespace.
    pub rule_id: String,
    /// Its units.
    pub amount: i64,
    /// First instant at which it counts. `None` is when it is written, so that a repeated call is identical; a stored
    /// grant has a start.
    pub valid_from: Option<Instant>,
    /// First instant at which it no longer counts; `None` for the end of its period.
    pub valid_until: Option<Instant>,
    /// The reason, to be read by people.
    pub reason: String,
}

/// A stored grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its id.
    pub grant_id: String,
    /// Its content.
    pub draft: GrantDraft,
    /// When it was created.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation of its last change.
    pub version: i64,
}

impl GrantRecord {
    /// The representation in the audit and the API.
    pub fn json(&self) -> Value {
        json!({
            "grant_id": self.grant_id,
            "namespace": self.namespace,
            "client_key": self.draft.client_key,
            "rule_id": self.draft.rule_id,
            "amount": self.draft.amount,
            "valid_from": self.draft.valid_from.map(|instant| instant.to_string()),
            "valid_until": self.draft.valid_until.map(|instant| instant.to_string()),
            "reason": self.draft.reason,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "version": self.version,
        })
    }
}

impl GrantDraft {
    /// Parses the representation of [`GrantRecord::json`].
    pub(crate) fn from_json(json: &Value) -> Result<GrantDraft> {
        let json = AuditedJson(json);
        Ok(GrantDraft {
            client_key: json.text("client_key")?,
            rule_id: json.text("rule_id")?,
            amount: json.number("amount")?,
            valid_from: json.maybe_instant("valid_from")?,
            valid_until: json.maybe_instant("valid_until")?,
            reason: json.text("reason")?,
        })
    }
}

impl StoredRecord for GrantRecord {
    const KIND: RecordKind = RecordKind::Grant;
    const TABLE: TableSql = TableSql {
        select: "SELECT namespace, grant_id, client_key, rule_id, amount, valid_from, valid_until, reason, created_at, \
                 updated_at, version FROM rate_limit_grants",
        id: "grant_id",
        insert: "INSERT INTO rate_limit_grants (namespace, grant_id, client_key, rule_id, amount, valid_from, \
                 valid_until, reason, created_at, updated_at, version) VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace, grant_id) DO UPDATE SET client_key = excluded.client_key, \
                  rule_id = excluded.rule_id, amount = excluded.amount, valid_from = excluded.valid_from, \
                  valid_until = excluded.valid_until, reason = excluded.reason, created_at = excluded.created_at, \
                  updated_at = excluded.updated_at, version = excluded.version",
        delete: "DELETE FROM rate_limit_grants",
    };

    fn read(row: &SqlRow) -> Result<GrantRecord> {
        Ok(GrantRecord {
            namespace: row.get(0)?,
            grant_id: row.get(1)?,
            draft: GrantDraft {
                client_key: row.get(2)?,
                rule_id: row.get(3)?,
                amount: row.get(4)?,
                valid_from: row.get(5)?,
                valid_until: row.get(6)?,
                reason: row.get(7)?,
            },
            created_at: row.get(8)?,
            updated_at: row.get(9)?,
            version: row.get(10)?,
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        let draft = &self.draft;
        let stamp = RowStamp { created_at: self.created_at, updated_at: self.updated_at, version: self.version };
        let mut values = vec![
            (&self.namespace).into(),
            (&self.grant_id).into(),
            (&draft.client_key).into(),
            (&draft.rule_id).into(),
            draft.amount.into(),
            draft.valid_from.into(),
            draft.valid_until.into(),
            (&draft.reason).into(),
        ];
        values.extend(stamp.values());
        values
    }

    fn json(&self) -> Value {
        GrantRecord::json(self)
    }

    fn version(&self) -> i64 {
        self.version
    }
}
