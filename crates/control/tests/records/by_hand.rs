//! Rows written with SQL, as textbooks show it: defaults fill in most columns, invalid values are refused, and the rows
//! are in force, audited and can be rolled back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use tollgate_control::change_feed::{ChangeFeed, ChangeFeedConfig, LoadContext, LoadedState};
use tollgate_control::record::Role;
use tollgate_control::{AuditFilter, Control, Error, Page, Precondition, RecordKind, TokenDraft, ViolationFilter};
use tollgate_core::{ManualClock, Secret, Time};
use tollgate_lab::patience::promised;

use crate::databases::{Database, author, on_both};
use crate::drafts::{NAMESPACE, apply, change_set, override_draft, overriding, per_second, rule};

const RULE: &str =
    "INSERT INTO rate_limit_rules (client_key, endpoint, algorithm, max_requests, window_secs, burst_size) ";

/// Records all SQL edits, as a node does.
pub async fn record_all_sql_edits(control: &Control) {
    for _ in 0..50 {
        match control.record_sql_edits().await {
            Ok(false) => return,
            // On a busy machine a lock may take too long: try again.
            Ok(true) | Err(Error::Unavailable(_)) => {}
            Err(why) => panic!("{why}"),
        }
    }
    panic!("there are always more edits");
}

async fn audit(db: &Database) -> Vec<String> {
    let records = db.control.audit(&AuditFilter::default(), &Page { limit: 100, after: None }).await.unwrap().entries;
    let one = |record: &tollgate_control::AuditRecord| {
        let (was, is) = (record.before.is_some(), record.after.is_some());
        let turn = match (was, is) {
            (false, true) => "made",
            (true, true) => "changed",
            (true, false) => "gone",
            (false, false) => "?",
        };
        format!("{} {} {} {turn}", record.author, record.kind.name(), record.id)
    };
    let mut told: Vec<String> = records.iter().rev().map(one).collect();
    told.sort();
    told
}

pub type Seen = Arc<Mutex<Option<Arc<LoadedState>>>>;

