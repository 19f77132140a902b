//! Clients: tier, organisation and attributes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::RowStamp;
use super::audited_json::{AuditedJson, texts};
use super::stored_record::{StoredRecord, TableSql};
use crate::db::{Json, SqlRow, SqlValue};
use crate::{Error, Instant, RecordKind, Result};

/// The content of a client record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientDraft {
    /// Its tier.
    pub tier: Option<String>,
    /// Its organisation.
    pub organisation: Option<String>,
    /// Further attributes that rules match on.
    pub attributes: BTreeMap<String, String>,
}

/// A stored client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its key: `key:abc`, `user:42`, …
    pub client_key: String,
    /// Its content.
    pub draft: ClientDraft,
    /// When it was created.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation of its last change.
    pub version: i64,
}

impl ClientRecord {
    /// The representation in the audit and the API.
    pub fn json(&self) -> Value {
        json!({
            "client_key": self.client_key,
            "namespace": self.namespace,
            "tier": self.draft.tier,
            "organisation": self.draft.organisation,
            "attributes": self.draft.attributes,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "version": self.version,
        })
    }
}

impl ClientDraft {
    /// Parses the representation of [`ClientRecord::json`].
    pub(crate) fn from_json(json: &Value) -> Result<ClientDraft> {
        let json = AuditedJson(json);
        Ok(ClientDraft {
            tier: json.maybe_text("tier")?,
            organisation: json.maybe_text("organisation")?,
            attributes: json.texts("attributes")?,
        })
    }
}

impl StoredRecord for ClientRecord {
    const KIND: RecordKind = RecordKind::Client;
    const TABLE: TableSql = TableSql {
        select: "SELECT namespace, client_key, tier, organisation, attributes, created_at, updated_at, version \
                 FROM clients",
        id: "client_key",
        insert: "INSERT INTO clients (namespace, client_key, tier, organisation, attributes, created_at, updated_at, \
                 version) VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace, client_key) DO UPDATE SET tier = excluded.tier, \
                  organisation = excluded.organisation, attributes = excluded.attributes, \
                  created_at = excluded.created_at, updated_at = excluded.updated_at, version = excluded.version",
        delete: "DELETE FROM clients",
    };

    fn read(row: &SqlRow) -> Result<ClientRecord> {
        Ok(ClientRecord {
            namespace: row.get(0)?,
            client_key: row.get(1)?,
            draft: ClientDraft {
                tier: row.get(2)?,
                organisation: row.get(3)?,
                attributes: texts(&row.get::<Json>(4)?.0)
                    .ok_or_else(|| Error::Unexpected("column attributes: should hold an object of texts".to_owned()))?,
            },
            created_at: row.get(5)?,
            updated_at: row.get(6)?,
            version: row.get(7)?,
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        let stamp = RowStamp { created_at: self.created_at, updated_at: self.updated_at, version: self.version };
        let mut values = vec![
            (&self.namespace).into(),
            (&self.client_key).into(),
            self.draft.tier.as_ref().into(),
            self.draft.organisation.as_ref().into(),
            json!(self.draft.attributes).into(),
        ];
        values.extend(stamp.values());
        values
    }

    fn json(&self) -> Value {
        ClientRecord::json(self)
    }

    fn version(&self) -> i64 {
        self.version
    }
}
