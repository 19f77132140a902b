//! Grants: what is checked, audited, followed, reverted and deleted with a rule.

use serde_json::json;
use tollgate_control::record::{GrantDraft, RuleDraft};
use tollgate_control::{AuditFilter, ChangeSet, Edit, Error, GrantFilter, Page, Precondition, RecordKind};

use crate::by_hand::{follow, record_all_sql_edits};
use crate::databases::{Database, on_both};
use crate::drafts::{
    NAMESPACE, NEW_YEAR, NEXT_YEAR, apply, change_set, client, client_draft, faults, per_second, rule, rule_draft,
};

fn monthly() -> RuleDraft {
    rule_draft(json!({ "key_by": "user_id", "quota": { "amount": 100, "every": "month" } }))
}

fn draft(client_key: &str, rule_id: &str, amount: i64) -> GrantDraft {
    GrantDraft {
        client_key: client_key.to_owned(),
        rule_id: rule_id.to_owned(),
        amount,
        valid_from: None,
        valid_until: None,
        reason: "ticket 4711".to_owned(),
    }
}

fn grant(grant_id: &str, to: impl Into<Option<GrantDraft>>) -> Edit {
    let (namespace, grant_id) = (NAMESPACE.to_owned(), grant_id.to_owned());
    Edit::Grant { namespace, grant_id, to: to.into(), expect: Precondition::Anything }
}

async fn ids(db: &Database, filter: GrantFilter) -> Vec<String> {
    let found = db.control.grants(&filter, &Page::default()).await.unwrap().entries;
    found.into_iter().map(|record| record.grant_id).collect()
}

