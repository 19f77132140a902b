//! Settings of namespaces.

use serde_json::{Value, json};
use tollgate_rules::Normalize;

use super::audited_json::AuditedJson;
use super::stored_record::{StoredRecord, TableSql};
use crate::db::{SqlRow, SqlValue};
use crate::{Error, RecordKind, Result};

/// Settings of a namespace: the top level of a rules file, which a single rule cannot set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceDraft {
    /// Leading bits of an IPv6 address that identify a client.
    pub ipv6_prefix: u8,
    /// Whether `%2F` in paths is kept instead of refused.
    pub keep_escaped_slash: bool,
    /// Permits rules that refuse everything.
    pub allow_block_all: bool,
    /// The Unicode form in which values are compared and counted.
    pub normalize: Normalize,
}

impl Default for NamespaceDraft {
    fn default() -> NamespaceDraft {
        NamespaceDraft {
            ipv6_prefix: 64,
            keep_escaped_slash: false,
            allow_block_all: false,
            normalize: Normalize::None,
        }
    }
}

impl NamespaceDraft {
    /// The representation in the audit and the API.
    pub fn json(&self) -> Value {
        json!({
            "ipv6_prefix": self.ipv6_prefix,
            "escaped_slash": slash(self.keep_escaped_slash),
            "allow_block_all": self.allow_block_all,
            "normalize": self.normalize.name(),
        })
    }

    /// Parses the representation of [`json`](NamespaceDraft::json).
    pub(crate) fn from_json(json: &Value) -> Result<NamespaceDraft> {
        let json = AuditedJson(json);
        Ok(NamespaceDraft {
            ipv6_prefix: u8::try_from(json.number("ipv6_prefix")?).unwrap_or_default(),
            keep_escaped_slash: json.text("escaped_slash")? == slash(true),
            allow_block_all: json.flag("allow_block_all")?,
            // Absent in audit rows from before the setting.
            normalize: json.text("normalize").ok().and_then(|name| Normalize::from_name(&name)).unwrap_or_default(),
        })
    }
}

fn slash(keep: bool) -> &'static str {
    if keep { "keep" } else { "reject" }
}

/// Stored settings of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceRow {
    pub(crate) namespace: String,
    pub(crate) draft: NamespaceDraft,
    pub(crate) version: i64,
}

impl StoredRecord for NamespaceRow {
    const KIND: RecordKind = RecordKind::Namespace;
    const TABLE: TableSql = TableSql {
        select: "SELECT namespace, namespace, ipv6_prefix, escaped_slash, allow_block_all, normalize, version \
                 FROM rate_limit_namespaces",
        id: "namespace",
        insert: "INSERT INTO rate_limit_namespaces (namespace, ipv6_prefix, escaped_slash, allow_block_all, normalize, \
                 version) VALUES ",
        row: "(?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace) DO UPDATE SET ipv6_prefix = excluded.ipv6_prefix, \
                  escaped_slash = excluded.escaped_slash, allow_block_all = excluded.allow_block_all, \
                  normalize = excluded.normalize, version = excluded.version",
        delete: "DELETE FROM rate_limit_namespaces",
    };

    fn read(row: &SqlRow) -> Result<NamespaceRow> {
        let bad = |column: &str| Error::Unexpected(format!("column {column}: out of range"));
        Ok(NamespaceRow {
            namespace: row.get(0)?,
            draft: NamespaceDraft {
                ipv6_prefix: u8::try_from(row.get::<i64>(2)?).map_err(|_| bad("ipv6_prefix"))?,
                keep_escaped_slash: match row.get::<String>(3)?.as_str() {
                    "keep" => true,
                    "reject" => false,
                    _ => return Err(bad("escaped_slash")),
                },
                allow_block_all: row.get(4)?,
                normalize: Normalize::from_name(&row.get::<String>(5)?).ok_or_else(|| bad("normalize"))?,
            },
            version: row.get(6)?,
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        vec![
            (&self.namespace).into(),
            i64::from(self.draft.ipv6_prefix).into(),
            slash(self.draft.keep_escaped_slash).into(),
            self.draft.allow_block_all.into(),
            self.draft.normalize.name().into(),
            self.version.into(),
        ]
    }

    fn json(&self) -> Value {
        self.draft.json()
    }

    fn version(&self) -> i64 {
        self.version
    }
}
