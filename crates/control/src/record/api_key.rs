//! API keys of clients.

use std::fmt;

use serde_json::{Value, json};

use super::stored_record::{RowStamp, StoredRecord, TableSql};
use crate::db::{SqlRow, SqlValue};
use crate::hex::hex;
use crate::{Error, Instant, RecordKind, Result};

/// A stored key: `tk_<key_id>_<secret>`, of which only the digest is kept. A rotation gives the same key another
/// secret, so that its client keeps its buckets.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its public half, the value of the attribute `api_key`.
    pub key_id: String,
    /// Whose it is.
    pub client_key: String,
    /// Its name, to be read by people.
    pub name: String,
    /// SHA-256 of the whole key.
    pub hash: [u8; 32],
    /// The key before the last rotation, and the first instant at which it is invalid.
    pub previous: Option<([u8; 32], Instant)>,
    /// When it was rotated last.
    pub rotated_at: Option<Instant>,
    /// First instant at which it is invalid.
    pub expires_at: Option<Instant>,
    /// Since when it is revoked.
    pub revoked_at: Option<Instant>,
    /// The id of the token that created it.
    pub created_by: String,
    /// When it was created.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation of its last change.
    pub version: i64,
}

/// Bytes of the digest that tell one secret from another, for people.
const FINGERPRINT_BYTES: usize = 4;

impl ApiKeyRecord {
    /// The representation in the audit and the API: without digests, but for the beginning of one, which tells that a
    /// secret has changed, and nothing of its 160 bits.
    pub fn json(&self) -> Value {
        json!({
            "key_id": self.key_id,
            "namespace": self.namespace,
            "client_key": self.client_key,
            "name": self.name,
            "fingerprint": hex(self.hash.get(..FINGERPRINT_BYTES).unwrap_or_default()),
            "previous_until": self.previous.map(|(_, until)| until.to_string()),
            "rotated_at": self.rotated_at.map(|at| at.to_string()),
            "expires_at": self.expires_at.map(|at| at.to_string()),
            "revoked_at": self.revoked_at.map(|at| at.to_string()),
            "created_by": self.created_by,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "version": self.version,
        })
    }
}

impl StoredRecord for ApiKeyRecord {
    const KIND: RecordKind = RecordKind::Key;
    const TABLE: TableSql = TableSql {
        select: "SELECT namespace, key_id, client_key, name, hash, previous_hash, previous_until, rotated_at, \
                 expires_at, revoked_at, created_by, created_at, updated_at, version FROM rate_limit_keys",
        id: "key_id",
        insert: "INSERT INTO rate_limit_keys (namespace, key_id, client_key, name, hash, previous_hash, \
                 previous_until, rotated_at, expires_at, revoked_at, created_by, created_at, updated_at, version) \
                 VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        replace: " ON CONFLICT (namespace, key_id) DO UPDATE SET client_key = excluded.client_key, \
                  name = excluded.name, hash = excluded.hash, previous_hash = excluded.previous_hash, \
                  previous_until = excluded.previous_until, rotated_at = excluded.rotated_at, \
                  expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, \
                  created_by = excluded.created_by, created_at = excluded.created_at, \
                  updated_at = excluded.updated_at, version = excluded.version",
        delete: "DELETE FROM rate_limit_keys",
    };

    fn read(row: &SqlRow) -> Result<ApiKeyRecord> {
        let digest = |bytes: Vec<u8>, column: &str| {
            bytes.try_into().map_err(|_| Error::Unexpected(format!("column {column}: not a SHA-256 digest")))
        };
        let hash: Vec<u8> = row.get(4)?;
        let previous: (Option<Vec<u8>>, Option<Instant>) = (row.get(5)?, row.get(6)?);
        let previous = match previous {
            (Some(hash), Some(until)) => Some((digest(hash, "previous_hash")?, until)),
            _ => None,
        };
        Ok(ApiKeyRecord {
            namespace: row.get(0)?,
            key_id: row.get(1)?,
            client_key: row.get(2)?,
            name: row.get(3)?,
            hash: digest(hash, "hash")?,
            previous,
            rotated_at: row.get(7)?,
            expires_at: row.get(8)?,
            revoked_at: row.get(9)?,
            created_by: row.get(10)?,
            created_at: row.get(11)?,
            updated_at: row.get(12)?,
            version: row.get(13)?,
        })
    }

    fn values(&self) -> Vec<SqlValue> {
        let stamp = RowStamp { created_at: self.created_at, updated_at: self.updated_at, version: self.version };
        let mut values = vec![
            (&self.namespace).into(),
            (&self.key_id).into(),
            (&self.client_key).into(),
            (&self.name).into(),
            self.hash[..].into(),
            self.previous.as_ref().map(|(hash, _)| &hash[..]).into(),
            self.previous.map(|(_, until)| until).into(),
            self.rotated_at.into(),
            self.expires_at.into(),
            self.revoked_at.into(),
            (&self.created_by).into(),
        ];
        values.extend(stamp.values());
        values
    }

    fn json(&self) -> Value {
        ApiKeyRecord::json(self)
    }

    fn version(&self) -> i64 {
        self.version
    }
}

impl fmt::Debug for ApiKeyRecord {
    /// Omits the digests and the client: the text may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyRecord")
            .field("namespace", &self.namespace)
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}
