//! Invalid rows written with SQL: they are reported, and all others are used.

use serde_json::json;
use tollgate_control::{Error, Page, Precondition, Quarantined, RecordKind};

use crate::databases::{Database, on_both};
use crate::drafts::{NAMESPACE, apply, client, client_draft, override_draft, overriding, per_second, rule, rule_draft};

struct Seen {
    good: Vec<String>,
    bad: Vec<Quarantined>,
}

async fn look(db: &Database) -> Seen {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let mut snapshot = db.control.snapshot().await.unwrap();
    let put = |row: Result<String, Quarantined>, good: &mut Vec<String>, bad: &mut Vec<Quarantined>| match row {
        Ok(id) => good.push(id),
        Err(row) => bad.push(row),
    };
    snapshot.rules(None, |row| put(row.map(|record| record.rule_id), &mut good, &mut bad)).await.unwrap();
    snapshot.clients(|row| put(row.map(|record| record.client_key), &mut good, &mut bad)).await.unwrap();
    snapshot.overrides(|row| put(row.map(|record| record.override_id), &mut good, &mut bad)).await.unwrap();
    Seen { good, bad }
}

on_both! {
    async fn invalid_rows_are_reported_and_the_rest_is_used(db: Database) {
        let control = &db.control;
        apply(control, ["a", "b", "c", "d", "e"].map(|id| rule(id, per_second(1), Precondition::Absent))).await;
        apply(control, [
            client("user:1", client_draft("gold")),
            client("user:2", client_draft("gold")),
            client("user:3", client_draft("gold")),
            overriding("fine", override_draft("user:1", "a", 5)),
            overriding("odd", override_draft("user:2", "a", 5)),
        ]).await;
        // Rows from before the CHECKs may hold what they refuse.
        db.run_unchecked("UPDATE rate_limit_rules SET algorithm = 'tocken_bucket' WHERE rule_id = 'a'").await;
        db.run_unchecked("UPDATE rate_limit_rules SET max_requests = -5, window_ms = 4000 WHERE rule_id = 'b'").await;
        db.run_unchecked("UPDATE rate_limit_rules SET \"match\" = '[1]' WHERE rule_id = 'c'").await;
        db.run("UPDATE rate_limit_rules SET options = '{\"colour\": \"red\"}' WHERE rule_id = 'd'").await;
        db.run("UPDATE clients SET attributes = '{\"a\": {}}' WHERE client_key = 'user:2'").await;
        db.run("UPDATE clients SET attributes = '{\"anchor\": \"32\", \"time_zone\": \"Europe/Berlim\"}' WHERE client_key = 'user:3'").await;
        db.run_unchecked("UPDATE rate_limit_overrides SET valid_from = '2027-06-01T00:00:00.000000Z' WHERE override_id = 'odd'").await;
        let seen = look(&db).await;
        assert_eq!(seen.good, ["e", "user:1", "fine"]);
        let told: Vec<(RecordKind, &str, String)> = seen
            .bad
            .iter()
            .map(|bad| (bad.kind, bad.id.as_str(), format!("{}: {}", bad.reasons[0].code, bad.reasons[0].field)))
            .collect();
        assert_eq!(told, [
            (RecordKind::Rule, "a", "unknown-value: limit.algorithm".to_owned()),
            (RecordKind::Rule, "b", "out-of-range: limit.requests".to_owned()),
            (RecordKind::Rule, "c", "bad-row: ".to_owned()),
            (RecordKind::Rule, "d", "unknown-field: colour".to_owned()),
            (RecordKind::Client, "user:2", "bad-row: ".to_owned()),
            (RecordKind::Client, "user:3", "bad-anchor: attributes.anchor".to_owned()),
            (RecordKind::Override, "odd", "bad-time: valid_until".to_owned()),
        ]);
        assert_eq!(seen.bad[1].reasons.len(), 2, "everything that is wrong with it");
        assert_eq!(seen.bad[2].reasons[0].message, "column match: should hold an object");

        let listed = control.rules(&Default::default(), &Page::default()).await.unwrap().entries;
        assert_eq!(listed.len(), 4, "what can be shown is shown, to be put right");
        assert_eq!(control.clients(&Default::default(), &Page::default()).await.unwrap().entries.len(), 2);
        let (known, overrides) = control.snapshot().await.unwrap().client_with_overrides(NAMESPACE, "user:2").await.unwrap();
        assert!(known.is_none() && overrides.is_empty());
        assert!(matches!(control.rule(NAMESPACE, "c").await, Err(Error::Unexpected(_))));
        for id in ["a", "b", "d"] {
            apply(control, [rule(id, per_second(2), Precondition::Present)]).await;
        }
        assert_eq!(look(&db).await.bad.len(), 4);
    }

    async fn rows_written_with_sql_need_only_their_own_columns(db: Database) {
        db.run("INSERT INTO rate_limit_rules (rule_id, max_requests, window_secs) VALUES ('plain', 100, 60)").await;
        db.run("INSERT INTO rate_limit_rules (rule_id, client_key, endpoint, max_requests, window_secs, window_ms, burst_size) \
                VALUES ('full', 'user:1', 'GET /x', 5, 0, 250, 10)").await;
        db.run("INSERT INTO clients (client_key, tier) VALUES ('user:1', 'gold')").await;
        db.run("INSERT INTO rate_limit_overrides (override_id, client_key, rule_id, max_requests, valid_until) \
                VALUES ('o', 'user:1', 'plain', 7, '2030-01-01T00:00:00.000000Z')").await;
        assert_eq!(look(&db).await.good, ["full", "plain", "user:1", "o"]);
        let record = db.control.rule(NAMESPACE, "full").await.unwrap();
        assert_eq!(json!(record.draft.document), json!({
            "match": { "client_key": "user:1", "endpoint": "GET /x" },
            "limit": { "requests": 5, "window": "250ms", "algorithm": "token_bucket", "burst": 10 },
        }));
        assert_eq!(record.version, 0);
        apply(&db.control, [rule("full", per_second(1), Precondition::Version(0))]).await;
    }

    async fn a_rule_with_a_condition_given_twice_is_not_used(db: Database) {
        let endpoint = rule_draft(json!({ "match": { "endpoint": "GET /x" }, "limit": { "requests": 1, "window": "1s" } }));
        apply(&db.control, [rule("a", endpoint, Precondition::Absent)]).await;
        db.run("UPDATE rate_limit_rules SET \"match\" = '{\"endpoint\": \"GET /y\"}'").await;
        let seen = look(&db).await;
        assert_eq!(seen.bad[0].reasons[0].message, "column match: has endpoint, which stands in its own column too");
    }
}
