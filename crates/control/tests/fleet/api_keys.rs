//! API keys: shown once, rotated with an overlap, revoked, followed, and changed with SQL.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate_control::change_feed::{ChangeFeed, ChangeFeedConfig, LoadContext, LoadedState};
use tollgate_control::record::ApiKeyRecord;
use tollgate_control::{ApiKeyDraft, ApiKeyFilter, AuditFilter, Error, Instant, Page, RecordKind};
use tollgate_core::{ManualClock, Secret, Time};

use crate::databases::{Database, author, on_both};

const NAMESPACE: &str = "default";
const DAY: Duration = Duration::from_secs(86_400);

fn draft(client_key: &str, name: &str) -> ApiKeyDraft {
    let (namespace, client_key) = (NAMESPACE.to_owned(), client_key.to_owned());
    ApiKeyDraft { namespace, client_key, name: name.to_owned(), expires_at: None }
}

async fn make(db: &Database, client_key: &str, name: &str) -> (ApiKeyRecord, String) {
    db.control.create_api_key(&draft(client_key, name), &author()).await.unwrap()
}

/// What a node of this database has loaded.
type Seen = Arc<Mutex<Option<Arc<LoadedState>>>>;

async fn follow(db: &Database) -> (ChangeFeed, Seen) {
    let seen = Seen::default();
    let keep = seen.clone();
    let following = ChangeFeedConfig {
        control: db.node(),
        copy: None,
        context: LoadContext { secret: Secret::new([7; 16]), identities: Arc::new(|_| None) },
        poll: Duration::from_secs(30),
        clock: Arc::new(ManualClock::at(Time::from_nanos(1))),
        adopt: Arc::new(move |loaded| {
            *keep.lock().unwrap() = Some(loaded);
            true
        }),
    };
    (ChangeFeed::start(following).await.unwrap(), seen)
}

async fn names(db: &Database, filter: ApiKeyFilter) -> Vec<String> {
    let found = db.control.api_keys(&filter, &Page::default()).await.unwrap().entries;
    let mut names: Vec<String> = found.into_iter().map(|record| record.name).collect();
    names.sort();
    names
}

