//! API keys: create, list, rotate, revoke. Secrets are returned once and never stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tollgate_rules::check;

use super::listing::find;
use super::{Control, Snapshot};
use crate::db::Sql;
use crate::error::field_error;
use crate::record::{ApiKeyRecord, ClientDraft, StoredRecord, document};
use crate::token_secret::TokenSecret;
use crate::write_tx::WriteTx;
use crate::{Author, Change, Error, Instant, Listing, Page, Quarantined, RecordKind, Result};

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Longest time that a rotated key stays valid beside the new one.
const OVERLAP_MAX: Duration = Duration::from_secs(90 * 24 * 3600);

/// A key to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyDraft {
    /// Its namespace.
    pub namespace: String,
    /// Whose it is.
    pub client_key: String,
    /// Its name, to be read by people.
    pub name: String,
    /// First instant at which it is invalid.
    pub expires_at: Option<Instant>,
}

/// Selects keys; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiKeyFilter {
    /// In these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Of this client.
    pub client_key: Option<String>,
    /// Revoked ones too.
    pub with_revoked: bool,
}

/// The keys that are not revoked, by namespace and id.
pub type LoadedApiKeys = BTreeMap<(String, String), Arc<ApiKeyRecord>>;

impl Control {
    /// Keys, sorted by namespace and id.
    pub async fn api_keys(&self, filter: &ApiKeyFilter, page: &Page) -> Result<Listing<ApiKeyRecord>> {
        let mut sql = Sql::new(ApiKeyRecord::TABLE.select, vec![]);
        sql.and(if filter.with_revoked { " WHERE TRUE" } else { " WHERE revoked_at IS NULL" }, []);
        sql.and_in("namespace", filter.namespaces.as_deref());
        sql.and_if(" AND client_key = ?", filter.client_key.as_ref());
        self.list(sql, page).await
    }

    /// One key, revoked or not.
    pub async fn api_key(&self, namespace: &str, key_id: &str) -> Result<ApiKeyRecord> {
        self.find(namespace, key_id).await
    }

    /// Creates a key. Returns its record and the whole key (`tk_<id>_<secret>`), which cannot be read again.
    pub async fn create_api_key(&self, draft: &ApiKeyDraft, author: &Author) -> Result<(ApiKeyRecord, String)> {
        let (draft, maker) = (draft.clone(), author.id.clone());
        let create = async move |write: &mut WriteTx| {
            draft.check(write.at)?;
            let secret = TokenSecret::new()?;
            let key = secret.full_key(secret.id());
            let record = ApiKeyRecord {
                namespace: draft.namespace.clone(),
                key_id: secret.id().to_owned(),
                client_key: draft.client_key.clone(),
                name: draft.name.clone(),
                hash: TokenSecret::digest(&key),
                previous: None,
                rotated_at: None,
                expires_at: draft.expires_at,
                revoked_at: None,
                created_by: maker.clone(),
                created_at: write.at,
                updated_at: write.at,
                version: write.generation,
            };
            put(write, None, &record).await?;
            Ok((record, key))
        };
        self.write(author, "create", create).await.map(|(made, _)| made)
    }

    /// Gives a key another secret. The old one stays valid for `overlap`, so that its holder can change over; one that
    /// an earlier rotation left valid ends now. Returns the record and the whole new key.
    pub async fn rotate_api_key(
        &self,
        namespace: &str,
        key_id: &str,
        overlap: Duration,
        author: &Author,
    ) -> Result<(ApiKeyRecord, String)> {
        let (namespace, key_id) = (namespace.to_owned(), key_id.to_owned());
        if overlap > OVERLAP_MAX {
            let error =
                field_error("overlap", "out-of-range", "overlap is longer than 90 days", "choose a shorter one");
            return Err(Error::Invalid(vec![error]));
        }
        let rotate = async move |write: &mut WriteTx| {
            let before = current(write, &namespace, &key_id).await?;
            if before.expires_at.is_some_and(|end| end <= write.at) {
                return Err(Error::Conflict(format!("the key {key_id} has expired; create another one")));
            }
            let key = TokenSecret::new()?.full_key(&key_id);
            let overlap = i64::try_from(overlap.as_micros()).unwrap_or(i64::MAX);
            let until = Instant(write.at.0.saturating_add(overlap));
            let record = ApiKeyRecord {
                hash: TokenSecret::digest(&key),
                previous: (overlap > 0).then_some((before.hash, until)),
                rotated_at: Some(write.at),
                updated_at: write.at,
                version: write.generation,
                ..before.clone()
            };
            put(write, Some(&before), &record).await?;
            Ok((record, key))
        };
        self.write(author, "rotate", rotate).await.map(|(made, _)| made)
    }

