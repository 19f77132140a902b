//! Invalid text: SQLite stores any bytes. Triggers refuse it from SQL. Rows that hold it from before, or that bypassed
//! the triggers, are reported, and everything else goes on.

use std::time::Duration;

use tokio::time::timeout;
use tollgate_control::{Page, Precondition};

use crate::by_hand::{follow, record_all_sql_edits};
use crate::databases::{Database, on_both};
use crate::drafts::{NAMESPACE, apply, per_second, rule};

const BAD: [&str; 4] =
    ["CAST(x'ff41' AS TEXT)", "CAST(x'41c3' AS TEXT)", "CAST(x'eda080' AS TEXT)", "'a' || char(0) || 'b'"];

fn inserts(text: &str) -> Vec<String> {
    let rule = |column: &str| {
        format!("INSERT INTO rate_limit_rules (max_requests, window_secs, {column}) VALUES (1, 1, {text})")
    };
    let overriding = |column: &str, key: &str, rule: &str| {
        format!(
            "INSERT INTO rate_limit_overrides (client_key, rule_id, max_requests, valid_until, {column}) VALUES ({key}, {rule}, 5, '2030-01-01', {text})"
        )
    };
    let mut all: Vec<String> = ["namespace", "client_key", "endpoint", "key_by"].map(rule).into();
    all.extend(["namespace", "override_id", "reason"].map(|column| overriding(column, "'user:1'", "'a'")));
    all.push(overriding("reason", text, "'a'"));
    all.push(overriding("reason", "'user:1'", text));
    all.extend(
        ["namespace", "tier", "organisation"]
            .map(|column| format!("INSERT INTO clients (client_key, {column}) VALUES ('k-{column}', {text})")),
    );
    all.push(format!("INSERT INTO clients (client_key) VALUES ({text})"));
    all.push(format!("INSERT INTO rate_limit_namespaces (namespace) VALUES ({text})"));
    all.push(format!("INSERT INTO rate_limit_rule_modes (rule_id, mode) VALUES ({text}, 'off')"));
    all.push(format!("INSERT INTO rate_limit_violations (client_key, endpoint, request_count, limit_value) VALUES ({text}, '/', 1, 1)"));
    all.push(format!("INSERT INTO tokens (token_id, name, role, hash, created_at, created_by) VALUES ({text}, 'x', 'admin', zeroblob(32), 'now', 'me')"));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_text_is_refused_at_once() {
    let db = Database::sqlite().await;
    for text in BAD {
        for insert in inserts(text)
            .into_iter()
            .chain([format!("INSERT INTO rate_limit_rules (max_requests, window_secs, rule_id) VALUES (1, 1, {text})")])
        {
            let said = db.refusal(&insert).await;
            assert!(said.contains("UTF-8") || said.contains("use 1 to 64 letters"), "{insert}: {said}");
        }
    }
    for insert in inserts("'aé🦀\u{ffff}\u{fffe}\u{fffd}\u{10ffff}\u{85}'") {
        db.run(&insert).await;
    }
    db.run("INSERT INTO rate_limit_rules (rule_id, max_requests, window_secs) VALUES ('a', 1, 1)").await;
    for update in [
        "rate_limit_rules SET endpoint",
        "clients SET client_key",
        "rate_limit_overrides SET reason",
        "rate_limit_violations SET endpoint",
    ] {
        for text in BAD {
            let said = db.refusal(&format!("UPDATE {update} = {text}")).await;
            assert!(said.contains("UTF-8"), "{update} {text}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_with_invalid_text_are_reported_and_everything_else_goes_on() {
    let db = Database::sqlite().await;
    apply(&db.control, ["a", "b"].map(|id| rule(id, per_second(1), Precondition::Absent))).await;
    db.run("DROP TRIGGER rate_limit_violations_text_inserted").await;
    let (feed, _) = follow(&db).await;
    let mut state = feed.state();
    let (mut generation, mut limit) = (1, 100);
    for text in BAD {
        for insert in inserts(text)
            .into_iter()
            .chain([format!("INSERT INTO rate_limit_rules (max_requests, window_secs, rule_id) VALUES (1, 1, {text})")])
        {
            // A row from before the triggers, recorded by earlier ones.
            let note = "INSERT OR IGNORE INTO tollgate_sql_edits (kind, namespace, id, existed) VALUES";
            db.run(&format!(
                "BEGIN IMMEDIATE; UPDATE tollgate_state SET writing = 1; {}; UPDATE tollgate_state SET writing = 0; \
                             {note} ('client', 'default', {text}, 0), ('rule', {text}, 'x', 1), ({text}, 'x', 'x', 1); COMMIT",
                insert.replacen("INSERT", "INSERT OR IGNORE", 1)
            ))
            .await;
        }
        limit += 1;
        db.run(&format!("UPDATE rate_limit_rules SET max_requests = {limit} WHERE rule_id = 'b'")).await;
        generation += 1;
        let heard = timeout(
            Duration::from_secs(20),
            state.wait_for(|state| state.generation >= generation && state.unavailable.is_none()),
        )
        .await;
        assert!(heard.is_ok(), "{text} holds others up");
        record_all_sql_edits(&db.control).await;
        generation = db.control.state().await.unwrap().generation;
    }
    let (restarted, seen) = follow(&db).await;
    let loaded = seen.lock().unwrap().clone().unwrap();
    let names: Vec<_> = loaded.namespaces[NAMESPACE].rules.iter().map(|rule| rule.name.clone().unwrap()).collect();
    assert!(names.contains(&"a".to_owned()) && names.contains(&"b".to_owned()), "{names:?}");
    assert_eq!(db.control.rule(NAMESPACE, "b").await.unwrap().draft.document["limit"]["requests"], limit);
    for kind in ["rule", "client", "override", "rule_mode"] {
        let named =
            loaded.quarantined.iter().filter(|bad| bad.kind.name() == kind && bad.reasons[0].code == "bad-row").count();
        assert!(named >= BAD.len(), "{kind}: {:?}", loaded.quarantined);
    }
    let mut page = Page { limit: 1, after: None };
    let mut listed = Vec::new();
    for _ in 0..1000 {
        let piece = db.control.rules(&Default::default(), &page).await.unwrap();
        listed.extend(piece.entries.into_iter().map(|rule| rule.rule_id));
        page.after = piece.next;
        if page.after.is_none() {
            break;
        }
    }
    assert!(page.after.is_none() && listed.contains(&"a".to_owned()) && listed.contains(&"b".to_owned()));
    db.control.violations(&Default::default(), &Page::default()).await.unwrap();
    db.control.namespaces().await.unwrap();
    apply(&db.control, [rule("c", per_second(1), Precondition::Absent)]).await;
    drop(restarted);
}

on_both! {
    async fn junk_among_the_recorded_edits_delays_no_other(db: Database) {
        apply(&db.control, [rule("a", per_second(1), Precondition::Absent)]).await;
        for (kind, id) in [("bogus", "x"), ("rule", ""), ("token", "none"), ("client", "%"), ("namespace", "\u{202e}")] {
            db.run(&format!("INSERT INTO tollgate_sql_edits (kind, namespace, id, existed, written_by) VALUES ('{kind}', 'x', '{id}', TRUE, '')")).await;
        }
        db.run("UPDATE rate_limit_rules SET max_requests = 7 WHERE rule_id = 'a'").await;
        for _ in 0..3 {
            record_all_sql_edits(&db.control).await;
        }
        assert_eq!(db.texts("SELECT kind FROM tollgate_sql_edits").await, Vec::<String>::new());
        assert_eq!(db.control.rule(NAMESPACE, "a").await.unwrap().version, db.control.state().await.unwrap().generation);
    }

    async fn an_edit_that_cannot_be_recorded_delays_no_other(db: Database) {
        apply(&db.control, [rule("a", per_second(1), Precondition::Absent), rule("b", per_second(1), Precondition::Absent)]).await;
        // A trigger of a database administrator, unknown to the program.
        db.run(match db.url {
            tollgate_control::DatabaseUrl::Sqlite(_) => "CREATE TRIGGER no BEFORE UPDATE OF version ON rate_limit_rules WHEN NEW.rule_id = 'a' AND NEW.version > 1 \
                                                   BEGIN SELECT RAISE(ABORT, 'no'); END",
            tollgate_control::DatabaseUrl::Postgres(_) => "CREATE FUNCTION no() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'; \
                                   CREATE TRIGGER no BEFORE UPDATE ON rate_limit_rules FOR EACH ROW \
                                   WHEN (NEW.rule_id = 'a' AND NEW.version > 1) EXECUTE FUNCTION no()",
        }).await;
        db.run("UPDATE rate_limit_rules SET max_requests = 7").await;
        record_all_sql_edits(&db.control).await;
        assert_eq!(db.control.rule(NAMESPACE, "b").await.unwrap().version, 2);
        assert!(db.control.changes_since(1).await.unwrap().everything, "all nodes look for what the audit does not tell");
    }
}