on_both! {
    async fn a_key_is_shown_once_and_only_its_digest_is_stored(db: Database) {
        let (record, key) = make(&db, "user:42", "mobile").await;
        let [tk, id, secret] = key.split('_').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((tk, id, secret.len()), ("tk", record.key_id.as_str(), 32), "160 bits of the secret");
        assert_eq!(db.control.api_key(NAMESPACE, id).await.unwrap(), record);
        let stored = db.texts("SELECT namespace || key_id || client_key || name || created_by FROM rate_limit_keys").await;
        let audited = db.texts("SELECT after FROM audit").await;
        assert!(stored.iter().chain(&audited).all(|text| !text.contains(secret)));
        assert!(!format!("{record:?}").contains("user:42"));
        let rows = db.control.audit(&AuditFilter::default(), &Page::default()).await.unwrap().entries;
        assert_eq!((rows[0].kind, rows[0].id.as_str(), rows[0].namespace.as_str()), (RecordKind::Key, id, NAMESPACE));
        let (_, other) = make(&db, "user:42", "mobile").await;
        assert_ne!(other, key);
    }

    async fn what_is_no_key_is_refused(db: Database) {
        let past = ApiKeyDraft { expires_at: Some(Instant(1)), ..draft("user:42", "a") };
        let nameless = ApiKeyDraft { namespace: String::new(), ..draft("user:42", "a") };
        for (draft, field) in [
            (draft("", "a"), "client_key"),
            (draft("user:42", "a\nb"), "name"),
            (draft("user:42", &"x".repeat(201)), "name"),
            (past, "expires_at"),
            (nameless, "namespace"),
        ] {
            let refused = db.control.create_api_key(&draft, &author()).await.unwrap_err();
            let Error::Invalid(faults) = refused else { panic!("{refused}") };
            assert_eq!(faults[0].field, field, "{faults:?}");
        }
    }

    async fn a_rotated_key_keeps_its_id_and_for_a_while_its_old_secret(db: Database) {
        let (before, key) = make(&db, "user:42", "mobile").await;
        let rotate = async |overlap| db.control.rotate_api_key(NAMESPACE, &before.key_id, overlap, &author()).await;
        let (once, next) = rotate(DAY).await.unwrap();
        assert_ne!(key, next);
        let (hash, until) = once.previous.unwrap();
        assert_eq!((hash, until.0 - once.rotated_at.unwrap().0), (before.hash, 86_400_000_000));
        assert_eq!((&once.key_id, &once.client_key, once.created_at), (&before.key_id, &before.client_key, before.created_at));
        assert_eq!(db.control.api_key(NAMESPACE, &before.key_id).await.unwrap(), once);
        let (twice, _) = rotate(DAY).await.unwrap();
        assert_eq!(twice.previous.unwrap().0, once.hash, "the oldest secret ends with the second rotation");
        let (at_once, _) = rotate(Duration::ZERO).await.unwrap();
        assert_eq!(at_once.previous, None);
        assert!(matches!(rotate(DAY * 91).await, Err(Error::Invalid(_))));
        let gone = db.control.rotate_api_key(NAMESPACE, "unheard-of", DAY, &author()).await;
        assert!(matches!(gone, Err(Error::NotFound(_))));
    }

    async fn a_revoked_key_stays_for_the_audit_and_cannot_return(db: Database) {
        let (record, _) = make(&db, "user:42", "mobile").await;
        make(&db, "user:43", "other").await;
        let revoked = db.control.revoke_api_key(NAMESPACE, &record.key_id, &author()).await.unwrap();
        assert!(revoked.revoked_at.is_some());
        for result in [
            db.control.revoke_api_key(NAMESPACE, &record.key_id, &author()).await.map(drop),
            db.control.rotate_api_key(NAMESPACE, &record.key_id, DAY, &author()).await.map(drop),
        ] {
            assert!(matches!(result, Err(Error::NotFound(_))));
        }
        assert_eq!(names(&db, ApiKeyFilter::default()).await, ["other"]);
        assert_eq!(names(&db, ApiKeyFilter { with_revoked: true, ..ApiKeyFilter::default() }).await, ["mobile", "other"]);
        let of = |client_key: &str| ApiKeyFilter { client_key: Some(client_key.to_owned()), ..ApiKeyFilter::default() };
        assert_eq!(names(&db, of("user:43")).await, ["other"]);
        assert_eq!(names(&db, of("user:42")).await, [""; 0]);
        assert!(db.control.verify_audit().await.is_ok());
    }

    async fn nodes_read_only_the_keys_that_changed(db: Database) {
        let (first, _) = make(&db, "user:1", "first").await;
        let (feed, seen) = follow(&db).await;
        let mut state = feed.state();
        let known = || {
            let seen = seen.lock().unwrap();
            let keys = seen.as_ref().unwrap().api_keys.clone();
            keys.values().map(|key| (key.name.clone(), key.hash)).collect::<Vec<_>>()
        };
        assert_eq!(known(), [("first".to_owned(), first.hash)]);
        let (rotated, _) = db.control.rotate_api_key(NAMESPACE, &first.key_id, DAY, &author()).await.unwrap();
        feed.trigger();
        state.wait_for(|state| state.generation >= 2).await.unwrap();
        assert_eq!(known(), [("first".to_owned(), rotated.hash)]);
        make(&db, "user:2", "second").await;
        db.control.revoke_api_key(NAMESPACE, &first.key_id, &author()).await.unwrap();
        feed.trigger();
        state.wait_for(|state| state.generation >= 4).await.unwrap();
        assert_eq!(known().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["second"]);
        assert_eq!(state.borrow().full_loads, 1, "only what changed was read");
    }

    async fn a_key_may_be_revoked_and_ended_with_sql(db: Database) {
        let (ended, _) = make(&db, "user:1", "ended").await;
        let (revoked, _) = make(&db, "user:2", "revoked").await;
        db.run(&format!("UPDATE rate_limit_keys SET expires_at = '2027-01-01' WHERE key_id = '{}'", ended.key_id)).await;
        db.run(&format!("UPDATE rate_limit_keys SET revoked_at = '2026-01-01' WHERE key_id = '{}'", revoked.key_id)).await;
        // On a busy machine a lock may take too long: try again.
        while !matches!(db.control.record_sql_edits().await, Ok(false)) {}
        let now = db.control.api_key(NAMESPACE, &ended.key_id).await.unwrap();
        assert_eq!(now.expires_at.map(|end| end.to_string()).as_deref(), Some("2027-01-01T00:00:00.000000Z"));
        assert!(now.version > ended.version);
        assert_eq!(names(&db, ApiKeyFilter::default()).await, ["ended"]);
        let touched = db.control.changes_since(2).await.unwrap();
        assert_eq!((touched.api_keys.len(), touched.everything), (2, false));
    }
}