/// A node that follows the database, and the state it activated last.
pub async fn follow(db: &Database) -> (ChangeFeed, Seen) {
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

on_both! {
    async fn a_row_needs_no_more_than_the_textbook_says(db: Database) {
        db.run(&format!("{RULE} VALUES ('user:42', '/api/orders', 'token_bucket', 10, 1, 20), \
                         ('user:42', '/api/orders', 'sliding_window', 100, 60, 100), ('*', '/api/*', 'fixed_window', 5, 60, NULL)")).await;
        db.run("INSERT INTO rate_limit_overrides (client_key, rule_id, max_requests, valid_until) \
                VALUES ('user:42', 1, 50, '2026-12-01 10:30:00'), ('user:43', '1', 50, '2026-12-01T10:30:00+02:00')").await;
        db.run("INSERT INTO rate_limit_violations (client_key, endpoint, request_count, limit_value) \
                VALUES ('user:42', '/api/orders', 101, 100)").await;
        let rules = db.control.rules(&Default::default(), &Page::default()).await.unwrap().entries;
        let told: Vec<_> = rules.iter().map(|rule| (rule.rule_id.as_str(), json!(rule.draft.document))).collect();
        assert_eq!(told, [
            ("1", json!({ "match": { "client_key": "user:42", "endpoint": "/api/orders" },
                          "limit": { "requests": 10, "window": "1s", "algorithm": "token_bucket", "burst": 20 } })),
            ("2", json!({ "match": { "client_key": "user:42", "endpoint": "/api/orders" },
                          "limit": { "requests": 100, "window": "1m", "algorithm": "sliding_window" } })),
            ("3", json!({ "match": { "endpoint": "/api/*" },
                          "limit": { "requests": 5, "window": "1m", "algorithm": "fixed_window" } })),
        ], "numbers as ids, and windows have no burst");
        let overrides = db.control.overrides(&Default::default(), &Page::default()).await.unwrap().entries;
        let mut until: Vec<_> = overrides.iter().map(|one| format!("{} {}", one.draft.client_key, one.draft.valid_until)).collect();
        until.sort();
        assert_eq!(until, ["user:42 2026-12-01T10:30:00.000000Z", "user:43 2026-12-01T08:30:00.000000Z"]);
        let violations = db.control.violations(&ViolationFilter::default(), &Page::default()).await.unwrap().entries;
        let violation = &violations[0].violation;
        assert_eq!((violation.request_count, violation.limit_value, violation.refused), (101, 100, 1));
        assert_eq!((&violation.rule_id, violation.is_shadow, violation.last), (&None, false, violation.minute));
    }

    async fn invalid_values_are_refused_at_once(db: Database) {
        for (row, constraint) in [
            ("('*', '/a', 'tocken_bucket', 1, 1, 0)", "rule_algorithm"),
            ("('*', '/a', 'gcra', -1, 1, 0)", "rule_max_requests"),
            ("('*', '/a', 'gcra', 1, -1, 0)", "rule_window_secs"),
            ("('*', '/a', 'gcra', 1, 1, -1)", "rule_burst_size"),
        ] {
            let said = db.refusal(&format!("{RULE} VALUES {row}")).await;
            assert!(said.contains(constraint), "{row}: {said}");
        }
        for (columns, values, constraint) in [
            ("mode", "'shaddow'", "rule_mode"),
            ("consistency", "'eventual'", "rule_consistency"),
            ("on_fail", "'open'", "rule_on_fail"),
            ("window_ms", "1000", "rule_window_ms"),
            ("\"match\"", "'[1]'", "rule_match"),
            ("options", "'1'", "rule_options"),
        ] {
            let said = db.refusal(&format!("INSERT INTO rate_limit_rules (max_requests, window_secs, {columns}) VALUES (1, 1, {values})")).await;
            assert!(said.contains(constraint), "{columns}: {said}");
        }
        let said = db.refusal("INSERT INTO rate_limit_overrides (client_key, rule_id, max_requests, valid_from, valid_until) \
                               VALUES ('user:1', '1', 1, '2027-01-01', '2026-01-01')").await;
        assert!(said.contains("override_ends_after_it_begins"), "{said}");
        db.refusal("INSERT INTO rate_limit_overrides (client_key, rule_id, max_requests, valid_until) VALUES ('user:1', '1', 1, 'soon')").await;
        for values in ["('user:1', '/a', -1, 1)", "('user:1', '/a', 1, -1)"] {
            db.refusal(&format!("INSERT INTO rate_limit_violations (client_key, endpoint, request_count, limit_value) VALUES {values}")).await;
        }
    }

    async fn edits_with_sql_become_generations_with_their_audit(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Absent), rule("b", per_second(1), Precondition::Absent)]).await;
        apply(control, [overriding("o", override_draft("user:1", "a", 5)), overriding("p", override_draft("user:2", "b", 5))]).await;
        assert!(!control.record_sql_edits().await.unwrap());
        assert_eq!(control.state().await.unwrap().generation, 2, "what the program writes is no edit with SQL");

        let before = control.rule(NAMESPACE, "a").await.unwrap();
        db.run("UPDATE rate_limit_rules SET max_requests = 7 WHERE rule_id = 'a'").await;
        db.run("INSERT INTO clients (client_key, tier) VALUES ('user:9', 'gold')").await;
        db.run("DELETE FROM rate_limit_rules WHERE rule_id = 'b'").await;
        db.run("INSERT INTO rate_limit_namespaces (namespace, ipv6_prefix) VALUES ('shop', 48)").await;
        db.run("UPDATE clients SET tier = 'gold' WHERE client_key = 'user:9'").await;
        record_all_sql_edits(control).await;
        let after = control.rule(NAMESPACE, "a").await.unwrap();
        assert_eq!(after.draft.document["limit"]["requests"], 7);
        assert!(after.updated_at > before.updated_at && after.created_at == before.created_at);
        assert_eq!(after.version, 3, "who read it before the edit does not overwrite it");
        assert!(matches!(control.overriding(NAMESPACE, "p").await, Err(tollgate_control::Error::NotFound(_))), "it went with its rule");
        let told = audit(&db).await;
        let sql: Vec<&str> = told.iter().filter_map(|line| line.strip_prefix("sql ")).collect();
        assert_eq!(sql, ["client user:9 made", "namespace shop made", "override p gone", "rule a changed", "rule b gone"]);
        let touched = control.changes_since(2).await.unwrap();
        assert!(!touched.everything && touched.clients.len() == 2 && touched.rules.len() == 2, "{touched:?}");
        assert_eq!(touched.namespaces, ["shop".to_owned()].into());
        assert_eq!(control.verify_audit().await.unwrap().broken_at, None);
        record_all_sql_edits(control).await;
        assert_eq!(control.state().await.unwrap().generation, 3, "each edit once");

        let edits = control.rollback_edits(2).await.unwrap();
        let back = change_set(edits);
        control.apply(&back).await.unwrap();
        assert_eq!(control.rule(NAMESPACE, "a").await.unwrap().draft, before.draft);
        assert!(control.rule(NAMESPACE, "b").await.is_ok() && control.overriding(NAMESPACE, "p").await.is_ok());
        record_all_sql_edits(control).await;
        assert_eq!(control.state().await.unwrap().generation, 4);
    }

    async fn an_invalid_row_makes_all_nodes_load_everything_and_report_it(db: Database) {
        apply(&db.control, [rule("a", per_second(1), Precondition::Absent)]).await;
        db.run("INSERT INTO rate_limit_overrides (client_key, rule_id, valid_until) VALUES ('user:1', 'a', '2030-01-01')").await;
        record_all_sql_edits(&db.control).await;
        assert!(db.control.changes_since(1).await.unwrap().everything, "an override that changes nothing");
        db.run("UPDATE rate_limit_overrides SET unlimited = TRUE").await;
        record_all_sql_edits(&db.control).await;
        let overrides = db.control.overrides(&Default::default(), &Page::default()).await.unwrap().entries;
        assert!(overrides[0].draft.unlimited);
    }

    async fn a_row_that_was_invalid_at_first_is_audited_and_rolled_back_like_others(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Absent)]).await;
        db.run("INSERT INTO rate_limit_overrides (override_id, client_key, rule_id, valid_until) VALUES ('o', 'user:1', 'a', '2030-01-01')").await;
        db.run("INSERT INTO clients (client_key, attributes) VALUES ('user:2', '{\"a\": {}}')").await;
        record_all_sql_edits(control).await;
        db.run("UPDATE rate_limit_overrides SET max_requests = 7").await;
        db.run("UPDATE clients SET attributes = '{\"a\": \"b\"}'").await;
        record_all_sql_edits(control).await;
        let told = audit(&db).await;
        for line in ["sql override o made", "sql override o changed", "sql client user:2 made", "sql client user:2 changed"] {
            assert!(told.contains(&line.to_owned()), "{line}: {told:?}");
        }
        for generation in [2, 1] {
            let edits = control.rollback_edits(generation).await.unwrap();
            let back = change_set(edits);
            control.apply(&back).await.unwrap();
            assert!(control.overriding(NAMESPACE, "o").await.is_err() && control.client(NAMESPACE, "user:2").await.is_err(), "{generation}");
        }
        assert_eq!(control.verify_audit().await.unwrap().broken_at, None);
    }

    async fn a_row_renamed_with_sql_is_one_deleted_and_one_created(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Absent), overriding("o", override_draft("user:1", "a", 5))]).await;
        db.run("INSERT INTO clients (client_key) VALUES ('user:1')").await;
        db.run("INSERT INTO rate_limit_rule_modes (rule_id, mode) VALUES ('a', 'shadow')").await;
        db.run("INSERT INTO rate_limit_namespaces (namespace, ipv6_prefix) VALUES ('shop', 48)").await;
        record_all_sql_edits(control).await;
        db.run("UPDATE rate_limit_rules SET rule_id = 'b', name = 'b'").await;
        db.run("UPDATE rate_limit_overrides SET override_id = 'p'").await;
        db.run("UPDATE clients SET client_key = 'user:2'").await;
        db.run("UPDATE rate_limit_rule_modes SET rule_id = 'b'").await;
        db.run("UPDATE rate_limit_namespaces SET namespace = 'mall'").await;
        record_all_sql_edits(control).await;
        let told = audit(&db).await;
        for (kind, old, new) in [("rule", "a", "b"), ("override", "o", "p"), ("client", "user:1", "user:2"), ("rule_mode", "a", "b"), ("namespace", "shop", "mall")] {
            assert!(told.contains(&format!("sql {kind} {old} gone")) && told.contains(&format!("sql {kind} {new} made")), "{kind}: {told:?}");
        }
        assert!(!control.changes_since(2).await.unwrap().everything);
    }

    async fn the_mode_of_a_rule_is_deleted_with_it(db: Database) {
        apply(&db.control, [rule("a", per_second(1), Precondition::Absent), rule("b", per_second(1), Precondition::Absent)]).await;
        db.run("INSERT INTO rate_limit_rule_modes (rule_id, mode) VALUES ('a', 'off'), ('b', 'off')").await;
        record_all_sql_edits(&db.control).await;
        db.run("DELETE FROM rate_limit_rules WHERE rule_id = 'a'").await;
        record_all_sql_edits(&db.control).await;
        assert_eq!(db.texts("SELECT rule_id FROM rate_limit_rule_modes").await, ["b"], "a new rule of that id is not off");
        let told = audit(&db).await;
        assert!(told.contains(&"sql rule_mode a gone".to_owned()) && told.contains(&"sql rule a gone".to_owned()), "{told:?}");
    }

    async fn a_token_that_sql_revokes_is_revoked(db: Database) {
        let draft = TokenDraft { name: "ci".to_owned(), role: Role::Operator, namespaces: None, expires_at: None };
        let (token, _) = db.control.create_token(&draft, &author()).await.unwrap();
        db.control.touch_tokens(&[(token.token_id.clone(), token.created_at)]).await.unwrap();
        record_all_sql_edits(&db.control).await;
        assert_eq!(db.control.state().await.unwrap().generation, 1, "to use a token is no edit");
        db.run("UPDATE tokens SET revoked_at = created_at").await;
        record_all_sql_edits(&db.control).await;
        assert!(db.control.changes_since(1).await.unwrap().tokens);
        assert_eq!(audit(&db).await, [format!("cli token {} made", token.token_id), format!("sql token {} gone", token.token_id)]);
    }

    async fn many_edits_are_recorded_in_batches(db: Database) {
        let rows: Vec<String> = (0..1200).map(|n| format!("('user:{n}', 'gold')")).collect();
        db.run(&format!("INSERT INTO clients (client_key, tier) VALUES {}", rows.join(", "))).await;
        assert!(db.control.record_sql_edits().await.unwrap());
        record_all_sql_edits(&db.control).await;
        assert_eq!(db.control.state().await.unwrap().generation, 3, "other writers come in between");
        assert_eq!(db.texts("SELECT CAST(COUNT(*) AS TEXT) FROM audit WHERE author = 'sql'").await, ["1200"]);
    }

    async fn what_sql_writes_is_in_force_within_two_seconds(db: Database) {
        apply(&db.control, [rule("a", per_second(1), Precondition::Absent)]).await;
        let (feed, seen) = follow(&db).await;
        let mut state = feed.state();
        for (number, sql) in [
            format!("{RULE} VALUES ('*', '/api/orders', 'gcra', 5, 60, 0)"),
            "UPDATE rate_limit_rules SET max_requests = 9 WHERE rule_id = 'a'".to_owned(),
            "DELETE FROM rate_limit_rules WHERE rule_id = 'a'".to_owned(),
        ].into_iter().enumerate() {
            let generation = number as i64 + 2;
            db.run(&sql).await;
            let in_force = state.wait_for(|state| state.generation >= generation);
            promised(&format!("{sql} is in force"), Duration::from_secs(2), in_force).await.expect("the feed runs");
        }
        let loaded = seen.lock().unwrap().clone().unwrap();
        let names: Vec<_> = loaded.namespaces[NAMESPACE].rules.iter().map(|rule| rule.name.clone().unwrap()).collect();
        assert_eq!(names.len(), 1);
        assert_eq!(loaded.quarantined, []);
        let kinds: Vec<RecordKind> = db.control.audit(&AuditFilter::default(), &Page::default()).await.unwrap().entries.iter().map(|row| row.kind).collect();
        assert_eq!(kinds, [RecordKind::Rule; 4], "and none of it by reading everything anew");
    }

    async fn an_unusable_rule_comes_and_goes_without_the_others(db: Database) {
        apply(&db.control, ["a", "b"].map(|id| rule(id, per_second(1), Precondition::Absent))).await;
        let (feed, seen) = follow(&db).await;
        let mut state = feed.state();
        let spoil = "UPDATE rate_limit_rules SET options = '{\"colour\": \"red\"}' WHERE rule_id = 'a'";
        let steps: [(&str, &[&str], &[&str]); 6] = [
            (spoil, &["b"], &["a"]),
            ("UPDATE rate_limit_rules SET max_requests = 7 WHERE rule_id = 'b'", &["b"], &["a"]),
            ("INSERT INTO rate_limit_rules (rule_id, max_requests, window_secs) VALUES ('c', 9, 60)", &["b", "c"], &["a"]),
            ("UPDATE rate_limit_rules SET options = '{}' WHERE rule_id = 'a'", &["a", "b", "c"], &[]),
            (spoil, &["b", "c"], &["a"]),
            ("DELETE FROM rate_limit_rules WHERE rule_id = 'a'", &["b", "c"], &[]),
        ];
        for (number, (sql, used, unusable)) in steps.into_iter().enumerate() {
            let generation = number as i64 + 2;
            db.run(sql).await;
            let heard = timeout(Duration::from_secs(10), state.wait_for(|state| state.generation >= generation)).await;
            assert!(heard.is_ok(), "{sql} is not in force in time");
            let loaded = seen.lock().unwrap().clone().unwrap();
            let rules = &loaded.namespaces[NAMESPACE].rules;
            assert_eq!(rules.iter().map(|rule| rule.name.as_deref().unwrap()).collect::<Vec<_>>(), used, "{sql}");
            assert_eq!(loaded.quarantined.iter().map(|bad| bad.id.as_str()).collect::<Vec<_>>(), unusable, "{sql}");
            if number == 2 {
                assert_eq!(rules[0].limit.as_ref().unwrap().requests, 7);
            }
        }
        assert_eq!(state.borrow().full_loads, 1, "everything was read once");
    }
}
