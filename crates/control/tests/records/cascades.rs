//! Records that are deleted with others.

use tollgate_control::{AuditFilter, Error, OverrideFilter, Page, Precondition, RecordKind};

use crate::by_hand::record_all_sql_edits;
use crate::databases::{Database, on_both};
use crate::drafts::{apply, change_set, override_draft, overriding, patiently, per_second, rule, seed};

on_both! {
    async fn overrides_are_deleted_with_their_rule_and_audited(db: Database) {
        let control = &db.control;
        apply(control, [
            rule("a", per_second(1), Precondition::Absent),
            rule("b", per_second(1), Precondition::Absent),
            overriding("one", override_draft("user:1", "a", 5)),
            overriding("two", override_draft("user:2", "a", 5)),
            overriding("stays", override_draft("user:1", "b", 5)),
        ]).await;
        let deleted = apply(control, [rule("a", None, Precondition::Present)]).await;
        let gone: Vec<(RecordKind, &str)> = deleted.changes.iter().map(|change| (change.kind, change.id.as_str())).collect();
        assert_eq!(gone, [(RecordKind::Override, "one"), (RecordKind::Override, "two"), (RecordKind::Rule, "a")]);
        let left = control.overrides(&OverrideFilter::default(), &Page::default()).await.unwrap().entries;
        assert_eq!(left.iter().map(|record| record.override_id.as_str()).collect::<Vec<_>>(), ["stays"]);
        let about = AuditFilter { kind: Some(RecordKind::Override), id: Some("two".to_owned()), ..AuditFilter::default() };
        let rows = control.audit(&about, &Page::default()).await.unwrap().entries;
        assert_eq!(rows.len(), 2);
        assert!(rows[0].before.is_some() && rows[0].after.is_none());
    }

    async fn an_override_that_moves_to_another_rule_stays(db: Database) {
        let control = &db.control;
        apply(control, [
            rule("a", per_second(1), Precondition::Absent),
            rule("b", per_second(1), Precondition::Absent),
            overriding("moves", override_draft("user:1", "a", 5)),
            overriding("goes", override_draft("user:2", "a", 5)),
        ]).await;
        let moved = overriding("moves", override_draft("user:1", "b", 5));
        let applied = apply(control, [moved, rule("a", None, Precondition::Present)]).await;
        assert_eq!(applied.changes.len(), 3);
        let left = control.overrides(&OverrideFilter::default(), &Page::default()).await.unwrap().entries;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].draft.rule_id, "b");
    }

    async fn a_rule_deleted_and_created_in_one_change_set_loses_its_overrides(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Absent), overriding("o", override_draft("user:1", "a", 5))]).await;
        let applied = apply(control, [rule("a", None, Precondition::Present), rule("a", per_second(2), Precondition::Absent)]).await;
        assert_eq!(applied.changes.len(), 3);
        assert!(matches!(control.overriding("default", "o").await, Err(Error::NotFound(_))));
        assert_eq!(control.rule("default", "a").await.unwrap().version, 2);
    }

    async fn a_rule_with_too_many_overrides_is_not_deleted_at_once(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Absent)]).await;
        seed(control, (0..12_000).map(|n| overriding(&format!("o-{n}"), override_draft(&format!("user:{n}"), "a", 5)))).await;
        let delete = change_set([rule("a", None, Precondition::Present)]);
        let why = patiently(async || match control.apply(&delete).await {
            Err(Error::Conflict(why)) => Ok(why),
            Err(other) => Err(other),
            Ok(_) => panic!("it was deleted"),
        });
        let why = why.await;
        assert_eq!(why, "the rule a has more than 10000 overrides; delete those first, in several steps");
        let before = db.texts("SELECT CAST(COUNT(*) AS TEXT) FROM rate_limit_overrides").await;
        assert_eq!(before, ["12000"]);
        assert_eq!(patiently(async || control.verify_audit().await).await.rows, 12_001);
    }
}

/// SQLite has no TRUNCATE.
#[tokio::test(flavor = "multi_thread")]
async fn truncating_rules_deletes_their_overrides_and_modes_and_keeps_those_of_files() {
    let db = Database::postgres().await;
    let control = &db.control;
    apply(control, [rule("a", per_second(1), Precondition::Absent), overriding("o", override_draft("user:1", "a", 5))])
        .await;
    db.run("INSERT INTO rate_limit_rule_modes (rule_id, mode) VALUES ('a', 'off'), ('filed', 'off')").await;
    db.run("INSERT INTO rate_limit_overrides (override_id, client_key, rule_id, max_requests, valid_until) VALUES ('p', 'user:1', 'filed', 7, '2030-01-01')").await;
    record_all_sql_edits(control).await;
    db.run("TRUNCATE rate_limit_rules").await;
    record_all_sql_edits(control).await;
    assert_eq!(db.texts("SELECT override_id FROM rate_limit_overrides").await, ["p"]);
    assert_eq!(db.texts("SELECT rule_id FROM rate_limit_rule_modes").await, ["filed"]);
    let gone = "SELECT kind || ' ' || id FROM audit WHERE author = 'sql' AND after IS NULL AND kind <> 'everything' ORDER BY kind";
    assert_eq!(db.texts(gone).await, ["override o", "rule_mode a"]);
}