on_both! {
    async fn a_grant_starts_when_it_is_written_and_is_audited(db: Database) {
        let control = &db.control;
        apply(control, [rule("monthly", monthly(), Precondition::Absent)]).await;
        let made = apply(control, [grant("g", draft("user:1", "monthly", 50))]).await;
        let record = control.grant(NAMESPACE, "g").await.unwrap();
        assert_eq!((record.draft.valid_from, record.draft.amount, record.version), (Some(record.created_at), 50, 2));
        assert_eq!(made.changes[0].after, Some(record.json()));
        let touched = control.changes_since(1).await.unwrap();
        assert_eq!((touched.clients.len(), touched.everything), (1, false), "one client is read again");
        let about = AuditFilter { kind: Some(RecordKind::Grant), ..AuditFilter::default() };
        apply(control, [grant("g", None)]).await;
        let rows = control.audit(&about, &Page::default()).await.unwrap().entries;
        assert_eq!(rows.len(), 2);
        assert!(rows[0].after.is_none() && rows[1].before.is_none());
        let edit = control.revert_edit(rows[0].number, |_| true).await.unwrap();
        apply(control, [edit]).await;
        let back = control.grant(NAMESPACE, "g").await.unwrap();
        assert_eq!(back.draft, record.draft, "with the start that it had");
        assert!(control.verify_audit().await.is_ok());
    }

    async fn the_same_key_grants_once(db: Database) {
        let control = &db.control;
        apply(control, [rule("monthly", monthly(), Precondition::Absent)]).await;
        let order = |amount| ChangeSet {
            idempotency_key: Some("k".to_owned()),
            ..change_set([Edit::Grant {
                namespace: NAMESPACE.to_owned(),
                grant_id: "g".to_owned(),
                to: Some(draft("user:1", "monthly", amount)),
                expect: Precondition::Absent,
            }])
        };
        let first = control.apply(&order(50)).await.unwrap();
        let again = control.apply(&order(50)).await.unwrap();
        assert_eq!((first.generation, again.generation, again.replayed), (2, 2, true));
        assert_eq!(first.changes, again.changes, "the start is that of the first");
        assert!(matches!(control.apply(&order(51)).await, Err(Error::KeyReused)));
    }

    async fn what_cannot_be_granted_is_refused(db: Database) {
        let control = &db.control;
        let shared = rule_draft(json!({ "key_by": "org", "quota": { "amount": 100, "every": "month" } }));
        apply(control, [
            rule("monthly", monthly(), Precondition::Absent),
            rule("by-org", shared, Precondition::Absent),
            rule("rate", per_second(1), Precondition::Absent),
        ]).await;
        let ended = GrantDraft { valid_from: Some(NEXT_YEAR), valid_until: Some(NEW_YEAR), ..draft("user:1", "monthly", 1) };
        for (draft, code, field, text) in [
            (draft("user:1", "montly", 1), "unknown-rule", "rule_id", "did you mean `monthly`?"),
            (draft("user:1", "rate", 1), "bad-grant", "rule_id", "not a quota"),
            (draft("user:1", "by-org", 1), "bad-grant", "client_key", "counts by org, not by user_id"),
            (draft("user:1", "monthly", 0), "out-of-range", "amount", "0"),
            (draft("user:1", "monthly", i64::MAX), "out-of-range", "amount", "9223372036854775807"),
            (draft("", "monthly", 1), "blank", "client_key", "empty"),
            (ended, "bad-time", "valid_until", "ends before it starts"),
        ] {
            let found = faults(control, [grant("g", draft)]).await;
            let [fault] = found.as_slice() else { panic!("{found:?}") };
            assert_eq!((fault.code.as_str(), fault.field.as_str()), (code, field), "{fault:?}");
            assert!(format!("{fault:?}").contains(text), "{fault:?}");
        }
        assert_eq!(ids(&db, GrantFilter::default()).await, [""; 0]);
    }

    async fn grants_are_found_followed_and_deleted_with_their_rule(db: Database) {
        let control = &db.control;
        let (feed, seen) = follow(&db).await;
        let mut state = feed.state();
        apply(control, [
            rule("monthly", monthly(), Precondition::Absent),
            rule("other", monthly(), Precondition::Absent),
            client("user:1", client_draft("gold")),
            grant("a", GrantDraft { valid_from: Some(NEW_YEAR), ..draft("user:1", "monthly", 5) }),
            grant("b", GrantDraft { valid_from: Some(NEW_YEAR), valid_until: Some(NEXT_YEAR), ..draft("user:2", "monthly", 5) }),
            grant("c", draft("user:2", "other", 5)),
        ]).await;
        let of = |client_key: &str| GrantFilter { client_key: Some(client_key.to_owned()), ..GrantFilter::default() };
        assert_eq!(ids(&db, of("user:2")).await, ["b", "c"]);
        let at = GrantFilter { holds_at: Some(NEXT_YEAR), ..GrantFilter::default() };
        assert_eq!(ids(&db, GrantFilter { rule_id: Some("monthly".to_owned()), ..at }).await, ["a"]);
        feed.trigger();
        state.wait_for(|state| state.generation >= 1).await.unwrap();
        let grants = || seen.lock().unwrap().as_ref().map(|loaded| loaded.namespaces[NAMESPACE].directory.grants());
        assert_eq!(grants(), Some(3), "all at once");
        apply(control, [grant("c", None)]).await;
        feed.trigger();
        state.wait_for(|state| state.generation >= 2).await.unwrap();
        assert_eq!(grants(), Some(2), "the client's alone");
        let gone = apply(control, [rule("monthly", None, Precondition::Present)]).await;
        let gone: Vec<(RecordKind, &str)> = gone.changes.iter().map(|change| (change.kind, change.id.as_str())).collect();
        assert_eq!(gone, [(RecordKind::Grant, "a"), (RecordKind::Grant, "b"), (RecordKind::Rule, "monthly")]);
        feed.trigger();
        state.wait_for(|state| state.generation >= 3).await.unwrap();
        assert_eq!(grants(), Some(0));
        let edits = control.rollback_edits(1).await.unwrap();
        apply(control, edits).await;
        assert_eq!(ids(&db, GrantFilter::default()).await, ["a", "b", "c"]);
    }

    async fn a_grant_may_be_written_with_sql(db: Database) {
        let control = &db.control;
        apply(control, [rule("monthly", monthly(), Precondition::Absent)]).await;
        db.run("INSERT INTO rate_limit_grants (grant_id, client_key, rule_id, amount, valid_until) VALUES ('g', 'user:1', 'monthly', 5, '2030-01-01')").await;
        record_all_sql_edits(control).await;
        let record = control.grant(NAMESPACE, "g").await.unwrap();
        assert_eq!(record.draft.valid_until.map(|until| until.to_string()).as_deref(), Some("2030-01-01T00:00:00.000000Z"));
        assert!(record.draft.valid_from.is_some() && record.version == 2);
        let refusal = db.refusal("INSERT INTO rate_limit_grants (client_key, rule_id, amount) VALUES ('user:1', 'monthly', 0)").await;
        assert!(refusal.contains("grant_amount"), "{refusal}");
        db.run("DELETE FROM rate_limit_rules").await;
        record_all_sql_edits(control).await;
        assert_eq!(ids(&db, GrantFilter::default()).await, [""; 0]);
        let gone = "SELECT kind || ' ' || id FROM audit WHERE author = 'sql' AND after IS NULL ORDER BY kind";
        assert_eq!(db.texts(gone).await, ["grant g", "rule monthly"]);
    }
}
