//! The API keys of the database, all in memory: a request that shows a key never waits, neither for the database nor
//! for a lock.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tollgate_control::LoadedApiKeys;
use tollgate_control::record::ApiKeyRecord;
use tollgate_core::Time;
use tollgate_identity::{DirectoryKey, KeyDigest, KeyDirectory, ProofKind, ProvenIdentity};

/// The keys that are valid now, by the digest of each of their secrets. The change feed replaces the whole map.
#[derive(Default)]
pub struct ApiKeys {
    keys: ArcSwap<HashMap<KeyDigest, DirectoryKey>>,
    /// What `keys` was made of: most changes of the database are of something else.
    loaded: Mutex<Option<Arc<LoadedApiKeys>>>,
}

impl ApiKeys {
    /// Takes the keys of the database.
    pub fn replace(&self, loaded: &Arc<LoadedApiKeys>) {
        let mut before = self.loaded.lock();
        if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, loaded)) {
            return;
        }
        *before = Some(loaded.clone());
        let mut keys = HashMap::with_capacity(loaded.len());
        let mut namespaces: HashMap<&str, Arc<str>> = HashMap::new();
        for record in loaded.values() {
            let namespace = namespaces.entry(&record.namespace).or_insert_with(|| record.namespace.as_str().into());
            keys.extend(secrets(record, namespace).map(|key| (key.digest, key)));
        }
        self.keys.store(Arc::new(keys));
    }

    /// The number of secrets: a key that is being rotated has two.
    pub fn len(&self) -> usize {
        self.keys.load().len()
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl KeyDirectory for ApiKeys {
    fn find(&self, digest: &KeyDigest) -> Option<DirectoryKey> {
        self.keys.load().get(digest).cloned()
    }
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeys").field("keys", &self.len()).finish_non_exhaustive()
    }
}

/// The secrets of a key: its own, and the one before its last rotation.
fn secrets(record: &ApiKeyRecord, namespace: &Arc<str>) -> impl Iterator<Item = DirectoryKey> {
    let identity = Arc::new(ProvenIdentity {
        api_key: Some(record.key_id.clone()),
        ..ProvenIdentity::new(ProofKind::ApiKey, record.client_key.as_str())
    });
    let end = record.expires_at.map(|end| end.time());
    let secret = |hash: [u8; 32], expires_at: Option<Time>| DirectoryKey {
        namespace: Some(namespace.clone()),
        digest: KeyDigest(hash),
        expires_at,
        is_revoked: record.revoked_at.is_some(),
        identity: identity.clone(),
    };
    let own = secret(record.hash, end);
    let previous = record.previous.map(|(hash, until)| {
        let until = until.time();
        secret(hash, Some(end.map_or(until, |end| end.min(until))))
    });
    [Some(own), previous].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use tollgate_control::Instant;

    use super::*;

    fn record(key_id: &str, key: &str) -> ApiKeyRecord {
        ApiKeyRecord {
            namespace: "shop".to_owned(),
            key_id: key_id.to_owned(),
            client_key: "user:42".to_owned(),
            name: String::new(),
            hash: KeyDigest::of(key).0,
            previous: None,
            rotated_at: None,
            expires_at: None,
            revoked_at: None,
            created_by: "cli".to_owned(),
            created_at: Instant(0),
            updated_at: Instant(0),
            version: 1,
        }
    }

    fn loaded(records: Vec<ApiKeyRecord>) -> Arc<LoadedApiKeys> {
        let entry = |record: ApiKeyRecord| ((record.namespace.clone(), record.key_id.clone()), Arc::new(record));
        Arc::new(records.into_iter().map(entry).collect())
    }

    #[test]
    fn both_secrets_of_a_rotated_key_are_the_same_key() {
        let keys = ApiKeys::default();
        let rotated = ApiKeyRecord {
            previous: Some((KeyDigest::of("old").0, Instant(90_000_000))),
            expires_at: Some(Instant(60_000_000)),
            ..record("k1", "new")
        };
        keys.replace(&loaded(vec![rotated, record("k2", "other")]));
        assert_eq!(keys.len(), 3);
        let (new, old) = (keys.find(&KeyDigest::of("new")).unwrap(), keys.find(&KeyDigest::of("old")).unwrap());
        assert_eq!(new.identity, old.identity);
        assert_eq!((new.identity.client_key.as_str(), new.identity.api_key.as_deref()), ("user:42", Some("k1")));
        assert_eq!(new.namespace.as_deref(), Some("shop"));
        assert_eq!(new.expires_at, Some(Time::from_secs(60)));
        assert_eq!(old.expires_at, Some(Time::from_secs(60)), "an old secret does not outlive its key");
        keys.replace(&loaded(Vec::new()));
        assert!(keys.is_empty() && keys.find(&KeyDigest::of("new")).is_none(), "revoked");
    }
}
