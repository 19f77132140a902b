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
    /// Its plan: a name, or a list of steps, as in a rules file.
    pub plan: Option<Value>,
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
        let mut json = json!({
            "client_key": self.client_key,
            "namespace": self.namespace,
            "tier": self.draft.tier,
            "organisation": self.draft.organisation,
            "attributes": self.draft.attributes,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "version": self.version,
        });
        // Absent without a plan, as in audit rows from before plans.
        if let (Value::Object(members), Some(plan)) = (&mut json, &self.draft.plan) {
            members.insert("plan".to_owned(), plan.clone());
        }
        json
    }
}

impl ClientDraft {
    /// Parses the representation of [`ClientRecord::json`].
    pub(crate) fn from_json(json: &Value) -> Result<ClientDraft> {
        let json = AuditedJson(json);
        Ok(ClientDraft {
            tier: json.maybe_text("tier")?,
            organisation: json.maybe_text("organisation")?,
            plan: json.0.get("plan").filter(|plan| !plan.is_null()).cloned(),
            attributes: json.texts("attributes")?,
        })
    }
}

/// The plan as its column holds it: a name as it is, steps as a JSON list.
fn plan_text(plan: &Value) -> String {
    match plan {
        Value::String(name) => name.clone(),
        Value::Array(_) => plan.to_string(),
        step => json!([step]).to_string(),
    }
}

/// The plan of a column; a text that is not a list is a name.
fn plan_value(text: String) -> Value {
    match text.starts_with('[').then(|| serde_json::from_str(&text)) {
        Some(Ok(steps)) => steps,
        _ => Value::String(text),
    }
}

/// The names of all plans of a client.
pub(crate) fn client_plans(draft: &ClientDraft) -> impl Iterator<Item = String> + use<> {
    let steps = match &draft.plan {
        Some(Value::Array(steps)) => steps.clone(),
        Some(step) => vec![step.clone()],
        None => Vec::new(),
    };
    let name = |step: Value| step.get("plan").unwrap_or(&step).as_str().map(str::to_owned);
    steps.into_iter().filter_map(name)
}

impl StoredRecord for ClientRecord {
    const KIND: RecordKind = RecordKind::Client;
    const TABLE: TableSql = TableSql {
        select: "SELECT namespace, client_key, tier, organisation, plan, attributes, created_at, updated_at, version \
                 FROM clients",
        id: "client_key",
        insert: "INSERT INTO clients (namespace, client_key, tier, organisation, plan, attributes, created_at, \
                 updated_at, version) VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace, client_key) DO UPDATE SET tier = excluded.tier, \
                  organisation = excluded.organisation, plan = excluded.plan, attributes = excluded.attributes, \
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
                plan: row.get::<Option<String>>(4)?.map(plan_value),
                attributes: texts(&row.get::<Json>(5)?.0)
                    .ok_or_else(|| Error::Unexpected("column attributes: should hold an object of texts".to_owned()))?,
            },
            created_at: row.get(6)?,
            updated_at: row.get(7)?,
            version: row.get(8)?,
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        let stamp = RowStamp { created_at: self.created_at, updated_at: self.updated_at, version: self.version };
        let mut values = vec![
            (&self.namespace).into(),
            (&self.client_key).into(),
            self.draft.tier.as_ref().into(),
            self.draft.organisation.as_ref().into(),
            self.draft.plan.as_ref().map(plan_text).as_ref().into(),
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