    /// Revokes a key: nodes refuse it as soon as they load the change. The row stays, for readers of the audit.
    pub async fn revoke_api_key(&self, namespace: &str, key_id: &str, author: &Author) -> Result<ApiKeyRecord> {
        let (namespace, key_id) = (namespace.to_owned(), key_id.to_owned());
        let revoke = async move |write: &mut WriteTx| {
            let before = current(write, &namespace, &key_id).await?;
            let record = ApiKeyRecord {
                revoked_at: Some(write.at),
                updated_at: write.at,
                version: write.generation,
                ..before.clone()
            };
            put(write, Some(&before), &record).await?;
            Ok(record)
        };
        self.write(author, "revoke", revoke).await.map(|(revoked, _)| revoked)
    }
}

impl Snapshot {
    /// All keys that are not revoked. Invalid rows are logged and left out: such a key is refused.
    pub async fn api_keys(&mut self) -> Result<LoadedApiKeys> {
        let mut keys = BTreeMap::new();
        let mut take = |read: std::result::Result<ApiKeyRecord, Quarantined>| match read {
            Ok(record) if record.revoked_at.is_none() => {
                keys.insert((record.namespace.clone(), record.key_id.clone()), Arc::new(record));
            }
            Ok(_) => {}
            Err(bad) => tracing::error!(id = bad.id, "invalid row of keys left out: the key is refused"),
        };
        self.each(None, Ok, &mut take).await?;
        Ok(keys)
    }

    /// Reads single keys again.
    pub async fn reread_api_keys(
        &mut self,
        keys: &mut LoadedApiKeys,
        changed: &BTreeSet<(String, String)>,
    ) -> Result<()> {
        for (namespace, key_id) in changed {
            let entry = (namespace.clone(), key_id.clone());
            match find::<ApiKeyRecord>(&mut self.tx, namespace, key_id).await {
                Ok(Some(record)) if record.revoked_at.is_none() => drop(keys.insert(entry, Arc::new(record))),
                Ok(_) | Err(Error::Unexpected(_)) => drop(keys.remove(&entry)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A key that is not revoked.
async fn current(write: &mut WriteTx, namespace: &str, key_id: &str) -> Result<ApiKeyRecord> {
    let found = find::<ApiKeyRecord>(&mut write.tx, namespace, key_id).await?;
    let found = found.filter(|record| record.revoked_at.is_none());
    found.ok_or_else(|| Error::NotFound(format!("key {key_id} in the namespace {namespace}")))
}

async fn put(write: &mut WriteTx, before: Option<&ApiKeyRecord>, after: &ApiKeyRecord) -> Result<()> {
    let mut sql = Sql::new(ApiKeyRecord::TABLE.insert, vec![]);
    sql.and(ApiKeyRecord::TABLE.row, after.values());
    if before.is_some() {
        sql.and(ApiKeyRecord::TABLE.replace, []);
    }
    write.tx.run(sql).await?;
    let (namespace, id) = (after.namespace.clone(), after.key_id.clone());
    let (before, after) = (before.map(ApiKeyRecord::json), Some(after.json()));
    write.record(Change { kind: RecordKind::Key, namespace, id, before, after });
    Ok(())
}

impl ApiKeyDraft {
    /// Validates all fields.
    fn check(&self, now: Instant) -> Result<()> {
        let mut faults = match document::client(&self.client_key, &ClientDraft::default()) {
            Ok(_) => Vec::new(),
            Err(faults) => faults,
        };
        let mut fault = |field, code, message: &str, help| faults.push(field_error(field, code, message, help));
        if !check::is_label(&self.namespace) {
            fault("namespace", "bad-name", "this cannot be a namespace", check::LABEL_HELP);
        }
        if self.name.chars().count() > NAME_CHARS_MAX {
            fault("name", "too-long", &format!("longer than {NAME_CHARS_MAX} characters"), "shorten it");
        }
        if self.name.chars().any(char::is_control) {
            fault("name", "bad-character", "has a control character", "write it on one line");
        }
        if let Some(end) = self.expires_at.filter(|end| *end <= now) {
            fault("expires_at", "past", &format!("{end} is in the past"), "choose an instant in the future, or none");
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::Invalid(faults)) }
    }
}
