//! The audit of changes, and how tampering is detected.

use tollgate_control::{AuditFilter, Author, Instant, Page, Precondition, RecordKind};

use crate::databases::{Database, author, on_both};
use crate::drafts::{apply, client, client_draft, override_draft, overriding, per_second, rule};

async fn history(db: &Database) {
    let control = &db.control;
    apply(control, [rule("a", per_second(1), Precondition::Absent), client("user:1", client_draft("gold"))]).await;
    apply(control, [rule("a", per_second(2), Precondition::Present)]).await;
    apply(control, [overriding("o", override_draft("user:1", "a", 5))]).await;
    control.refresh(&author()).await.unwrap();
    apply(control, [rule("a", None, Precondition::Present)]).await;
}

on_both! {
    async fn every_change_is_a_row_with_what_was_before_and_after(db: Database) {
        history(&db).await;
        let all = db.control.audit(&AuditFilter::default(), &Page::default()).await.unwrap().entries;
        let told: Vec<(i64, i64, RecordKind, &str, bool, bool)> = all
            .iter()
            .rev()
            .map(|row| (row.number, row.generation, row.kind, row.id.as_str(), row.before.is_some(), row.after.is_some()))
            .collect();
        assert_eq!(told, [
            (1, 1, RecordKind::Rule, "a", false, true),
            (2, 1, RecordKind::Client, "user:1", false, true),
            (3, 2, RecordKind::Rule, "a", true, true),
            (4, 3, RecordKind::Override, "o", false, true),
            (5, 4, RecordKind::Everything, "", false, false),
            (6, 5, RecordKind::Override, "o", true, false),
            (7, 5, RecordKind::Rule, "a", true, false),
        ]);
        assert!(all.iter().all(|row| (row.author.as_str(), row.author_name.as_str()) == ("cli", "me")));
        assert_eq!(all[4].after.as_ref().unwrap()["version"], 2);
        assert_eq!(db.control.verify_audit().await.unwrap().rows, 7);
        let count = async |filter: AuditFilter| {
            db.control.audit(&filter, &Page::default()).await.unwrap().entries.len()
        };
        let filter = AuditFilter::default;
        assert_eq!(count(AuditFilter { kind: Some(RecordKind::Rule), ..filter() }).await, 3);
        assert_eq!(count(AuditFilter { id: Some("o".to_owned()), ..filter() }).await, 2);
        assert_eq!(count(AuditFilter { author: Some("node".to_owned()), ..filter() }).await, 0);
        assert_eq!(count(AuditFilter { namespaces: Some(vec!["default".to_owned()]), ..filter() }).await, 6);
        // Several generations may share one instant of the database's clock.
        let last = all.iter().filter(|row| row.at == all[0].at).count();
        assert!(last >= 2 && all.is_sorted_by(|later, earlier| later.at >= earlier.at));
        assert_eq!(count(AuditFilter { from: Some(all[0].at), ..filter() }).await, last);
        assert_eq!(count(AuditFilter { to: Some(all[0].at), ..filter() }).await, 7 - last);
        assert_eq!(count(AuditFilter { from: Some(Instant(all[0].at.0 + 1)), ..filter() }).await, 0);
    }

    async fn generations_have_author_action_and_number_of_changes(db: Database) {
        history(&db).await;
        let mut changes = crate::drafts::change_set([client("user:2", client_draft("gold"))]);
        (changes.author, changes.action) = (Author { id: "t1".to_owned(), name: "deploy".to_owned() }, "import".to_owned());
        if let tollgate_control::Edit::Client { namespace, .. } = &mut changes.edits[0] {
            *namespace = "shop".to_owned();
        }
        db.control.apply(&changes).await.unwrap();
        let all = db.control.generations(None, &Page::default()).await.unwrap().entries;
        let told: Vec<(i64, &str, i64)> = all.iter().map(|one| (one.generation, one.action.as_str(), one.changes)).collect();
        assert_eq!(told, [(6, "import", 1), (5, "test", 2), (4, "refresh", 1), (3, "test", 1), (2, "test", 1), (1, "test", 2)]);
        assert_eq!((all[0].author.as_str(), all[0].author_name.as_str()), ("t1", "deploy"));
        let shop = db.control.generations(Some(&["shop".to_owned()]), &Page::default()).await.unwrap().entries;
        assert_eq!(shop.iter().map(|one| one.generation).collect::<Vec<_>>(), [6]);
    }

    async fn a_changed_audit_row_is_reported(db: Database) {
        history(&db).await;
        let tampering = [
            ("UPDATE audit SET author = 'other' WHERE number = 2", "UPDATE audit SET author = 'cli' WHERE number = 2", 2),
            ("UPDATE audit SET after = replace(after, 'gold', 'free') WHERE number = 2",
             "UPDATE audit SET after = replace(after, 'free', 'gold') WHERE number = 2", 2),
            ("UPDATE audit SET before = NULL WHERE number = 3 AND generation = 2; \
              UPDATE audit SET action = 'x' WHERE number = 6", "UPDATE audit SET action = 'test' WHERE number = 6", 3),
        ];
        for (tamper, repair, broken_at) in tampering {
            db.run(tamper).await;
            assert_eq!(db.control.verify_audit().await.unwrap().broken_at, Some(broken_at), "{tamper}");
            db.run(repair).await;
        }
    }

    async fn a_missing_audit_row_is_reported(db: Database) {
        history(&db).await;
        db.run("DELETE FROM audit WHERE number = 7").await;
        assert_eq!(db.control.verify_audit().await.unwrap().broken_at, Some(7), "the last one");
        db.run("DELETE FROM audit WHERE number = 4").await;
        assert_eq!(db.control.verify_audit().await.unwrap().broken_at, Some(5), "the row after the gap follows nothing");
        db.run("DELETE FROM audit WHERE number = 1").await;
        assert_eq!(db.control.verify_audit().await.unwrap().broken_at, Some(2));
        db.run("DELETE FROM audit").await;
        assert_eq!(db.control.verify_audit().await.unwrap().broken_at, Some(1));
    }
}
